"""Runs the jobs with all systems that are there: a line of JSON for each run, and a page of all."""

import argparse
import datetime
import json
import os
import platform
import sys
import time
from pathlib import Path

from jobs import JOBS, Job, Point
from process import Failed, Run
from report import Results, page
from systems import LEFT_OUT, SYSTEMS, System

# Seconds that a run may take beyond what its request takes.
SLACK = 20.0
# Seconds that a run takes on average.
TYPICAL = 7.0
# Seconds that a run of downloads may take.
LONGEST = 90.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", action="append", help="only this job; may be repeated")
    parser.add_argument("--system", action="append", help="only systems whose name begins so; may be repeated")
    parser.add_argument("--point", type=int, help="only this point of each job, from 0")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first repetition")
    parser.add_argument("--results", type=Path, help="append the lines of JSON to this file, too")
    parser.add_argument("--report", type=Path, help="write the page")
    parser.add_argument("--from", dest="read", type=Path, help="make the page of these lines, and run nothing")
    parser.add_argument("--must", metavar="FAMILY", help="fail if a run of this system fails, or there is none")
    parser.add_argument("--list", action="store_true", help="what is there and what is not, and how many runs it makes")
    return parser.parse_args()


def run_once(system: System, job: Job, point: Point, seed: int, repetition: int) -> dict:
    """One run as a line of the results. That it fails is a result."""
    started = time.monotonic()
    result = {
        "system": system.name,
        "family": system.family,
        "version": system.version(system),
        "job": job.name,
        "point": point.name,
        "up": point.up,
        "down": point.down,
        "seed": seed,
        "repetition": repetition,
    }
    try:
        with Run(min(point.duration(), LONGEST) + SLACK) as run:
            values, counters = system.run(system, run, point, seed)
    except (Failed, OSError, ValueError, KeyError, IndexError) as error:
        return result | {"outcome": f"failed: {error}", "seconds": time.monotonic() - started}
    result["seconds"] = time.monotonic() - started
    return result | {"outcome": "ok", "values_ms": [v and round(v, 3) for v in values], "link": counters}


def plan(systems: list[System], jobs: list[Job], wanted: argparse.Namespace) -> list[tuple[System, Job, Point, int]]:
    """All runs, in the order in which they are made: systems in turns, another one first in each repetition."""

    def turns(repetition: int) -> list[System]:
        first = repetition % len(systems) if systems else 0
        return systems[first:] + systems[:first]

    return [
        (system, job, point, repetition)
        for repetition in range(wanted.repetitions)
        for job in jobs
        for index, point in enumerate(job.points)
        if wanted.point in (None, index)
        for system in turns(repetition)
        if system.carries(point)
    ]


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{model}, {os.cpu_count()} threads, {platform.system().lower()}"


def made(script: str, runs: list[dict]) -> dict:
    """What a page says of how it was made."""
    return {
        "command": " ".join([script, *sys.argv[1:]]),
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
        "minutes": sum(run["seconds"] for run in runs) / 60,
        "repetitions": 1 + max((run["repetition"] for run in runs), default=0),
    }


def main() -> int:
    wanted = arguments()
    chosen = [s for s in SYSTEMS if not wanted.system or any(s.name.startswith(name) for name in wanted.system)]
    left_out = dict(LEFT_OUT) | {s.family: reason for s in chosen if (reason := s.missing())}
    systems = [system for system in chosen if system.family not in left_out]
    jobs = [job for job in JOBS if not wanted.job or job.name in wanted.job]
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}", file=sys.stderr)
    runs = [json.loads(line) for line in wanted.read.open()] if wanted.read else []
    planned = [] if wanted.read else plan(systems, jobs, wanted)
    if wanted.list:
        print(f"{len(planned)} runs, about {len(planned) * TYPICAL / 60:.0f} minutes, of {', '.join(system.name for system in systems)}")
        return 0
    for system, job, point, repetition in planned:
        runs.append(run_once(system, job, point, wanted.seed + repetition, repetition))
        line = json.dumps(runs[-1])
        print(line, flush=True)
        if wanted.results:
            with wanted.results.open("a") as results:
                results.write(line + "\n")
    if wanted.report:
        wanted.report.write_text(page(Results(runs), jobs, made("interop/others/run.sh", runs), left_out))
    ok = sum(run["outcome"] == "ok" for run in runs)
    print(f"{ok} passed, {len(runs) - ok} failed", file=sys.stderr)
    if wanted.must:
        outcomes = [run["outcome"] for run in runs if run["family"] == wanted.must]
        return 0 if outcomes and all(outcome == "ok" for outcome in outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
