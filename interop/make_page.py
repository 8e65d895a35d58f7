"""Makes a page whose parts compete: style sheets, scripts, a font, pictures and data."""

import random
import struct
import sys
import zlib
from pathlib import Path

WIDTH = 250
"""Pixels in a line of a picture; each pixel is three bytes of noise."""

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Priorities</title>
<link rel="icon" href="data:,">
<script>fetch("data.json").then(response => response.arrayBuffer());</script>
<link rel="preload" href="font.woff2" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="style.css">
<link rel="stylesheet" href="print.css" media="print">
<script src="app.js"></script>
<script src="async.js" async></script>
<script src="defer.js" defer></script>
<h1>Priorities</h1>
<img src="a.png" alt="">
<img src="hero.png" alt="" fetchpriority="high">
<img src="b.png" alt="">
<img src="c.png" alt="">
</html>
"""

FONT = '@font-face { font-family: Noise; src: url("font.woff2") format("woff2"); }\n'
STYLE = "h1 { font-family: Noise, serif; }\n"

SIZES = {
    "style.css": 100_000,
    "print.css": 100_000,
    "app.js": 150_000,
    "async.js": 120_000,
    "defer.js": 100_000,
    "font.woff2": 100_000,
    "data.json": 100_000,
    "a.png": 100_000,
    "b.png": 130_000,
    "c.png": 160_000,
    "hero.png": 190_000,
}


def chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def picture(size: int, noise: random.Random) -> bytes:
    """A picture of about `size` bytes, as noise cannot be compressed."""
    height = size // (3 * WIDTH + 1)
    lines = b"".join(b"\0" + noise.randbytes(3 * WIDTH) for _ in range(height))
    header = struct.pack(">IIBBBBB", WIDTH, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in parts)


def content(name: str, size: int, noise: random.Random) -> bytes:
    match name.rsplit(".", 1)[1]:
        case "css":
            text = FONT + STYLE if name == "style.css" else STYLE
            return f"{text}/* {noise.randbytes(size // 2).hex()} */\n".encode()
        case "js":
            return f"// {noise.randbytes(size // 2).hex()}\n".encode()
        case "json":
            return f'"{noise.randbytes(size // 2).hex()}"\n'.encode()
        case "png":
            return picture(size, noise)
        case _:
            return noise.randbytes(size)


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir()
    noise = random.Random(1)
    (directory / "index.html").write_text(PAGE)
    for name, size in SIZES.items():
        (directory / name).write_bytes(content(name, size, noise))


if __name__ == "__main__":
    main()
