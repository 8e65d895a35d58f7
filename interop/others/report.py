"""What runs say: figures of a run, tables of all, and who is ahead where."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jobs import Job, Point

INFINITE = math.inf


def percentile(values: Iterable[float | None], share: float) -> float:
    """The value below which this share is; what did not arrive took for ever."""
    ordered = sorted(INFINITE if value is None else value for value in values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else INFINITE


def median(values: list[float]) -> float:
    """The middle value, or the mean of both."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True)
class Metric:
    """A figure of a run."""

    title: str
    of: Callable[[dict, Point], float]
    # What a run that failed counts as.
    worst: float
    digits: int = 0

    def value(self, run: dict, point: Point) -> float:
        return self.of(run, point) if run["outcome"] == "ok" else self.worst



def on_time(run: dict, point: Point) -> float:
    values = run["values_ms"]
    return 100 * sum(value is not None and value <= point.limit_ms for value in values) / len(values)


def cost(run: dict, point: Point) -> float:
    return run["link"]["down"]["sent_bytes"] / point.payload()


def missing(run: dict, _: Point) -> float:
    return 100 * sum(value is None for value in run["values_ms"]) / len(run["values_ms"])


METRICS = {
    "median": Metric("Median, ms", lambda run, _: percentile(run["values_ms"], 0.5), INFINITE),
    "p90": Metric("90th percentile, ms", lambda run, _: percentile(run["values_ms"], 0.9), INFINITE),
    "p99": Metric("99th percentile, ms", lambda run, _: percentile(run["values_ms"], 0.99), INFINITE),
    "on time": Metric("On time, %", on_time, 0.0, digits=1),
    "missing": Metric("Did not arrive, %", missing, 100.0, 1),
    "bytes": Metric("Bytes on the link to the client for each byte asked for", cost, INFINITE, 2),
}


def number(value: float, digits: int) -> str:
    return "never" if math.isinf(value) else f"{value:.{digits}f}"


@dataclass(frozen=True)
class Spread:
    """A metric of the repetitions of one system at one point."""

    middle: float
    low: float
    high: float
    failed: int
    runs: int

    @classmethod
    def of(cls, metric: Metric, runs: list[dict], point: Point) -> "Spread":
        values = [metric.value(run, point) for run in runs]
        failed = sum(run["outcome"] != "ok" for run in runs)
        return cls(median(values), min(values), max(values), failed, len(values))

    def cell(self, digits: int) -> str:
        if self.failed == self.runs:
            return f"failed ({self.runs})"
        low, high = number(self.low, digits), number(self.high, digits)
        failed = f", {self.failed} of {self.runs} failed" if self.failed else ""
        return f"{number(self.middle, digits)} [{low} {high}]{failed}"


