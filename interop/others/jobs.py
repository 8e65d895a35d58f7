"""The jobs, and the paths of each: those of the experiments in docs/experiments.md, as far as real time allows."""

import json
from dataclasses import dataclass, field
from pathlib import Path

TIXEO = Path(__file__).parents[2] / "crates/lab/data/tixeo_trace.repr"

# Seconds after the last message until what is missing counts as lost.
DRAIN = 4.0


@dataclass(frozen=True)
class Point:
    """A point of a job: a path, and the request over it."""

    name: str
    up: str
    down: str
    request: dict
    # Milliseconds within which a message is on time.
    limit_ms: float | None = None

    def duration(self) -> float:
        """Seconds that the request takes if nothing goes wrong, at most."""
        if self.request["kind"] == "messages":
            return self.request["messages"][-1][0] / 1e6 + self.request["drain_s"]
        return 30.0 * (self.request["count"] if self.request["fresh"] else 1)

    def payload(self) -> int:
        """Bytes that the receiver asks for."""
        if self.request["kind"] == "messages":
            return sum(size for _, size in self.request["messages"])
        return self.request["bytes"] * self.request["count"]


@dataclass(frozen=True)
class Job:
    name: str
    title: str
    text: str
    points: list[Point] = field(default_factory=list)
    # What decides who is ahead, a name of report.METRICS.
    decides: str = "median"

    def metrics(self) -> list[str]:
        """The names of the tables."""
        has_messages = any(point.request["kind"] == "messages" for point in self.points)
        shown = ["median", "p99", "on time"] if has_messages else ["median"]
        return list(dict.fromkeys([*shown, self.decides, "missing", "bytes"]))


def downloads(size: int, count: int, fresh: bool = True) -> dict:
    """Downloads one after the other, each on a connection of its own if they are `fresh`."""
    return {"kind": "download", "bytes": size, "count": count, "fresh": fresh}


def messages(plan: list[tuple[int, int]], ordered: bool, deadline_ms: int | None = None) -> dict:
    return {"kind": "messages", "messages": plan, "ordered": ordered, "deadline_ms": deadline_ms, "drain_s": DRAIN}


def steady(size: int, interval_us: int, count: int) -> list[tuple[int, int]]:
    return [(n * interval_us, size) for n in range(count)]


def tixeo(frames: int) -> list[tuple[int, int]]:
    """The first frames of the video conference that FlEC was evaluated with."""
    lines = TIXEO.read_text().splitlines()[:frames]
    return [tuple(int(number) for number in line[1:].split(",")) for line in lines]


def both(name: str, link: str, request: dict, limit_ms: float | None = None) -> Point:
    return Point(name, link, link, request, limit_ms)


def flec_path(mbit: float, one_way_ms: float, down: float, up: float) -> tuple[str, str]:
    """A path of FlEC with its losses in percent; the queue is that of crates/lab/src/experiments/flec_path.rs."""
    queue = int(1.5 * mbit / 8 * 1_048_576 * 2 * one_way_ms / 1000 / 1200)
    line = f"rate={mbit}mbit delay={one_way_ms}ms queue={queue}p loss=bern:"
    return f"{line}{up / 100:.4f}", f"{line}{down / 100:.4f}"


def flec(mbit: float, one_way_ms: float, down: float, up: float, request: dict, limit_ms=None, name=None) -> Point:
    name = name or f"{mbit} Mbit/s, {one_way_ms} ms, {down} % down, {up} % up"
    return Point(name, *flec_path(mbit, one_way_ms, down, up), request, limit_ms)


SCREENS = [
    ("20 Mbit/s, 25 ms, 2 % in bursts", "rate=20mbit queue=100p delay=25ms loss=gt:300,4.8,0.95,0.005"),
    ("20 Mbit/s, 25 ms, 1 %", "rate=20mbit queue=100p delay=25ms loss=bern:0.01"),
    ("20 Mbit/s, 50 ms, 3 %", "rate=20mbit queue=100p delay=50ms loss=bern:0.03"),
]
UPDATES = messages(steady(60_000, 100_000, 50), ordered=False, deadline_ms=150)
ASKED_FOR = downloads(60_000, 25, fresh=False)
STREAM = messages(steady(5000, 16_667, 360), ordered=True)
CONFERENCE = messages(tixeo(150), ordered=False, deadline_ms=250)

JOBS = [
    Job(
        "holzinger-bulk",
        "Downloads (Holzinger 2025, Fig. 4)",
        "Time from the request on a new connection, whose handshake is over, to the last byte; the median of the "
        "downloads of a run. 10 Mbit/s, 50 ms one way; the loss has the paper's parameters, moved on by packets and "
        "10 Mbit/s of cross traffic (`paper-background`), or by time (`paper-time`).",
        [
            both("32 kB, by packets", "paper-background", downloads(32_000, 6)),
            both("32 kB, by time", "paper-time", downloads(32_000, 6)),
            both("1 MB, by packets", "paper-background", downloads(1_000_000, 2)),
        ],
    ),
    Job(
        "holzinger-stream",
        "A stream of 5 kB at 60 Hz (Holzinger 2025, Fig. 5)",
        "6 s of pieces in order, on the same paths; on time is within 75 ms.",
        [
            both("by packets", "paper-background", STREAM, limit_ms=75),
            both("by time", "paper-time", STREAM, limit_ms=75),
            both("no loss", "paper loss=none", STREAM, limit_ms=75),
        ],
        decides="p99",
    ),
    Job(
        "flec-bulk",
        "Downloads of 1 MB (FlEC 2022, Fig. 3)",
        "As above; three points inside the paper's ranges, with its queue of one and a half bandwidth-delay products.",
        [
            flec(5, 25, 2, 2, downloads(1_000_000, 2)),
            flec(15, 50, 4, 4, downloads(1_000_000, 2)),
            flec(25, 90, 6, 6, downloads(1_000_000, 2)),
        ],
    ),
    Job(
        "flec-messages",
        "Messages with deadlines (FlEC 2022, Figs. 12 to 16)",
        "The first 150 frames of the video conference; on time is within 250 ms. 8 Mbit/s, 1 % lost each way.",
        [flec(8, ms, 1, 1, CONFERENCE, limit_ms=250, name=f"{ms} ms one way") for ms in (50, 100, 150)],
        decides="on time",
    ),
    Job(
        "screens",
        "Updates of a screen",
        "60 kB every 100 ms, 5 s of them; on time is within 150 ms.",
        [both(name, link, UPDATES, limit_ms=150) for name, link in SCREENS],
        decides="p99",
    ),
    Job(
        "screens-asked",
        "Updates of a screen that are asked for",
        "60 kB, 25 times on one connection: the next is asked for when the last is there, as viewers of VNC do. Time from "
        "the request to the last byte.",
        [both(name, link, ASKED_FOR) for name, link in SCREENS],
        decides="p90",
    ),
]


def encoded(request: dict) -> str:
    return json.dumps(request, separators=(",", ":"))
