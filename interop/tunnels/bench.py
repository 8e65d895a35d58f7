"""Does the same jobs through tunnels and without one over the same bad links, by rounds: a line of JSON for each run, and a
page of all. README.md says what is measured."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / "others"), str(Path(__file__).parents[1])]

from chromium import Chromium
from jobs import encoded
from measure import made
from process import FEED, Failed, Run
from report import Results
from tun_path import FAR, allow, inside, sweep
from tunnel_jobs import FULL, JOBS, LINKS, QUICK, WIRE, WIRE_JOBS, Job, Length, Link, request
from tunnel_report import page
from tunnel_systems import PAGE, SYSTEMS, TCP, TUNNEL, UDP, WIRE_SYSTEMS, Entrance, Session, System, path_of

TRAFFIC = [sys.executable, str(Path(__file__).with_name("traffic.py"))]
MAKE_PAGE = [sys.executable, str(Path(__file__).parents[1] / "make_page.py")]
PACKAGES = {"ip": "iproute2", "socat": "socat", "setpriv": "util-linux", "openssl": "openssl"}
# Seconds that a run may take for opening and for a job.
LONGEST = 180.0


@dataclass(frozen=True)
class Planned:
    """One run."""

    system: System
    job: Job
    link: Link
    round: int


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first round [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="one round of short jobs over the first link and without loss")
    parser.add_argument("--seconds", type=float, help=f"how long streams are; typed sessions are twice as long [{FULL.seconds:g}]")
    parser.add_argument("--link", action="append", help="only links whose name begins so; may be repeated")
    parser.add_argument("--job", action="append", help="only this job; may be repeated")
    parser.add_argument("--system", action="append", help="only systems whose name begins so; may be repeated")
    parser.add_argument("--results", type=Path, help="append the lines of JSON to this file, too")
    parser.add_argument("--report", type=Path, help="write the page")
    parser.add_argument("--from", dest="read", type=Path, action="append", help="make the page of these lines, and run nothing")
    parser.add_argument("--must", metavar="FAMILY", help="fail if a run of this system fails, or there is none")
    parser.add_argument("--list", action="store_true", help="what is there and what is not, and how many runs it makes")
    return parser.parse_args()


# One run


def serve(session: Session, job: Job, entrance: Entrance) -> list:
    """Starts the job's other end; gives the children that print figures."""
    run, far = session.run, session.ends.far
    match job.needs:
        case "tcp" | "bulk":
            run.start("feed", inside(far, *FEED, "tcp-serve", "0.0.0.0", TCP), wait_for="ready")
        case "udp":
            answer_to = entrance.answer_to or ()
            command = [*TRAFFIC, "answer-datagrams", "0.0.0.0", UDP, *answer_to]
            return [run.start("answer", inside(far, *command), wait_for="ready")]
        case "page":
            run.finish("make-page", [*MAKE_PAGE, run.directory / "page"])
            run.start("site", inside(far, *TRAFFIC, "page", "0.0.0.0", PAGE, run.directory / "page"), wait_for="ready")
    return []


def figures(session: Session, job: Job, entrance: Entrance, asked: dict) -> dict:
    """Does a job, whose other end is there."""
    text = encoded(asked)
    client = lambda *command: json.loads(session.run.finish("client", inside(session.ends.near, *TRAFFIC, *command)))
    match job.name:
        case "typed":
            return client("typed", *entrance.tcp, text)
        case "download" | "bulk":
            return client("download", *entrance.tcp, text)
        case "page":
            return browse(session, entrance, asked)
        case _:
            own = [] if entrance.own is None else [entrance.own]
            return client("datagrams", *entrance.udp, text, *own)


def joined(parts: list[dict]) -> dict:
    """The figures of both directions."""
    return {key: sum((part[key] for part in parts[1:]), parts[0][key]) for key in parts[0]}


