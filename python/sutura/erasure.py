"""Erasure codes: what is lost is computed from what arrives.

Symbols are pieces of data of equal length, as the contents of packets. A code makes *repair symbols* of *source
symbols*, and each repair symbol can replace any source symbol that it covers.

* :class:`Encoder` and :class:`Decoder` split data of any length into packets, as the package ``raptorq`` does.
* :class:`ReedSolomon`, :class:`RandomLinear`, :class:`LdpcStaircase` and :class:`Xor2d` are codes for blocks.
* :class:`WindowEncoder` and :class:`WindowDecoder` are for streams: a random linear code over a sliding window, as
  Sutura uses it in QUIC. Their symbols may differ in length.

Data may be ``bytes`` or anything with the buffer protocol, as ``bytearray``, ``memoryview`` and NumPy arrays, which are
copied once. Sizes and numbers that a code cannot have are a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _native
from ._bytes import as_bytes

__all__ = [
    "Decoder",
    "Encoder",
    "LdpcStaircase",
    "RandomLinear",
    "ReedSolomon",
    "WindowDecoder",
    "WindowEncoder",
    "Xor2d",
]

Symbols = Union[Sequence[Optional[Any]], Mapping[int, Any]]


class _BlockCode:
    """A code for blocks of :attr:`sources` source symbols and :attr:`repairs` repair symbols."""

    def __init__(self, code: _native.BlockCode) -> None:
        self._code = code

    @property
    def sources(self) -> int:
        """How many source symbols a block has."""
        return self._code.sources

    @property
    def repairs(self) -> int:
        """How many repair symbols it has."""
        return self._code.repairs

    def encode(self, sources: Sequence[Any]) -> list[bytes]:
        """The repair symbols of these source symbols, which have the same length."""
        return self._code.encode([as_bytes(source) for source in sources])

    def decode(self, symbols: Symbols) -> list[Optional[bytes]]:
        """The source symbols, ``None`` for those that stay lost.

        ``symbols`` are those that arrived: a list of all source symbols and then all repair symbols, ``None`` for those
        that did not, or a mapping of the places in that list to those that did.
        """
        all_symbols: Sequence[Optional[Any]]
        if isinstance(symbols, Mapping):
            count = self.sources + self.repairs
            if not all(isinstance(place, int) and 0 <= place < count for place in symbols):
                raise ValueError(f"symbols have places from 0 to {count - 1}")
            all_symbols = [symbols.get(place) for place in range(count)]
        else:
            all_symbols = symbols
        return self._code.decode([None if symbol is None else as_bytes(symbol) for symbol in all_symbols])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.sources} source and {self.repairs} repair symbols>"


class ReedSolomon(_BlockCode):
    """Any ``sources`` of all symbols are enough. At most 256 symbols together."""

    def __init__(self, sources: int, repairs: int) -> None:
        super().__init__(_native.BlockCode.reed_solomon(sources, repairs))


class RandomLinear(_BlockCode):
    """Nearly always, any ``sources`` of all symbols are enough. At most 4096 source and 1024 repair symbols."""

    def __init__(self, sources: int, repairs: int, key: int = 0) -> None:
        super().__init__(_native.BlockCode.random_linear(sources, repairs, key))


class LdpcStaircase(_BlockCode):
    """Sparse parity checks (RFC 6816), quick for large blocks. ``degree`` checks have each source symbol."""

    def __init__(self, sources: int, repairs: int, degree: int = 3, seed: int = 1) -> None:
        super().__init__(_native.BlockCode.ldpc_staircase(sources, repairs, degree, seed))


class Xor2d(_BlockCode):
    """Parity of the rows and columns of a grid that is ``columns`` wide."""

    def __init__(self, sources: int, columns: int) -> None:
        super().__init__(_native.BlockCode.xor_2d(sources, columns))


class WindowEncoder:
    """Holds source symbols and makes repair symbols over runs of them.

    At most ``symbols`` symbols of ``symbol_size`` bytes, and ``bytes`` bytes together, are held at a time.
    """

    def __init__(self, symbols: int = 1024, symbol_size: int = 1500, bytes: int = 3 << 19) -> None:
        self._encoder = _native.WindowEncoder(symbols, symbol_size, bytes)

    def push(self, symbol: Any) -> int:
        """Adds a symbol and returns its number. Numbers begin at 0."""
        return self._encoder.push(as_bytes(symbol))

    @property
    def window(self) -> tuple[int, int]:
        """The number of the oldest symbol that is held, and that of the next one that will be."""
        return self._encoder.window

    def repair(self, first: int, end: int, key: int) -> bytes:
        """A repair symbol over the symbols from ``first`` to before ``end``. Other keys, 32 bits, make others."""
        return self._encoder.repair(first, end, key)

    def release_below(self, first: int) -> None:
        """Forgets the symbols before this one."""
        self._encoder.release_below(first)


class WindowDecoder:
    """Takes source and repair symbols in any order, and finds those that were lost.

    ``symbols``, ``symbol_size`` and ``bytes`` are as in the encoder; at most ``repairs`` repair symbols wait for others.
    """

    def __init__(
        self, symbols: int = 1024, symbol_size: int = 1500, bytes: int = 3 << 19, repairs: int = 128
    ) -> None:
        self._decoder = _native.WindowDecoder(symbols, symbol_size, bytes, repairs)

    def source(self, id: int, symbol: Any) -> list[tuple[int, bytes]]:
        """Takes a source symbol. Returns the numbers and contents of symbols that it determines."""
        return self._decoder.source(id, as_bytes(symbol))

    def repair(self, first: int, end: int, key: int, symbol: Any) -> list[tuple[int, bytes]]:
        """Takes a repair symbol that the encoder made with the same numbers. Returns as :meth:`source` does."""
        return self._decoder.repair(first, end, key, as_bytes(symbol))

    def symbol(self, id: int) -> Optional[bytes]:
        """A symbol that arrived or was recovered, while it is held."""
        return self._decoder.symbol(id)

    def missing(self) -> list[int]:
        """The numbers of symbols that are known to exist and are not there."""
        return self._decoder.missing()

    def release_below(self, first: int) -> None:
        """Forgets the symbols before this one."""
        self._decoder.release_below(first)


_BLOCK = 128
"""Source symbols of a block of :class:`Encoder` at most, so that it has as many repair symbols."""
_HEADER = 4
"""Bytes before a packet's symbol: three for the number of the block, one for that of the symbol in it."""


