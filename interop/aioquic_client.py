"""Fetches files with aioquic over one connection, all at once unless told otherwise."""

import argparse
import asyncio
from pathlib import Path

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamReset
from aioquic.quic.logger import QuicFileLogger
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

PRIORITY_UPDATE_REQUEST = 0xF0700
"""The frame type of RFC 9218 section 7.2, which aioquic does not know."""


class Exchange:
    """A request and what came of its response."""

    def __init__(self) -> None:
        self.status = b""
        self.fields: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.done = asyncio.get_running_loop().create_future()

    def fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(reason))


class Connection(H3Connection):
    """Does not expect the content of which a response to HEAD has only the length.

    aioquic compares them whatever the method (RFC 9114 section 4.1.2, RFC 9110 section 8.6).
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.heads: set[int] = set()

    def _check_content_length(self, stream) -> None:
        if stream.stream_id not in self.heads:
            super()._check_content_length(stream)


class Http(QuicConnectionProtocol):
    """HTTP/3 over one connection."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.http = Connection(self._quic)
        self.exchanges: dict[int, Exchange] = {}
        self.streams: dict[str, int] = {}
        self.received = 0
        self.updates: list[Update] = []

    async def get(self, path: str, priority: str | None) -> bytes:
        fields = [(b"priority", priority.encode())] if priority else []
        exchange = await self.request(b"GET", path, fields)
        if exchange.status != b"200":
            raise ConnectionError(f"{path}: status {exchange.status.decode()}")
        return bytes(exchange.body)

    async def head(self, path: str, length: int) -> None:
        """Asks for the length of a file, which must be `length`."""
        exchange = await self.request(b"HEAD", path, [])
        told = exchange.fields.get(b"content-length", b"")
        if exchange.status != b"200" or told != str(length).encode() or exchange.body:
            raise ConnectionError(f"HEAD {path}: {exchange.status} {told} {len(exchange.body)}")

    async def refused(self, path: str, size: int) -> None:
        """Sends a head of `size` bytes, which must be refused with 431."""
        # aioquic sends no longer values.
        lines = [(b"x-large", b"x" * 1000)] * (size // 1000)
        exchange = await self.request(b"GET", path, lines)
        if exchange.status != b"431":
            raise ConnectionError(f"a head of {size} bytes: status {exchange.status}")

    async def request(
        self, method: bytes, path: str, fields: list[tuple[bytes, bytes]]
    ) -> Exchange:
        stream = self._quic.get_next_available_stream_id()
        exchange = self.exchanges[stream] = Exchange()
        self.streams[path] = stream
        headers = [
            (b":method", method),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path.encode()),
            *fields,
        ]
        if method == b"HEAD":
            self.http.heads.add(stream)
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await exchange.done
        return exchange

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            for exchange in self.exchanges.values():
                exchange.fail(f"terminated: {event.error_code:#x} {event.reason_phrase}")
        if isinstance(event, StreamReset) and event.stream_id in self.exchanges:
            self.exchanges[event.stream_id].fail(f"reset: {event.error_code:#x}")
        for http_event in self.http.handle_event(event):
            exchange = self.exchanges.get(http_event.stream_id)
            if exchange is None:
                continue
            if isinstance(http_event, HeadersReceived):
                exchange.fields |= dict(http_event.headers)
                exchange.status = exchange.fields.get(b":status", b"")
            if isinstance(http_event, DataReceived):
                exchange.body += http_event.data
                self.received += len(http_event.data)
            if http_event.stream_ended and not exchange.done.done():
                exchange.done.set_result(None)
        self.send_updates()

    def send_updates(self) -> None:
        """Sends the updates for which enough has arrived."""
        due = [u for u in self.updates if self.received >= u.after and u.path in self.streams]
        for update in due:
            self.updates.remove(update)
            payload = encode_uint_var(self.streams[update.path]) + update.priority.encode()
            frame = encode_frame(PRIORITY_UPDATE_REQUEST, payload)
            self._quic.send_stream_data(self.http._local_control_stream_id, frame)
        if due:
            self.transmit()


class Update:
    """A change of a priority once so many bytes of bodies have arrived."""

    def __init__(self, text: str) -> None:
        after, self.path, self.priority = text.split(":", 2)
        self.after = int(after)


def priorities(args: argparse.Namespace) -> list[str]:
    """The priority of each path."""
    match args.priority:
        case []:
            return [""] * len(args.paths)
        case [priority]:
            return [priority] * len(args.paths)
        case several:
            return several


async def fetch(args: argparse.Namespace) -> None:
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=H3_ALPN,
        cafile=args.ca,
        server_name="localhost",
        max_datagram_frame_size=65_536,
    )
    if args.qlog:
        configuration.quic_logger = QuicFileLogger(str(args.qlog))
    if args.cipher:
        configuration.cipher_suites = [CipherSuite[args.cipher]]
    if args.first_version_2:
        configuration.original_version = QuicProtocolVersion.VERSION_2
        configuration.supported_versions = [
            QuicProtocolVersion.VERSION_1,
            QuicProtocolVersion.VERSION_2,
        ]
    host, port = args.address.rsplit(":", 1)
    async with connect(
        host, int(port), configuration=configuration, create_protocol=Http
    ) as client:
        if args.update_keys:
            client.request_key_update()
        client.updates = args.update
        gets = [client.get(*get) for get in zip(args.paths, priorities(args), strict=True)]
        bodies = [await gets.pop(0)] if args.page else []
        bodies += await asyncio.gather(*gets)
        if args.head:
            for path, body in zip(args.paths, bodies, strict=True):
                await client.head(path, len(body))
        if args.large_head:
            await client.refused(args.paths[0], args.large_head)
        for path, body in zip(args.paths, bodies, strict=True):
            (args.out / Path(path).name).write_bytes(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="host and port of the server")
    parser.add_argument("--ca", required=True, help="certificates to trust")
    parser.add_argument("--out", required=True, type=Path, help="directory to save to")
    parser.add_argument(
        "--priority",
        action="append",
        default=[],
        help="priority (RFC 9218) of the requests, or one for each in their order",
    )
    parser.add_argument(
        "--update",
        action="append",
        default=[],
        type=Update,
        metavar="BYTES:PATH:PRIORITY",
        help="once so many bytes of bodies arrived, update the priority of that path",
    )
    parser.add_argument("--page", action="store_true", help="the first path before the others")
    parser.add_argument("--qlog", type=Path, help="directory to write qlog to")
    parser.add_argument("--cipher", help="the only cipher suite to offer")
    parser.add_argument("--first-version-2", action="store_true", help="begin with QUIC v2")
    parser.add_argument("--head", action="store_true", help="then ask for the lengths by HEAD")
    parser.add_argument("--large-head", type=int, help="then send a head of so many bytes")
    parser.add_argument("--update-keys", action="store_true", help="update the 1-RTT keys")
    parser.add_argument("paths", nargs="+")
    asyncio.run(fetch(parser.parse_args()))


if __name__ == "__main__":
    main()