def browse(session: Session, entrance: Entrance, asked: dict) -> dict:
    """Loads the page some times, each time in a browser that knows nothing of it."""
    options = ["--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-sync"]
    if entrance.proxy:
        options.append(f"--proxy-server={entrance.proxy}")
    host, port = entrance.page
    # It takes all the time that there is: in turns with the others, not before them.
    prefix = inside(session.ends.near, "chrt", "--other", 0, "nice", "-n", -15)
    times = []
    for _ in range(asked["loads"]):
        # Its children may write a little longer than it lives.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            browser = Chromium(shutil.which("chromium"), profile, *options, prefix=prefix)
            # One that waits for ever is ended, so that it says so.
            watchdog = threading.Timer(asked["within_s"], browser.process.kill)
            watchdog.start()
            try:
                times.append(load(browser, f"http://{host}:{port}/"))
            except RuntimeError as error:
                if "has ended" not in str(error):
                    raise Failed(f"chromium: {error}") from None
                times.append(None)
            finally:
                watchdog.cancel()
                browser.end()
    return {"values_ms": times}


# Empty until the page is loaded; then the milliseconds that it took, or none if it is the browser's own page of an error.
LOADED = """(() => { const t = performance.timing;
  return t.loadEventEnd && location.href != "about:blank"
    ? (document.title ? t.loadEventEnd - t.navigationStart : -1) : 0 })()"""


def load(browser: Chromium, url: str) -> float:
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime"):
        browser.call(f"{domain}.enable", session)
    if trouble := browser.call("Page.navigate", session, url=url).get("errorText"):
        raise RuntimeError(trouble)
    while True:
        took = browser.call("Runtime.evaluate", session, expression=LOADED)["result"].get("value", 0)
        if took:
            return float(took)
        time.sleep(0.05)


def get(session: Session, system: System, asked: dict) -> dict:
    """The same transfer without a tunnel, by `sutura get`."""
    sutura, directory = system.path("sutura"), session.run.directory
    session.run.certificate()
    (directory / "www").mkdir()
    with (directory / "www/bulk").open("wb") as file:
        for _ in range(asked["bytes"] >> 20):
            file.write(os.urandom(1 << 20))
    server = [sutura, "serve", "www", "--listen", f"{FAR}:{TUNNEL}", "--cert", "cert.pem", "--key", "key.pem", "--json"]
    session.far("serve", server, wait_for="listening")
    start = time.monotonic()
    child = session.near("get", [sutura, "get", f"https://{FAR}:{TUNNEL}/bulk", "-k", "-s", "-o", "/dev/null"])
    session.programs["near"].remove(child)
    # The time of a process that has ended is only known to who waits for it.
    before = os.times().children_user + os.times().children_system
    child.result(asked["within_s"])
    used = os.times().children_user + os.times().children_system - before
    return {"bytes": asked["bytes"], "download_s": time.monotonic() - start, "near_cpu_s": used}


def measured(planned: Planned, length: Length, seed: int, run: Run) -> dict:
    system, job, link = planned.system, planned.job, planned.link
    asked = request(job, link, length, seed)
    ends = path_of(run, link, seed)
    ends.use("cubic")
    session = Session(run, ends, link)
    entrance = system.open(system, session)
    if system.family == "sutura-get":
        done = get(session, system, asked)
        extra = done.pop("near_cpu_s")
    else:
        answering = serve(session, job, entrance)
        parts = [figures(session, job, entrance, asked)]
        parts += [json.loads(child.result(run.limit).splitlines()[-1]) for child in answering]
        done, extra = joined([part for part in parts if part.get("datagrams") != 0]), 0.0
    used = session.cpu()
    used["near"] += extra
    has_programs = any(session.programs.values())
    return done | {"cpu_s": used if has_programs else None, "wire": ends.stop()}


