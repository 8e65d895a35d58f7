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


async def fetch_together(args: argparse.Namespace, headers: dict[str, str]) -> list[bytes]:
    async with AsyncSession(verify=args.ca, http_version=ONLY_HTTP_3) as session:
        gets = (session.get(f"https://{args.address}{p}", headers=headers) for p in args.paths)
        responses = await asyncio.gather(*gets)
    return [check(path, r) for path, r in zip(args.paths, responses, strict=True)]


def fetch_in_turn(args: argparse.Namespace, headers: dict[str, str]) -> list[bytes]:
    with Session(verify=args.ca, http_version=ONLY_HTTP_3) as session:
        return [
            check(path, session.get(f"https://{args.address}{path}", headers=headers))
            for path in args.paths
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="host and port of the server")
    parser.add_argument("--ca", required=True, help="certificates to trust")
    parser.add_argument("--out", required=True, type=Path, help="directory to save to")
    parser.add_argument("--priority", help="priority of the requests (RFC 9218)")
    parser.add_argument("--together", action="store_true", help="all at once")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    headers = {"priority": args.priority} if args.priority else {}
    if args.together:
        bodies = asyncio.run(fetch_together(args, headers))
    else:
        bodies = fetch_in_turn(args, headers)
    for path, body in zip(args.paths, bodies, strict=True):
        (args.out / Path(path).name).write_bytes(body)


if __name__ == "__main__":
    main()
