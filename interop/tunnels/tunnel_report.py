"""What runs say: the figures of a run, and a page of all."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "others"))

from report import INFINITE, Metric, Results, Spread, median, number, percentile
from tunnel_jobs import JOBS, LINKS, WIRE, WIRE_JOBS, Job, Link, limit_ms
from tunnel_systems import SYSTEMS, WIRE_SYSTEMS, System

GIB = 1 << 30


def missing(run: dict, _: Link) -> float:
    """Percent of the messages that did not arrive."""
    return 100 * sum(value is None for value in run["values_ms"]) / len(run["values_ms"])


def lost(run: dict, _: Link) -> float:
    """Percent of the datagrams that did not arrive."""
    return 100 * (1 - run["came"] / run["datagrams"])


def late(run: dict, link: Link) -> float:
    """Percent of the messages that came, and too late."""
    limit = limit_ms(run["job"], link)
    return 100 * sum(value is not None and value > limit for value in run["values_ms"]) / len(run["values_ms"])


def on_time(run: dict, link: Link) -> float:
    return 100 - missing(run, link) - late(run, link)


def wire(run: dict) -> int:
    """Bytes on the link in both directions, with the headers of IP; those that it lost, too."""
    return run["wire"]["up"]["sent_bytes"] + run["wire"]["down"]["sent_bytes"]


def cpu(run: dict, *ends: str) -> float:
    """Seconds of CPU of the system's programs."""
    return sum(run["cpu_s"][end] for end in ends or ("near", "far"))


def per_gib(*ends: str):
    return lambda run, _: cpu(run, *ends) * GIB / run["bytes"] if run["bytes"] else INFINITE


def middle(run: dict, _: Link) -> float:
    """The median of few values."""
    return median([INFINITE if value is None else value for value in run["values_ms"]])


def delay(share: float):
    return lambda run, _: percentile(run["values_ms"], share)


def delay_of_those_that_came(share: float):
    return lambda run, _: percentile((value for value in run["values_ms"] if value is not None), share)


METRICS = {
    "p50": Metric("Median, ms", delay(0.5), INFINITE, 1),
    "p99": Metric("99th percentile, ms", delay(0.99), INFINITE, 1),
    "p50 came": Metric("Median of what came, ms", delay_of_those_that_came(0.5), INFINITE, 1),
    "p99 came": Metric("99th percentile of what came, ms", delay_of_those_that_came(0.99), INFINITE, 1),
    "longest": Metric("Longest, ms", delay(1), INFINITE),
    "added": Metric("Median beyond TCP's, ms", lambda run, _: percentile(run["values_ms"], 0.5) - run["beside_ms"], INFINITE, 2),
    "missing": Metric("Missing, %", missing, 100.0, 1),
    "lost": Metric("Lost, %", lost, 100.0, 2),
    "late": Metric("Late, %", late, 100.0, 1),
    "on time": Metric("Frames on time, %", on_time, 0.0, 1),
    "incomplete": Metric("Never complete, %", missing, 100.0, 1),
    "goodput": Metric("Goodput, Mbit/s", lambda run, _: run["bytes"] * 8e-6 / run["download_s"], 0.0, 2),
    "wire": Metric("On the wire both ways, kB", lambda run, _: wire(run) / 1e3, INFINITE),
    "middle": Metric("Median of the loads, ms", middle, INFINITE),
    "wire load": Metric("On the wire for each load, kB", lambda run, _: wire(run) / 1e3 / len(run["values_ms"]), INFINITE),
    "cpu load": Metric("CPU for each load, ms", lambda run, _: 1e3 * cpu(run) / len(run["values_ms"]), INFINITE),
    "cost": Metric("Bytes on the wire for each that came", lambda run, _: wire(run) / (run["bytes"] or 1), INFINITE, 2),
    "cpu": Metric("CPU of both ends, ms", lambda run, _: 1e3 * cpu(run), INFINITE),
    "cpu near": Metric("CPU of the near end, s for each GiB", per_gib("near"), INFINITE, 2),
    "cpu far": Metric("CPU of the far end, s for each GiB", per_gib("far"), INFINITE, 2),
    "cpu both": Metric("CPU of both ends, s for each GiB", per_gib(), INFINITE, 2),
}


def cell(name: str, runs: list[dict], link: Link) -> str:
    done = [run for run in runs if run["outcome"] == "ok"]
    if name.startswith("cpu") and done and all(run["cpu_s"] is None for run in done):
        return "kernel"
    metric = METRICS[name]
    spread = Spread.of(metric, runs, link)
    return number(spread.middle, metric.digits) if spread.runs == 1 and not spread.failed else spread.cell(metric.digits)