def _blocks(length: int, symbol_size: int) -> list[int]:
    """How many source symbols each block of so much data has: they differ by one at most."""
    if not 1 <= symbol_size <= 65535:
        raise ValueError("a symbol has from 1 to 65535 bytes")
    if length < 1:
        raise ValueError("there is no data")
    symbols = -(-length // symbol_size)
    blocks = -(-symbols // _BLOCK)
    if blocks > 1 << 24:
        raise ValueError("too much data for symbols of this size")
    return [symbols // blocks + (number < symbols % blocks) for number in range(blocks)]


class Encoder:
    """Splits data into packets: blocks with Reed-Solomon codes.

    ``symbol_size`` is the size of a packet less four bytes, which tell where it belongs.
    """

    def __init__(self, data: Any, symbol_size: int) -> None:
        self._data = as_bytes(data)
        self._size = symbol_size
        self._blocks = _blocks(len(self._data), symbol_size)

    @classmethod
    def with_defaults(cls, data: Any, mtu: int) -> Encoder:
        """An encoder whose packets have at most ``mtu`` bytes."""
        return cls(data, mtu - _HEADER)

    def get_encoded_packets(self, repair_packets_per_block: int) -> list[bytes]:
        """All packets: those with the data, and so many with repair symbols for each block, at most 128."""
        if not 0 <= repair_packets_per_block <= _BLOCK:
            raise ValueError(f"a block has from 0 to {_BLOCK} repair packets")
        packets, start = [], 0
        for block, count in enumerate(self._blocks):
            ends = range(start, start + count * self._size, self._size)
            symbols = [self._data[at : at + self._size].ljust(self._size, b"\0") for at in ends]
            start += count * self._size
            if repair_packets_per_block:
                symbols += ReedSolomon(count, repair_packets_per_block).encode(symbols)
            packets += [block.to_bytes(3, "big") + bytes([place]) + symbol for place, symbol in enumerate(symbols)]
        return packets


class Decoder:
    """Puts data together again of enough packets in any order: of each block as many as it has source symbols.

    ``length`` is that of the data, and ``symbol_size`` that of the encoder.
    """

    def __init__(self, length: int, symbol_size: int) -> None:
        self._length = length
        self._size = symbol_size
        self._blocks = _blocks(length, symbol_size)
        self._arrived: dict[int, dict[int, bytes]] = {}
        self._decoded: dict[int, bytes] = {}

    @classmethod
    def with_defaults(cls, length: int, mtu: int) -> Decoder:
        """A decoder of packets that have at most ``mtu`` bytes."""
        return cls(length, mtu - _HEADER)

    def decode(self, packet: Any) -> Optional[bytes]:
        """Takes a packet. Returns the data once all of it is known."""
        packet = as_bytes(packet)
        if len(packet) != _HEADER + self._size:
            raise ValueError(f"a packet has {_HEADER + self._size} bytes, not {len(packet)}")
        block, place = int.from_bytes(packet[:3], "big"), packet[3]
        if block >= len(self._blocks) or place >= self._blocks[block] + _BLOCK:
            raise ValueError("the packet is of other data")
        if block not in self._decoded:
            arrived = self._arrived.setdefault(block, {})
            arrived[place] = packet[_HEADER:]
            if len(arrived) == self._blocks[block]:
                # Any so many symbols of a Reed-Solomon code are enough.
                symbols = ReedSolomon(self._blocks[block], _BLOCK).decode(arrived)
                self._decoded[block] = b"".join(symbol or b"" for symbol in symbols)
                del self._arrived[block]
        if len(self._decoded) < len(self._blocks):
            return None
        return b"".join(self._decoded[block] for block in range(len(self._blocks)))[: self._length]
