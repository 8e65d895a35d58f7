#!/usr/bin/env python3
"""Looks at the live page of `sutura serve` in headless Chromium, while files come over a path that loses packets: the
figures move, and the page asks nobody but its own server. `--screenshot FILE` keeps what is seen."""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from chromium import Chromium

PATIENCE = 60
WANTED = ["Connections", "Sent", "Lost", "Recovered", "Round trip, median"]
# The text of the page, how many lines its plots draw, and how many figures they are drawn from.
LOOK = """JSON.stringify({text: document.body.innerText,
  lines: [...document.querySelectorAll("path")].filter(p => p.getAttribute("d")).length,
  rows: document.querySelectorAll("#rows tr").length / 2, figures: history.length,
  recovered: before ? before.totals.recovered + before.totals.recovered_by_peer : 0})"""


def listening(command):
    """Starts a command that says in a line of JSON where it listens. Returns it with what it says."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, json.loads(process.stdout.readline())


def look(browser, session):
    result = browser.call("Runtime.evaluate", session, expression=LOOK)["result"]
    # There is no value until the page is there.
    return json.loads(result["value"]) if "value" in result else {"figures": 0}


def watch(browser, page):
    """Waits until the page shows what moves. Returns the session, and what was seen."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ["Page", "Runtime", "Network", "Log"]:
        browser.call(f"{domain}.enable", session)
    browser.call("Page.navigate", session, url=page)
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = look(browser, session)
        if seen["figures"] >= 15 and seen["recovered"] > 0 and seen["rows"] > 0:
            return session, seen
        if time.monotonic() > deadline:
            raise RuntimeError(f"the page does not show what connections do: {seen}")
        time.sleep(0.5)


def faults(browser, page, seen):
    """What is wrong with the page."""
    for word in WANTED:
        if word not in seen["text"]:
            yield f"the page does not say {word!r}"
    if seen["lines"] < 6:
        yield f"only {seen['lines']} lines are drawn"
    for event in browser.events:
        parameters = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(page):
                yield f"the page asks for {url}"
        elif event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
            if "favicon" not in json.dumps(parameters):
                yield f"the page complains: {parameters}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sutura", default="target/release/sutura")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    parser.add_argument("--screenshot", type=pathlib.Path)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    started = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "www").mkdir()
        (scratch / "www/film.bin").write_bytes(os.urandom(60_000_000))
        for number in range(400):
            (scratch / f"www/{number}.bin").write_bytes(os.urandom(20_000))
        try:
            serve, said = listening([
                options.sutura, "serve", scratch / "www", "--listen", "127.0.0.1:0", "--json", "--dashboard",
                "127.0.0.1:0", "--state-dir", scratch / "state"])
            started.append(serve)
            page = serve.stderr.readline().split()[0]
            link, through = listening([
                options.sutura, "link", "--to", said["listening"], "--listen", "127.0.0.1:0", "--json",
                "--profile", "rate=20mbit delay=20ms loss=bern:0.02"])
            started.append(link)
            site = f"https://{through['listening']}"
            short = [f"{site}/{number}.bin" for number in range(400)]
            for name, urls in [("film", [f"{site}/film.bin"]), ("short", short)]:
                (scratch / name).mkdir()
                started.append(subprocess.Popen([
                    options.sutura, "get", *urls, "--ca", said["certificate"], "--fec", "3", "-o",
                    f"{scratch / name}/", "--silent", "--parallel", "1"]))
            browser = Chromium(options.chromium, scratch / "profile", *(["--force-dark-mode"] if options.dark else []))
            started.append(browser.process)
            session, seen = watch(browser, page)
            if options.screenshot:
                shot = browser.call("Page.captureScreenshot", session, format="png")
                options.screenshot.write_bytes(base64.b64decode(shot["data"]))
            found = list(faults(browser, page, seen))
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()
    print(*found or [f"ok: {seen['lines']} lines, {seen['rows']} connections, {seen['recovered']} recovered"], sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