def run_once(planned: Planned, length: Length, seed: int) -> dict:
    """One run as a line of the results. That it fails is a result."""
    started = time.monotonic()
    system = planned.system
    result = {
        "system": system.name,
        "family": system.family,
        "version": system.version(system),
        "job": planned.job.name,
        "point": planned.link.name,
        "seed": seed,
        "repetition": planned.round,
        "streams_s": length.seconds,
    }
    try:
        with Run(LONGEST) as run:
            result |= measured(planned, length, seed, run) | {"outcome": "ok"}
    except (Failed, OSError, ValueError, KeyError, IndexError, RuntimeError, subprocess.SubprocessError) as error:
        result["outcome"] = f"failed: {error}"
    return result | {"seconds": time.monotonic() - started}


# All


def chosen(systems: list[System], wanted: argparse.Namespace) -> list[System]:
    return [s for s in systems if not wanted.system or any(s.name.startswith(name) for name in wanted.system)]


def plan(wanted: argparse.Namespace, left_out: dict[str, str]) -> list[Planned]:
    """All runs, in the order in which they are made: systems in turns, another one first in each round."""
    runs = []
    links = [link for link in [*LINKS, WIRE] if not wanted.link or any(link.name.startswith(name) for name in wanted.link)]
    if wanted.quick and not wanted.link:
        links = [LINKS[0], WIRE]
    for number in range(1 if wanted.quick else wanted.rounds):
        for link in links:
            jobs, systems = (WIRE_JOBS, WIRE_SYSTEMS) if link is WIRE else (JOBS, SYSTEMS)
            there = [system for system in chosen(systems, wanted) if system.family not in left_out]
            first = number % max(1, len(there))
            for job in jobs:
                if not wanted.job or job.name in wanted.job:
                    able = [system for system in there[first:] + there[:first] if job.needs not in system.refuses]
                    runs += [Planned(system, job, link, number) for system in able]
    return runs


def absent() -> dict[str, str]:
    """The systems that are not here, and why."""
    reasons = {}
    for system in [*SYSTEMS, *WIRE_SYSTEMS]:
        if system.family not in reasons and (reason := system.unavailable()):
            reasons[system.family] = reason
    return reasons


def unfit() -> str | None:
    """Why nothing can be measured on this machine."""
    missing = [package for tool, package in PACKAGES.items() if not shutil.which(tool)]
    if missing:
        return f"MISSING: apt-get install {' '.join(missing)}"
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return "MISSING: root and /dev/net/tun, for network namespaces"
    return None


def come_first() -> None:
    """Has all that is started from now on run before other work of the machine, which would delay it by milliseconds."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("other work of the machine may come first", file=sys.stderr)


def measure(planned: list[Planned], wanted: argparse.Namespace) -> list[dict]:
    length = QUICK if wanted.quick else FULL
    if wanted.seconds:
        length = Length(wanted.seconds, length.download, length.bulk, length.pages)
    runs = []
    with contextlib.ExitStack() as stack:
        sweep()
        allow(stack, {"cubic", "bbr"})
        come_first()
        for one in planned:
            runs.append(run_once(one, length, wanted.seed + one.round))
            line = json.dumps(runs[-1])
            print(line, flush=True)
            if wanted.results:
                with wanted.results.open("a") as results:
                    results.write(line + "\n")
    return runs


def main() -> int:
    wanted = arguments()
    # What was started is ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    left_out = absent()
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}", file=sys.stderr)
    if wanted.read:
        runs = [json.loads(line) for file in wanted.read for line in file.open()]
    else:
        if reason := unfit():
            sys.exit(f"bench.py: {reason}")
        planned = plan(wanted, left_out)
        if wanted.list:
            print(f"{len(planned)} runs of {', '.join(dict.fromkeys(one.system.name for one in planned))}")
            return 0
        runs = measure(planned, wanted)
    if wanted.report:
        head = made("interop/tunnels/run.sh", runs) | {"measurements": len(wanted.read or [None])}
        wanted.report.write_text(page(Results(runs), head, left_out))
    ok = sum(run["outcome"] == "ok" for run in runs)
    print(f"{ok} passed, {len(runs) - ok} failed", file=sys.stderr)
    if wanted.must:
        outcomes = [run["outcome"] for run in runs if run["family"] == wanted.must]
        return 0 if outcomes and all(outcome == "ok" for outcome in outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
