"""The part that is Rust. ``sutura.lab`` and ``sutura.erasure`` are what to use."""

from collections.abc import Mapping
from typing import Any, Optional

class LabError(RuntimeError): ...
class MissingResults(LabError): ...

class Table:
    """Columns of equal length, with names and types.

    Libraries that know Arrow's PyCapsule interface read it without copies: ``pyarrow.table(t)``,
    ``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)``, or the name of the variable in DuckDB behind
    ``pyarrow.table``. The metadata of a field has its ``unit``.
    """

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str]:
        """The units of the columns that have one: ``ms``, or ``share`` for shares from 0 to 1."""
    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as lists, ``None`` where a cell is empty."""
    def to_parquet(self) -> bytes:
        """The table as a Parquet file."""

class Report:
    """The report of an experiment."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def failures(self) -> list[str]:
        """The expectations that do not hold, if the experiment is a test."""
    @property
    def markdown(self) -> str: ...
    @property
    def json(self) -> str: ...
    @property
    def tables(self) -> dict[str, Table]:
        """The tables by their captions."""
    @property
    def data(self) -> Optional[Table]:
        """The single results behind the tables, of experiments that tell them."""

class View:
    """What a policy knows of its session and of the path. Times are in seconds."""

    @property
    def first(self) -> int:
        """The first symbol of the coding window: those below have arrived or were given up."""
    @property
    def timely(self) -> int:
        """The first symbol that may still be in time."""
    @property
    def next(self) -> int:
        """The number of the next source symbol."""
    @property
    def unacked(self) -> int:
        """Symbols from ``timely`` on that are not known to have arrived."""
    @property
    def missing(self) -> int:
        """Those that were lost, were not sent again, and have no repair symbol at the peer."""
    @property
    def added(self) -> int:
        """Repair symbols in flight."""
    @property
    def unprotected(self) -> int:
        """Symbols that are newer than all that a repair symbol covers."""
    @property
    def deadline(self) -> Optional[float]:
        """The time until the earliest deadline of the unprotected symbols."""
    @property
    def left(self) -> int:
        """Bytes that were written and never sent."""
    @property
    def has_source(self) -> bool:
        """Whether there is new data that may be sent now."""
    @property
    def idle(self) -> bool:
        """Whether nothing but redundancy waits on the whole connection."""
    @property
    def rtt(self) -> float:
        """The smoothed round-trip time."""
    @property
    def min_rtt(self) -> float: ...
    @property
    def loss(self) -> float:
        """The share of recent packets that were lost, 0 to 1."""
    @property
    def burst(self) -> float:
        """How many packets in a row are lost on average."""
    @property
    def window(self) -> int:
        """The congestion window in bytes."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight."""

def experiments() -> list[tuple[str, str]]: ...
def jobs(
    name: str, given: Mapping[str, bytes], settings: Mapping[str, Any]
) -> Optional[tuple[int, list[str], int]]: ...
def run(name: str, job: str, given: Mapping[str, bytes], settings: Mapping[str, Any]) -> bytes: ...
def merge(name: str, given: Mapping[str, bytes], settings: Mapping[str, Any]) -> Report: ...
def raw(given: Mapping[str, bytes]) -> Table: ...
def long(given: Mapping[str, bytes]) -> Table: ...

class BlockCode:
    @staticmethod
    def reed_solomon(sources: int, repairs: int) -> BlockCode: ...
    @staticmethod
    def random_linear(sources: int, repairs: int, key: int) -> BlockCode: ...
    @staticmethod
    def ldpc_staircase(sources: int, repairs: int, degree: int, seed: int) -> BlockCode: ...
    @staticmethod
    def xor_2d(sources: int, columns: int) -> BlockCode: ...
    @property
    def sources(self) -> int: ...
    @property
    def repairs(self) -> int: ...
    def encode(self, sources: list[bytes]) -> list[bytes]: ...
    def decode(self, symbols: list[Optional[bytes]]) -> list[Optional[bytes]]: ...

class WindowEncoder:
    def __init__(self, symbols: int, symbol_size: int, bytes: int) -> None: ...
    def push(self, symbol: bytes) -> int: ...
    @property
    def window(self) -> tuple[int, int]: ...
    def repair(self, first: int, end: int, key: int) -> bytes: ...
    def release_below(self, first: int) -> None: ...

class WindowDecoder:
    def __init__(self, symbols: int, symbol_size: int, bytes: int, repairs: int) -> None: ...
    def source(self, id: int, symbol: bytes) -> list[tuple[int, bytes]]: ...
    def repair(self, first: int, end: int, key: int, symbol: bytes) -> list[tuple[int, bytes]]: ...
    def symbol(self, id: int) -> Optional[bytes]: ...
    def missing(self) -> list[int]: ...
    def release_below(self, first: int) -> None: ...
