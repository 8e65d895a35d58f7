"""Reads a server's qlog and finds out whether responses were sent in the order that RFC 9218
section 10 asks for, given what the client said:

urgency: no data of a response is sent while data of a more urgent one waits;
order:   of responses that are not incremental and of the same urgency, none is sent while data of
         one that was requested before waits;
sharing: incremental responses of the same urgency that wait together are sent alike much.

Data waits from when the application handed it over until it is sent, as far as the client's limit
for the stream permits. Data that is sent again is not judged, as section 12 leaves its order open.
Exits with 3 if the order was wrong, or if there was nothing to put in order."""

import argparse
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from priority_field import Malformed, Priority, parse

RULES = ("urgency", "order", "sharing")
MOST_AHEAD = 8 * 1500
"""By how many bytes one of two that share may be ahead of the other: some packets."""
LEAST_CONTESTED = 20_000
"""In fewer bytes an order may be right by chance."""
WRONG = 3
"""Exit status."""


@dataclass
class Response:
    """A response and what was asked of it. Times in ms, sizes in bytes."""

    stream: int
    limit: int
    path: str
    field: str | None
    requested: float
    priority: Priority
    updates: list[str] = field(default_factory=list)
    written: int = 0
    sent: int = 0
    first: float | None = None
    last: float = 0.0
    finished: bool = False
    abandoned: bool = False

    @property
    def waits(self) -> bool:
        return not self.abandoned and self.sent < min(self.written, self.limit)


def understood(value: str, otherwise: Priority) -> Priority:
    try:
        return parse(value)
    except Malformed:
        return otherwise


class Trace:
    """What happened on a connection."""

    def __init__(self, events: Iterable[dict]) -> None:
        self.responses: dict[int, Response] = {}
        self.early_updates: dict[int, str] = {}
        self.stream_limit = 0
        self.contested: Counter[str] = Counter()
        """By rule, bytes that were sent while another response had to wait by that rule."""
        self.wrong: Counter[tuple[str, str, str]] = Counter()
        """By rule, what was sent and what should have been, bytes."""
        self.ahead: Counter[tuple[int, int]] = Counter()
        """By which of two streams that share is ahead of the other."""
        self.most_ahead = 0
        self.sent_again = 0
        for event in events:
            self.on_event(event.get("time", 0.0), event.get("name", ""), event.get("data", {}))

    def on_event(self, time: float, name: str, data: dict) -> None:
        match name:
            case "transport:parameters_set" if data["owner"] == "remote":
                self.stream_limit = data["initial_max_stream_data_bidi_local"]
            case "transport:packet_received":
                for frame in data["frames"]:
                    self.on_received(frame)
            case "http:frame_parsed":
                self.on_http(time, data["stream_id"], data["frame"])
            case "transport:data_moved" if data["from"] == "application":
                if response := self.responses.get(data["stream_id"]):
                    response.written += data["length"]
            case "transport:packet_sent":
                for frame in data["frames"]:
                    if frame["frame_type"] == "stream" and frame["stream_id"] in self.responses:
                        self.on_sent(time, self.responses[frame["stream_id"]], frame)

    def on_received(self, frame: dict) -> None:
        response = self.responses.get(frame.get("stream_id", -1))
        if response is None:
            return
        if frame["frame_type"] == "max_stream_data":
            response.limit = max(response.limit, frame["maximum"])
        if frame["frame_type"] in ("stop_sending", "reset_stream"):
            response.abandoned = True

    def on_http(self, time: float, stream: int, frame: dict) -> None:
        if frame["frame_type"] == "priority_update":
            self.on_update(frame["element_id"], frame["value"])
            return
        headers = [(header["name"], header["value"]) for header in frame["headers"]]
        path = dict(headers)[":path"]
        lines = [value for name, value in headers if name == "priority"]
        asked = ", ".join(lines) if lines else None
        limit = self.stream_limit
        priority = understood(asked or "", Priority())
        self.responses[stream] = Response(stream, limit, path, asked, time, priority)
        if update := self.early_updates.pop(stream, None):
            self.on_update(stream, update)

    def on_update(self, stream: int, value: str) -> None:
        response = self.responses.get(stream)
        if response is None:
            self.early_updates[stream] = value
            return
        response.updates.append(value)
        response.priority = understood(value, response.priority)
        for pair in [pair for pair in self.ahead if stream in pair]:
            del self.ahead[pair]

    def on_sent(self, time: float, response: Response, frame: dict) -> None:
        length, end = frame["length"], frame["offset"] + frame["length"]
        new = end - response.sent
        if new > 0:
            self.judge(response, new)
            response.sent = end
            response.first = time if response.first is None else response.first
            response.last = time
        elif length > 0:
            self.sent_again += length
        response.finished |= frame["fin"]

    def judge(self, sent: Response, length: int) -> None:
        others = [r for r in self.responses.values() if r.waits and r is not sent]
        contested = set()
        for other in others:
            rule, right = relation(sent, other)
            contested.add(rule)
            if not right:
                self.wrong[rule, describe(sent), describe(other)] += length
        self.contested.update({rule: length for rule in contested if rule})
        self.share(sent, others, length)

    def share(self, sent: Response, others: list[Response], length: int) -> None:
        """Keeps the accounts of those that share; an account is closed when one has no more."""
        together = [r for r in others if r.priority.incremental] + [sent]
        together = [r for r in together if r.priority == sent.priority] if sent.waits else []
        waiting = {response.stream for response in others} | {sent.stream}
        for pair in [pair for pair in self.ahead if not waiting.issuperset(pair)]:
            del self.ahead[pair]
        for a, b in itertools.combinations(sorted(r.stream for r in together), 2):
            if sent.stream not in (a, b) or not sent.priority.incremental:
                continue
            self.ahead[a, b] += length if sent.stream == a else -length
            gap = abs(self.ahead[a, b])
            self.most_ahead = max(self.most_ahead, gap)
            if gap > MOST_AHEAD:
                other = self.responses[b if sent.stream == a else a]
                self.wrong["sharing", describe(sent), describe(other)] += length