def row(system: System, job: Job, runs: list[dict], link: Link, left_out: dict[str, str]) -> str:
    if runs:
        cells = [cell(name, runs, link) for name in job.metrics]
    else:
        reason = system.refuses.get(job.needs) or ("left out" if system.family in left_out else "not run")
        cells = [reason] + ["–"] * (len(job.metrics) - 1)
    return f"| {system.name} | " + " | ".join(cells) + " |"


def table(results: Results, job: Job, link: Link, systems: list[System], left_out: dict[str, str]) -> list[str]:
    titles = [METRICS[name].title for name in job.metrics]
    lines = ["| system | " + " | ".join(titles) + " |", "| --- |" + " --- |" * len(titles)]
    return lines + [row(system, job, results.of(job.name, system.name, link.name), link, left_out) for system in systems]


def beside_tcp(runs: list[dict]) -> None:
    """Notes in each session without loss what the median over TCP alone was in that round."""
    sessions = [run for run in runs if run["point"] == WIRE.name and run["job"] == "typed" and run["outcome"] == "ok"]
    plain = {run["repetition"]: percentile(run["values_ms"], 0.5) for run in sessions if run["family"] == "kernel"}
    for run in sessions:
        run["beside_ms"] = plain.get(run["repetition"], median(list(plain.values())) if plain else 0.0)


def measured(results: Results, job: Job, links: list[Link]) -> list[Link]:
    there = {run["point"] for run in results.runs if run["job"] == job.name}
    return [link for link in links if link.name in there]


HOW_TO_READ = (
    "In each cell: the median of the rounds, and in brackets the smallest and the largest, if there are several. The wire is counted at the link, "
    "in both directions, with the headers of IP, from the first packet of the run to the last, so that handshakes are in it; "
    "what the link loses counts. CPU is the user and system time of the system's own programs at both ends, from their "
    "start; work that the kernel does for nobody's process, such as that for packets that arrive, is in no figure, and so "
    "there is none for TCP alone. By satellite the limits are longer by what the path's delay is longer."
)


def lengths(runs: list[dict]) -> str:
    """The seconds of streams, which are the same in all runs unless results of several measurements are read."""
    return " or ".join(f"{seconds:g}" for seconds in sorted({run["streams_s"] for run in runs}))


def turns(measurements: int) -> str:
    """How systems took turns."""
    return "all systems in turns" if measurements == 1 else f"in {measurements} measurements, in each all of its systems in turns"


def head(results: Results, made: dict, left_out: dict[str, str]) -> list[str]:
    versions = dict(sorted({run["family"]: run["version"] for run in results.runs}.items()))
    late_ms = [run["wire"]["late_ms"]["mean"] for run in results.runs if run["outcome"] == "ok" and "late_ms" in run["wire"]]
    lines = ["# Tunnels over bad links", "", "<!-- Generated. Do not edit. -->", ""]
    lines += [f"Made by `{made['command']}` on {made['machine']}, {made['date']}. The runs took {made['minutes']:.0f} minutes.", ""]
    lines += [
        "The same jobs through tunnels and without one, in network namespaces joined by an emulated link: "
        "[interop/tunnels](../../interop/tunnels/README.md) says what each system is and how it is set. Rounds: at most "
        f"{made['repetitions']}, {turns(made['measurements'])}, with the same seeds; streams of {lengths(results.runs)} s, typed "
        "sessions of twice as many. All was in real time: the link passed packets "
        f"on {max(late_ms, default=0):.2f} ms late on average in the worst run.",
        "",
        HOW_TO_READ,
        "",
        "Versions: " + ", ".join(f"{family} {version}" for family, version in versions.items()) + ".",
        "",
    ]
    if left_out:
        lines += ["Left out:", "", *(f"- {name}: {reason}" for name, reason in left_out.items()), ""]
    lines += ["| link | each way |", "| --- | --- |"]
    return lines + [f"| {link.name} | `{link.profile}` |" for link in LINKS] + [""]


def page(results: Results, made: dict, left_out: dict[str, str]) -> str:
    beside_tcp(results.runs)
    lines = head(results, made, left_out)
    for job in JOBS:
        links = measured(results, job, LINKS)
        if links:
            lines += [f"## {job.title}", "", job.text, ""]
        for link in links:
            lines += [f"{link.name}:", "", *table(results, job, link, SYSTEMS, left_out), ""]
    for job in WIRE_JOBS:
        if measured(results, job, [WIRE]):
            lines += [f"## Without loss: {job.title[0].lower()}{job.title[1:]}", "", job.text + " Over a plain wire.", ""]
            lines += [*table(results, job, WIRE, WIRE_SYSTEMS, left_out), ""]
    for job in {job.name: job for job in [*JOBS, *WIRE_JOBS]}.values():
        _, *failures = results.failures(job) or [""]
        if failures:
            lines += [f"{job.title}, failed:", *failures]
    return "\n".join(lines).rstrip() + "\n"
