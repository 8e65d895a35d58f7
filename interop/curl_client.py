"""Fetches files with curl (ngtcp2, nghttp3 and BoringSSL) over HTTP/3 and nothing else."""

import argparse
import asyncio
from pathlib import Path

from curl_cffi import AsyncSession, CurlHttpVersion, Session

ONLY_HTTP_3 = CurlHttpVersion.V3ONLY


def check(path: str, response) -> bytes:
    if response.status_code != 200 or response.http_version != CurlHttpVersion.V3:
        version = response.http_version
        raise ConnectionError(f"{path}: status {response.status_code}, HTTP version {version}")
    return response.content


def requests(args: argparse.Namespace) -> list[tuple[str, dict[str, str]]]:
    """The URL and the fields of each path."""
    several = args.priority if len(args.priority) > 1 else args.priority * len(args.paths)
    several = several or [""] * len(args.paths)
    return [
        (f"https://{args.address}{path}", {"priority": priority} if priority else {})
        for path, priority in zip(args.paths, several, strict=True)
    ]


async def fetch_together(args: argparse.Namespace) -> list:
    async with AsyncSession(verify=args.ca, http_version=ONLY_HTTP_3, max_clients=100) as session:
        gets = [session.get(url, headers=headers) for url, headers in requests(args)]
        # Those that follow find a connection to share.
        responses = [await gets.pop(0)] if args.page else []
        return responses + await asyncio.gather(*gets)


def fetch_in_turn(args: argparse.Namespace) -> list:
    with Session(verify=args.ca, http_version=ONLY_HTTP_3) as session:
        return [session.get(url, headers=headers) for url, headers in requests(args)]


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
    parser.add_argument("--together", action="store_true", help="all at once")
    parser.add_argument("--page", action="store_true", help="the first path before the others")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    responses = asyncio.run(fetch_together(args)) if args.together else fetch_in_turn(args)
    for path, response in zip(args.paths, responses, strict=True):
        (args.out / Path(path).name).write_bytes(check(path, response))


if __name__ == "__main__":
    main()
