"""An endpoint of the matrix (see README.md) with aioquic: both roles, HTTP/0.9 and HTTP/3."""

import asyncio
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)
from aioquic.quic.logger import QuicFileLogger
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

UNSUPPORTED = 127
COMMON = {
    "handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "http3", "multiconnect", "v2",
}  # fmt: skip
# aioquic neither marks packets for ECN nor announces a preferred address.
SUPPORTED = {"client": COMMON | {"keyupdate"}, "server": COMMON | {"multiplexing"}}

IDLE_TIMEOUT = 120.0
"""In seconds: longer than any handshake and any outage. The handshake must end within it, too."""

KEY_UPDATE_AFTER = 100_000
"""Bytes of responses."""

TICKET_TIMEOUT = 10.0
"""In seconds: how long to wait for a session ticket."""

MAX_REQUEST = 4096
"""Bytes of a request of HTTP/0.9."""


def configuration(role: str, case: str) -> QuicConfiguration:
    """What both roles configure."""
    version_1, version_2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
    config = QuicConfiguration(
        is_client=role == "client",
        alpn_protocols=H3_ALPN if case == "http3" else ["hq-interop"],
        idle_timeout=IDLE_TIMEOUT,
        supported_versions=[version_1],
    )
    if case == "v2":
        # The first packet has version 1, and the versions are in the order of preference.
        config.supported_versions = [version_2, version_1]
        config.original_version = version_1
    if case == "chacha20":
        config.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if directory := os.environ.get("QLOGDIR"):
        config.quic_logger = QuicFileLogger(directory)
    if file := os.environ.get("SSLKEYLOGFILE"):
        config.secrets_log_file = open(file, "a", buffering=1)
    return config


def address() -> tuple[str, int]:
    """The host and the port of `ADDRESS`, where IPv6 addresses are in brackets."""
    host, _, port = os.environ["ADDRESS"].rpartition(":")
    return host.strip("[]"), int(port)


# The client


class Fetch:
    """A request and the response as far as it has arrived."""

    def __init__(self) -> None:
        self.status = 200
        self.body = bytearray()
        self.done = asyncio.get_running_loop().create_future()

    def fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(reason))


class Client(QuicConnectionProtocol):
    """Fetches over one connection. Subclasses know the version of HTTP."""

    update_keys = False

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.fetches: dict[int, Fetch] = {}
        self.received = 0

    def send_request(self, stream: int, path: str) -> None:
        raise NotImplementedError

    def responses(self, event: QuicEvent) -> None:
        """Calls `arrived` with what of responses is in the event."""
        raise NotImplementedError

    async def get(self, url: str) -> bytes:
        stream = self._quic.get_next_available_stream_id()
        fetch = self.fetches[stream] = Fetch()
        self.send_request(stream, urlsplit(url).path)
        self.transmit()
        await fetch.done
        if fetch.status != 200:
            raise ConnectionError(f"{url}: status {fetch.status}")
        return bytes(fetch.body)

    def arrived(self, stream: int, data: bytes, ended: bool) -> None:
        fetch = self.fetches[stream]
        fetch.body += data
        self.received += len(data)
        if ended and not fetch.done.done():
            fetch.done.set_result(None)
        if self.update_keys and self.received >= KEY_UPDATE_AFTER:
            self.update_keys = False
            self.request_key_update()

    def quic_event_received(self, event: QuicEvent) -> None:
        match event:
            case ConnectionTerminated():
                for fetch in self.fetches.values():
                    fetch.fail(f"terminated: {event.error_code:#x} {event.reason_phrase}")
            case StreamReset() | StopSendingReceived() if event.stream_id in self.fetches:
                self.fetches[event.stream_id].fail(f"refused: {event.error_code:#x}")
        self.responses(event)


class Http09Client(Client):
    def send_request(self, stream: int, path: str) -> None:
        self._quic.send_stream_data(stream, f"GET {path}\r\n".encode(), end_stream=True)

    def responses(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.stream_id in self.fetches:
            self.arrived(event.stream_id, event.data, event.end_stream)


class Http3Client(Client):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)

    def send_request(self, stream: int, path: str) -> None:
        fields = {":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": path}
        headers = [(name.encode(), value.encode()) for name, value in fields.items()]
        self.http.send_headers(stream, headers, end_stream=True)

    def responses(self, event: QuicEvent) -> None:
        for part in self.http.handle_event(event):
            match part:
                case HeadersReceived():
                    status = dict(part.headers).get(b":status", b"0")
                    self.fetches[part.stream_id].status = int(status)
                    self.arrived(part.stream_id, b"", part.stream_ended)
                case DataReceived():
                    self.arrived(part.stream_id, part.data, part.stream_ended)


