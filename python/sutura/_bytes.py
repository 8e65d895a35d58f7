"""What callers may give where bytes are wanted."""

from __future__ import annotations

from typing import Any


def as_bytes(data: Any) -> bytes:
    """The bytes of anything with the buffer protocol, as NumPy arrays, in the order of C.

    ``bytes`` are taken as they are, everything else is copied once: Python before 3.11 has no buffers in the stable
    interface that this package is built for.
    """
    if type(data) is bytes:
        return data
    return memoryview(data).tobytes()