class Results:
    """All runs, by job, system and point."""

    def __init__(self, runs: list[dict]) -> None:
        self.runs = runs

    def of(self, job: str, system: str, point: str) -> list[dict]:
        wanted = (job, system, point)
        return [run for run in self.runs if (run["job"], run["system"], run["point"]) == wanted]

    def systems(self, job: str) -> list[str]:
        """Those that did a job, in the order of the first repetition."""
        return list(dict.fromkeys(run["system"] for run in self.runs if run["job"] == job))

    def points(self, job: Job) -> list[Point]:
        """The points of a job that were measured."""
        there = {run["point"] for run in self.runs if run["job"] == job.name}
        return [point for point in job.points if point.name in there]

    def table(self, job: Job, metric: Metric) -> list[str]:
        points = self.points(job)
        lines = ["| system | " + " | ".join(point.name for point in points) + " |", "| --- |" + " --- |" * len(points)]
        for system in self.systems(job.name):
            cells = [self.of(job.name, system, point.name) for point in points]
            shown = (Spread.of(metric, runs, point).cell(metric.digits) if runs else "-" for runs, point in zip(cells, points))
            lines.append(f"| {system} | " + " | ".join(shown) + " |")
        return lines

    def order(self, job: Job, point: Point) -> str:
        """Who is ahead: the best median, and those whose spreads meet the best one's."""
        metric = METRICS[job.decides]
        spreads = {}
        for system in self.systems(job.name):
            runs = self.of(job.name, system, point.name)
            if runs:
                spreads[system] = Spread.of(metric, runs, point)
        ranked = sorted(spreads, key=lambda system: spreads[system].middle, reverse=metric.worst == 0)
        best = spreads[ranked[0]]
        apart = lambda other: other.low > best.high if metric.worst > 0 else other.high < best.low
        level = [system for system in ranked if not apart(spreads[system])]
        behind = [system for system in ranked if apart(spreads[system])]
        shown = lambda systems: ", ".join(f"{s} ({number(spreads[s].middle, metric.digits)})" for s in systems) or "none"
        return f"| {point.name} | {shown(level[:1])} | {shown(level[1:])} | {shown(behind)} |"

    def section(self, job: Job) -> list[str]:
        lines = [f"## {job.title}", "", job.text, ""]
        for metric in (METRICS[name] for name in job.metrics()):
            lines += [f"{metric.title}:", "", *self.table(job, metric), ""]
        decides = METRICS[job.decides].title.lower()
        lines += [f"Who is ahead, by the {decides}; level is who has a spread that meets the first one's:", ""]
        lines += ["| point | first | level with it | behind |", "| --- | --- | --- | --- |"]
        lines += [self.order(job, point) for point in self.points(job)]
        return [*lines, "", *self.failures(job)]

    def failures(self, job: Job) -> list[str]:
        """Each reason for a failure once, with how often it was given."""
        counts: dict[str, int] = {}
        for run in self.runs:
            if run["job"] == job.name and run["outcome"] != "ok":
                reason = f"{run['system']}, {run['point']}: {run['outcome'].removeprefix('failed: ')}"
                counts[reason] = counts.get(reason, 0) + 1
        if not counts:
            return []
        return ["Failed:", "", *(f"- {reason} ({count})" for reason, count in counts.items()), ""]


HOW_TO_READ = (
    "kcp-go sends as fast as its window of 512 packets lets it, whatever the path loses: it has no slow start and no "
    "congestion control, which the bytes show, and saves the round trips in which all others find out the rate. On a path "
    "that is shared, others pay for that. The 99th percentile of 50 messages is the slowest one."
)


def page(results: Results, jobs: list[Job], head: dict, left_out: dict[str, str]) -> str:
    versions = {run["family"]: run["version"] for run in results.runs}
    late = [run["link"]["late_ms"]["mean"] for run in results.runs if run["outcome"] == "ok"]
    lines = ["# Beside other systems", "", "<!-- Generated. Do not edit. -->", ""]
    lines += [f"Made by `{head['command']}` on {head['machine']}, {head['date']}. The runs took {head['minutes']:.0f} minutes.", ""]
    lines += [
        "Systems that we did not write, beside Sutura, over UDP sockets through `sutura link`, with the same seeds for all: "
        "[interop/others](../../interop/others/README.md) says what each is and how it is set. "
        f"Repetitions: {head['repetitions']}, all systems in turns; median [smallest largest]. A run that failed counts as "
        "the worst there is. All was in real time: the link passed datagrams on "
        f"{max(late, default=0):.2f} ms late on average in the worst run.",
        "",
        "Versions: " + ", ".join(f"{family} {version}" for family, version in versions.items()) + ".",
        "",
    ]
    lines += [HOW_TO_READ, ""]
    if left_out:
        lines += ["Left out:", "", *(f"- {name}: {reason}" for name, reason in left_out.items()), ""]
    for job in jobs:
        if results.systems(job.name):
            lines += results.section(job)
    return "\n".join(lines).rstrip() + "\n"
