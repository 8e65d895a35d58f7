"""Serves a directory with aioquic. Prints its address once it listens."""

import argparse
import asyncio
from pathlib import Path

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent


def http_protocol(directory: Path) -> type[QuicConnectionProtocol]:
    files = {f"/{file.name}".encode(): file.read_bytes() for file in directory.iterdir()}

    class Http(QuicConnectionProtocol):
        """HTTP/3 over one connection."""

        def __init__(self, *args, **kwargs) -> None:
            super().__init__(*args, **kwargs)
            self.http = H3Connection(self._quic)

        def quic_event_received(self, event: QuicEvent) -> None:
            for http_event in self.http.handle_event(event):
                if isinstance(http_event, HeadersReceived):
                    path = dict(http_event.headers)[b":path"]
                    self.answer(http_event.stream_id, files.get(path))

        def answer(self, stream: int, body: bytes | None) -> None:
            status = b"404" if body is None else b"200"
            body = body or b""
            length = str(len(body)).encode()
            headers = [(b":status", status), (b"content-length", length)]
            self.http.send_headers(stream, headers)
            self.http.send_data(stream, body, end_stream=True)
            self.transmit()

    return Http


async def run(args: argparse.Namespace) -> None:
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=H3_ALPN, max_datagram_frame_size=65_536
    )
    configuration.load_cert_chain(args.cert, args.key)
    protocol = http_protocol(args.directory)
    server = await serve(
        "127.0.0.1", 0, configuration=configuration, create_protocol=protocol, retry=args.retry
    )
    host, port = server._transport.get_extra_info("sockname")[:2]
    print(f"{host}:{port}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--retry", action="store_true", help="validate addresses with a Retry")
    parser.add_argument("directory", type=Path)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