class Session:
    """The newest session ticket."""

    def __init__(self) -> None:
        self.ticket: SessionTicket | None = None
        self.came = asyncio.Event()

    def store(self, ticket: SessionTicket) -> None:
        self.ticket = ticket
        self.came.set()


def connection(
    case: str, session: Session | None = None, early: bool = False
) -> AbstractAsyncContextManager[Client]:
    """A connection with the server: resumed if there is a session, at once if there is early data."""
    config = configuration("client", case)
    config.server_name = "localhost"
    config.load_verify_locations(cafile=os.environ["CERTS"] + "/ca.pem")
    config.session_ticket = session.ticket if session else None
    return connect(
        *address(),
        configuration=config,
        create_protocol=Http3Client if case == "http3" else Http09Client,
        session_ticket_handler=session.store if session else None,
        wait_connected=not early,
    )


async def fetch_all(client: Client, urls: list[str]) -> None:
    """Fetches the files in parallel and saves them."""
    bodies = await asyncio.gather(*(client.get(url) for url in urls))
    for url, body in zip(urls, bodies, strict=True):
        Path(os.environ["DOWNLOADS"], Path(urlsplit(url).path).name).write_bytes(body)


async def fetch_resumed(case: str, urls: list[str]) -> None:
    """Fetches the first file on one connection, and the rest on one that resumes its session."""
    session = Session()
    async with connection(case, session) as client:
        await fetch_all(client, urls[:1])
        async with asyncio.timeout(TICKET_TIMEOUT):
            await session.came.wait()
    async with connection(case, session, early=case == "zerortt") as client:
        await fetch_all(client, urls[1:])
        if not client._quic.tls.session_resumed:
            raise ConnectionError("the server did not resume the session")


async def run_client(case: str) -> None:
    urls = os.environ["REQUESTS"].split()
    match case:
        case "multiconnect":
            for url in urls:
                async with connection(case) as client:
                    await fetch_all(client, [url])
        case "resumption" | "zerortt":
            await fetch_resumed(case, urls)
        case _:
            async with connection(case) as client:
                client.update_keys = case == "keyupdate"
                await fetch_all(client, urls)


# The server


def file_at(path: str) -> bytes | None:
    """The content of a file in `WWW`, which has no folders."""
    file = Path(os.environ["WWW"], Path(path).name)
    return file.read_bytes() if file.is_file() else None


class Http09Server(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.requests: dict[int, bytes] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        if not isinstance(event, StreamDataReceived) or event.stream_id % 4 != 0:
            return
        request = self.requests.pop(event.stream_id, b"") + event.data
        if event.end_stream:
            self.answer(event.stream_id, request)
        elif len(request) <= MAX_REQUEST:
            self.requests[event.stream_id] = request
        else:
            self._quic.stop_stream(event.stream_id, 0)
            self._quic.reset_stream(event.stream_id, 0)

    def answer(self, stream: int, request: bytes) -> None:
        method, _, path = request.decode(errors="replace").strip().partition(" ")
        body = file_at(path) if method == "GET" else None
        if body is None:
            self._quic.reset_stream(stream, 0)
        else:
            self._quic.send_stream_data(stream, body, end_stream=True)


class Http3Server(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event: QuicEvent) -> None:
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                path = dict(part.headers).get(b":path", b"").decode(errors="replace")
                self.answer(part.stream_id, file_at(path))

    def answer(self, stream: int, body: bytes | None) -> None:
        status = b"404" if body is None else b"200"
        length = str(len(body or b"")).encode()
        self.http.send_headers(stream, [(b":status", status), (b"content-length", length)])
        self.http.send_data(stream, body or b"", end_stream=True)


async def run_server(case: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = configuration("server", case)
    certificates = os.environ["CERTS"]
    config.load_cert_chain(f"{certificates}/cert.pem", f"{certificates}/priv.key")
    tickets: dict[bytes, SessionTicket] = {}
    server = await serve(
        *address(),
        configuration=config,
        create_protocol=Http3Server if case == "http3" else Http09Server,
        # A ticket serves once, as early data must.
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        retry=case == "retry",
    )
    await stop.wait()
    server.close()


def main() -> int:
    role, case = os.environ["ROLE"], os.environ["TESTCASE"]
    if case not in SUPPORTED.get(role, set()):
        return UNSUPPORTED
    try:
        asyncio.run(run_client(case) if role == "client" else run_server(case))
    except (OSError, TimeoutError) as error:
        print(f"aioquic: {error or type(error).__name__}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
