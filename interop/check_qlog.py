"""Checks that `sutura qlog --json` finds in another stack's record what that stack received."""

import json
import sys
from pathlib import Path

HEADERS = 2000
"""No response has more bytes of HTTP/3 around its body."""


def main() -> int:
    """Takes the analysis on standard input, and the directory of the files that were fetched."""
    files = {f"/{file.name}": file.stat().st_size for file in Path(sys.argv[1]).iterdir()}
    (trace,) = json.load(sys.stdin)["traces"]
    streams = {stream["path"]: stream for stream in trace["streams"] if stream["path"]}
    wrong = [path for path in files if path not in streams]
    for path, stream in streams.items():
        if not 0 <= stream["bytes"] - files[path] <= HEADERS or stream["completed_ms"] is None:
            wrong.append(f"{path}: {files[path]} bytes, {stream}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 3 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