def relation(sent: Response, other: Response) -> tuple[str | None, bool]:
    """The rule between one that is sent and one that waits, and whether it permits that. `sharing`
    is judged by accounts, and what is between the incremental and others is left open."""
    if sent.priority.urgency != other.priority.urgency:
        return "urgency", sent.priority.urgency < other.priority.urgency
    match sent.priority.incremental, other.priority.incremental:
        case False, False:
            return "order", sent.stream < other.stream
        case True, True:
            return "sharing", True
        case _:
            return None, True


def describe(response: Response) -> str:
    return f"{response.path} ({response.priority})"


def read(directory: Path) -> list[Trace]:
    """The connections in a directory that had requests."""
    traces = []
    for file in sorted(directory.glob("*_server.sqlog")):
        records = file.read_text().split("\x1e")[1:]
        traces.append(Trace(json.loads(record) for record in records))
    return [trace for trace in traces if trace.responses]


def complaints(traces: list[Trace], expected: list[str], responses: int | None) -> list[str]:
    """What is wrong, for people to read."""
    found = []
    for trace in traces:
        for (rule, sent, other), length in trace.wrong.most_common():
            found.append(f"{rule}: {length} bytes of {sent} while {other} waited")
        unfinished = [r for r in trace.responses.values() if not (r.finished or r.abandoned)]
        found += [f"{describe(r)} was not finished" for r in unfinished]
    for rule in expected:
        contested = sum(trace.contested[rule] for trace in traces)
        if contested < LEAST_CONTESTED:
            found.append(f"{rule}: only {contested} bytes say anything about it")
    got = sum(len(trace.responses) for trace in traces)
    if responses is not None and got != responses:
        found.append(f"{got} responses instead of {responses}")
    return found


def order(traces: list[Trace]) -> list[str]:
    """The paths in the order in which their responses were complete."""
    responses = [r for trace in traces for r in trace.responses.values()]
    return [r.path for r in sorted(responses, key=lambda r: r.last)]


def summary(traces: list[Trace]) -> str:
    kilobytes = {rule: sum(t.contested[rule] for t in traces) // 1000 for rule in RULES}
    contested = ", ".join(f"{amount} kB {rule}" for rule, amount in kilobytes.items() if amount)
    responses = sum(len(trace.responses) for trace in traces)
    updates = sum(len(r.updates) for trace in traces for r in trace.responses.values())
    most_ahead = max((trace.most_ahead for trace in traces), default=0)
    return (
        f"{responses} responses, {updates} updates, at stake: {contested}; "
        f"at most {most_ahead} bytes ahead, {sum(t.sent_again for t in traces)} sent again"
    )


def table(loads: list[list[Trace]]) -> list[str]:
    """A row for each response: what was asked, and when it was sent in each load."""
    rows = []
    for first in sorted((r for t in loads[0] for r in t.responses.values()), key=lambda r: r.last):
        said = "" if first.field is None else f"`{first.field}`"
        updates = ", then ".join(f"`{update}`" for update in first.updates)
        cells = [first.path, f"{first.sent // 1000}", said, updates]
        for traces in loads:
            start = min(r.requested for t in traces for r in t.responses.values())
            same = (r for t in traces for r in t.responses.values() if r.path == first.path)
            response = next(same)
            begin = start if response.first is None else response.first
            cells.append(f"{begin - start:.0f} to {response.last - start:.0f}")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expect", default="urgency", help="rules that must have been at stake")
    parser.add_argument("--responses", type=int, help="how many there must be")
    parser.add_argument("--same-order-as", type=Path, help="qlog of a load of the same order")
    parser.add_argument("--table", action="store_true", help="print a table of the loads instead")
    parser.add_argument("directories", nargs="+", type=Path, help="qlog of a load each")
    args = parser.parse_args()
    loads = [read(directory) for directory in args.directories]
    if args.table:
        print("\n".join(table(loads)))
        return 0
    traces = [trace for load in loads for trace in load]
    found = complaints(traces, args.expect.split(","), args.responses)
    if args.same_order_as and order(traces) != (other := order(read(args.same_order_as))):
        found.append(f"completed in the order {order(traces)}, not {other}")
    print(summary(traces))
    print("\n".join(found), end="\n" if found else "")
    return WRONG if found else 0


if __name__ == "__main__":
    sys.exit(main())
