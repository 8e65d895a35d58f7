#!/usr/bin/env python3
"""A real desktop over a lossy path: Xvnc and the stock TigerVNC viewer, through `sutura vnc` and over TCP with CUBIC and
with BBR through the same emulated link, in turns. Over either the pictures are exact, or as TigerVNC sends them by
itself, and the bridge with `--quality 75`: with JPEG where there are many colours, and exact when they are at rest; or
bare, without redundancy.

After each scene (typing, scrolling, a film, dragging a window) the viewer must show the server's screen, pixel by
pixel. Meanwhile it is measured how long after it was drawn each picture is seen, how often the picture freezes,
how many bytes pass the link, and how much CPU time the programs take.

Needs root, for network namespaces; run it by vnc.sh, which says what is missing.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from Xlib import X, display

sys.path.append(str(pathlib.Path(__file__).parent / "others"))

from process import Failed, Run
from tun_path import FAR as SERVER
from tun_path import Emulated, allow, cpu_seconds, inside, sweep

PACKAGES = {"Xvnc": "tigervnc-standalone-server", "vncviewer": "tigervnc-viewer", "Xvfb": "xvfb",
            "ip": "iproute2", "socat": "socat"}
WIDTH, HEIGHT = 1024, 768
SERVER_DISPLAY, VIEWER_DISPLAY = ":77", ":78"
RFB_PORT = 5977
# TigerVNC shows a hint about its menu for some seconds.
HINT = 8
PATIENCE = 60
# A marker is a square of one colour, which is the number of the picture.
MARKER = 8
# A longer time without a new picture counts as a freeze, in seconds.
FREEZE = 0.2


# Exact pictures, of one form.
EXACT = ["-NoJpeg", "-AutoSelect=0", "-PreferredEncoding=Tight", "-FullColor"]
# What is compared: the congestion control of TCP (None: the bridge), options of the viewer and of `vnc serve`.
WAYS = {
    "bridge": (None, EXACT, []),
    "CUBIC": ("cubic", EXACT, []),
    "BBR": ("bbr", EXACT, []),
    "bridge, JPEG": (None, EXACT, ["--quality", "75"]),
    "bridge, bare": (None, EXACT, ["--redundancy", "none"]),
    "CUBIC, as it comes": ("cubic", [], []),
    "BBR, as it comes": ("bbr", [], []),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sutura", type=os.path.abspath, help="the command")
    parser.add_argument("--link", default="rate=20mbit delay=25ms loss=gt:300,4.8,0.95,0.005 queue=100p",
                        help="both directions of the link, as `sutura link` takes it [%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured [%(default)s]")
    parser.add_argument("--seconds", type=int, default=15, help="the length of a scene [%(default)s]")
    parser.add_argument("--passes", type=int, default=1, help="how often the scenes are played in each session: the "
                        "later times on a path that is known [%(default)s]")
    parser.add_argument("--only", choices=list(WAYS), action="append", help="a way; may be given several times")
    parser.add_argument("--option", action="append", default=[], help="an option for `sutura vnc serve`")
    parser.add_argument("--record", metavar="DIR", help="only record the scenes for `sutura lab vnc-scenes`; the "
                        "command is the example `record` of sutura-vnc instead")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    arguments = parser.parse_args()
    # What was started is ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    missing = [package for tool, package in PACKAGES.items() if not shutil.which(tool)]
    if missing:
        sys.exit(f"vnc_session.py: MISSING: apt-get install {' '.join(missing)}")
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        sys.exit("vnc_session.py: MISSING: root and /dev/net/tun, for network namespaces")
    if arguments.record:
        with contextlib.ExitStack() as stack:
            return record(stack, arguments)
    ways = arguments.only or list(WAYS)
    results = []
    sweep()
    with contextlib.ExitStack() as stack:
        try:
            allow(stack, {WAYS[way][0] for way in ways} - {None})
        except Failed as error:
            sys.exit(f"vnc_session.py: {error}")
        for number in range(arguments.rounds):
            for way in ways:
                print(f"round {number + 1} of {arguments.rounds}: {way}", file=sys.stderr, flush=True)
                # python-xlib cannot be used again in the same process.
                with multiprocessing.Pool(1) as pool:
                    try:
                        results += pool.apply(whole_session, (arguments, way, number + 1))
                    except (Failed, TimeoutError) as error:
                        sys.exit(f"vnc_session.py: {error}")
    if arguments.json:
        print(json.dumps(results, indent=1))
    else:
        print(table(results))
    if not all(result["equal"] for result in results):
        sys.exit("vnc_session.py: the viewer does not show what the server shows")


def spawn(stack, *command, **options):
    """Starts a program that ends with the session."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)

    def end():
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)
    return process


def wait_until(what, condition):
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > PATIENCE:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.05)


def record(stack, arguments):
    """Records each scene without a viewer or a link."""
    spawn(stack, "Xvnc", SERVER_DISPLAY, "-geometry", f"{WIDTH}x{HEIGHT}", "-depth", "24", "-rfbport", str(RFB_PORT),
          "-SecurityTypes", "None", "-AlwaysShared", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stage = Stage(connect(stack, SERVER_DISPLAY))
    for scene in SCENES:
        print(f"recording: {scene.__name__}", file=sys.stderr, flush=True)
        with open(os.path.join(arguments.record, f"{scene.__name__}.csv"), "wb") as out:
            play = scene(stage)
            next(play)
            stage.server.sync()
            recorder = subprocess.Popen([arguments.sutura, f"localhost:{RFB_PORT}", str(arguments.seconds + 1)],
                                        stdout=out)
            time.sleep(1)
            start = time.monotonic()
            for _, pause in play:
                stage.next_picture([])
                if time.monotonic() - start > arguments.seconds:
                    break
                time.sleep(max(0, stage.drawn[stage.number] + pause - time.monotonic()))
            recorder.wait()
            play.close()


def whole_session(arguments, way, seed):
    with contextlib.ExitStack() as stack:
        return session(stack, arguments, way, seed)


def session(stack, arguments, way, seed):
    """All scenes of one session. Returns a list of figures, one for each."""
    state = stack.enter_context(tempfile.TemporaryDirectory())
    # The server is at the far end.
    path = Emulated(stack.enter_context(Run(PATIENCE)), arguments.sutura, arguments.link, arguments.link, seed, mtu=1400)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": open(os.path.join(state, "log"), "wb")}
    stack.callback(quiet["stderr"].close)
    congestion, look, serving = WAYS[way]
    if congestion:
        path.use(congestion)
    programs = {"server": spawn(
        stack, *inside(path.far, "Xvnc", SERVER_DISPLAY, "-geometry", f"{WIDTH}x{HEIGHT}", "-depth", "24",
                       "-rfbport", str(RFB_PORT), "-SecurityTypes", "None", "-AlwaysShared"), **quiet)}
    # A viewer as large as its screen would be made smaller.
    spawn(stack, "Xvfb", VIEWER_DISPLAY, "-screen", "0", f"{WIDTH + 200}x{HEIGHT + 200}x24", **quiet)
    display_of_server = connect(stack, SERVER_DISPLAY)
    server, shown = Picture(display_of_server), Picture(connect(stack, VIEWER_DISPLAY))
    address = f"{SERVER}::{RFB_PORT}"
    if not congestion:
        address = bridge(stack, arguments, path, state, programs, quiet["stderr"], serving)
    # No questions.
    options = [*look, "-RemoteResize=0", "-MenuKey=", "-geometry", f"{WIDTH}x{HEIGHT}+0+0", "-Shared"]
    programs["viewer"] = spawn(stack, *inside(path.near, "vncviewer", *options, address),
                               env={**os.environ, "DISPLAY": VIEWER_DISPLAY, "HOME": state}, **quiet)
    stage = Stage(display_of_server)
    wait_until("the viewer's window", shown.find)
    wait_until("the viewer", lambda: same(server, shown))
    time.sleep(HINT)
    return [measure(arguments, way, scene, number, stage, server, shown, path, programs)
            for number in range(1, arguments.passes + 1) for scene in SCENES]


def bridge(stack, arguments, path, state, programs, log, options):
    """Starts both ends of the bridge, with `options` for the server's end. Returns where the viewer finds its own."""
    programs["serve"] = spawn(
        stack, *inside(path.far, arguments.sutura, "vnc", "serve", "--json", "--to", f"localhost:{RFB_PORT}",
                       "--listen", f"{SERVER}:5900", "--state-dir", state, *options, *arguments.option),
        stdout=subprocess.PIPE, stderr=log, text=True)
    hello = json.loads(programs["serve"].stdout.readline())
    programs["connect"] = spawn(
        stack, *inside(path.near, arguments.sutura, "vnc", "connect", SERVER, "--json", "--listen",
                       "127.0.0.1:5901", "--fingerprint", hello["fingerprint"]),
        stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "SUTURA_VNC_TOKEN": hello["token"]})
    programs["connect"].stdout.readline()
    return "127.0.0.1::5901"


def connect(stack, name):
    found = []

    def attempt():
        with contextlib.suppress(Exception):
            found.append(display.Display(name))
        return found

    wait_until(f"display {name}", attempt)
    stack.callback(found[0].close)
    return found[0]


class Picture:
    """What a display shows, at some place of it."""

    def __init__(self, of):
        self.root, self.x, self.y = of.screen().root, 0, 0

    def find(self):
        """Whether there is a window as large as the desktop; it is the picture from now on."""
        for window in self.root.query_tree().children:
            geometry = window.get_geometry()
            if (geometry.width, geometry.height) == (WIDTH, HEIGHT):
                self.x, self.y = geometry.x, geometry.y
                return True
        return False

    def pixels(self, x=0, y=0, width=WIDTH, height=HEIGHT):
        data = self.root.get_image(self.x + x, self.y + y, width, height, X.ZPixmap, 0xFFFFFF).data
        # The fourth byte of a pixel means nothing.
        return [data[channel::4] for channel in range(3)]


def same(server, shown):
    return server.pixels() == shown.pixels()


class Stage:
    """Draws on the server's screen."""

    def __init__(self, server):
        self.server, self.screen = server, server.screen()
        self.root = self.screen.root
        self.gc = self.root.create_gc(font=server.open_font("fixed"))
        self.number = 0
        self.drawn = {}
        self.fill(0, 0, WIDTH, HEIGHT, 0x335577)

    def fill(self, x, y, width, height, colour, on=None):
        self.gc.change(foreground=colour)
        (on or self.root).fill_rectangle(self.gc, x, y, width, height)

    def text(self, x, y, text, colour=0, on=None):
        self.gc.change(foreground=colour)
        (on or self.root).draw_text(self.gc, x, y, text.encode())

    def next_picture(self, markers):
        """A picture is complete: numbers it in its markers, and notes when it was drawn."""
        self.number += 1
        for x, y, on in markers:
            self.fill(x, y, MARKER, MARKER, self.number, on)
        self.server.sync()
        self.drawn[self.number] = time.monotonic()


WORDS = "the quick brown fox jumps over the lazy dog while packets are lost on their way to the viewer ".split()


def typing(stage):
    """Ten characters a second."""
    stage.fill(100, 100, 640, 400, 0xFFFFFF)
    text = " ".join(WORDS * 20)
    for position, character in enumerate(text):
        line, column = divmod(position, 100)
        x, y = 108 + 6 * column, 120 + 15 * line
        stage.text(x, y, character)
        # The second marker is where the next character will be.
        yield [(100, 92, None), (732, 500, None)], 0.1
        if line > 20:
            return


def scrolling(stage):
    """A terminal: fifteen lines a second."""
    stage.fill(100, 100, 640, 480, 0x101010)
    for number in range(10_000):
        stage.root.copy_area(stage.gc, stage.root, 100, 116, 640, 464, 100, 100)
        stage.fill(100, 564, 640, 16, 0x101010)
        line = " ".join(WORDS[(number * 7 + k) % len(WORDS)] for k in range(16))
        stage.text(104, 576, f"{number:5} {line}"[:104], 0xC0C0C0)
        yield [(100, 92, None), (732, 92, None), (732, 584, None)], 1 / 15


def film(stage):
    """25 pictures a second of 240x160 pixels that change everywhere."""
    width, height, pictures = 240, 160, 50
    films = []
    for number in range(pictures):
        rows = []
        for y in range(height):
            row = bytearray()
            for x in range(width):
                row += bytes(((x + 5 * number) & 255, (y * 2 + 3 * number) & 255, (x * y // 64 + number) & 255, 0))
            rows.append(bytes(row))
        films.append(rows)
    for number in range(10_000):
        for y in range(0, height, 40):
            rows = b"".join(films[number % pictures][y:y + 40])
            stage.root.put_image(stage.gc, 300, 200 + y, width, 40, X.ZPixmap, 24, 0, rows)
        yield [(300, 200, None), (532, 200, None), (300, 352, None), (532, 352, None)], 1 / 25


def dragging(stage):
    """A window of 400x300 pixels that is moved 30 times a second."""
    window = stage.root.create_window(50, 50, 400, 300, 0, stage.screen.root_depth, background_pixel=0xEEEEEE)
    window.map()
    stage.server.sync()
    for line, word in enumerate(WORDS):
        stage.text(20, 30 + 14 * line, f"{word} " * 8, 0x222222, window)
    try:
        for number in range(10_000):
            place = number * 7 % 800
            window.configure(x=50 + min(place, 800 - place), y=50 + number * 3 % 300)
            yield [(0, 0, window), (392, 292, window)], 1 / 30
    finally:
        window.destroy()
        stage.fill(0, 0, WIDTH, HEIGHT, 0x335577)
        stage.server.sync()


SCENES = [typing, scrolling, film, dragging]


def measure(arguments, way, scene, number, stage, server, shown, path, programs):
    """Plays a scene for the `number`th time, and watches the viewer."""
    seen, watching = Watch(shown), threading.Event()
    before = *path.sent(path.far), {name: cpu_seconds(program.pid) for name, program in programs.items()}
    first = stage.number + 1
    thread = threading.Thread(target=seen.watch, args=(watching,))
    start = time.monotonic()
    play = scene(stage)
    for markers, pause in play:
        if not thread.is_alive():
            thread.start()
        seen.places[stage.number + 1] = [absolute(*place) for place in markers]
        stage.next_picture(markers)
        if time.monotonic() - start > arguments.seconds:
            break
        time.sleep(max(0, stage.drawn[stage.number] + pause - time.monotonic()))
    took = time.monotonic() - start
    # A marker in a picture that is sent as JPEG cannot be read.
    congestion, look, serving = WAYS[way]
    is_readable = scene is not film or look == EXACT and "--quality" not in serving
    if is_readable:
        wait_until("the last picture", lambda: seen.newest >= stage.number)
    watching.set()
    thread.join()
    play.close()
    # TigerVNC's server need not make exact what it has sent as JPEG.
    equal = congestion and look != EXACT or settle(server, shown)
    count, packets = (after - earlier for after, earlier in zip(path.sent(path.far), before))
    figures = {
        "way": way, "scene": scene.__name__, "pass": number, "pictures": stage.number - first + 1, "equal": equal,
        "kilobytes": count / 1000, "packets": packets,
        "cpu_percent": {name: 100 * (cpu_seconds(program.pid) - before[2][name]) / took for name, program in programs.items()},
    }
    if is_readable:
        late = sorted(seen.lateness(stage.drawn, first))
        gaps = seen.gaps(stage.drawn, first)
        figures |= {
            "late_p50_ms": 1000 * late[len(late) // 2], "late_p99_ms": 1000 * late[int(len(late) * 0.99)],
            "late_max_ms": 1000 * late[-1], "freezes": sum(gap > FREEZE for gap in gaps),
        }
    return figures


def absolute(x, y, on):
    if on is None:
        return x, y
    geometry = on.get_geometry()
    return geometry.x + x, geometry.y + y


def settle(server, shown):
    """Whether the viewer shows the server's screen, before long."""
    start = time.monotonic()
    while not same(server, shown):
        if time.monotonic() - start > PATIENCE:
            return False
        time.sleep(0.1)
    return True


class Watch:
    """Looks at the markers on the viewer's screen."""

    def __init__(self, shown):
        self.shown = shown
        # Where the markers of each picture are.
        self.places = {}
        self.first_seen = []
        self.newest = 0

    def watch(self, stop):
        while not stop.is_set():
            known = {}
            for candidate in sorted(number for number in list(self.places) if number > self.newest):
                # All parts of a picture must be there.
                number = min(self.number_at(place, known) for place in self.places[candidate])
                if max(candidate, self.newest + 1) <= number < 1 << 20:
                    self.newest = number
                    self.first_seen.append((number, time.monotonic()))
            time.sleep(0.001)

    def number_at(self, place, known):
        """The number of the marker at a place, which need not be one."""
        if place not in known:
            x, y = place
            image = self.shown.pixels(x + MARKER // 2, y + MARKER // 2, 1, 1)
            known[place] = image[0][0] | image[1][0] << 8 | image[2][0] << 16
        return known[place]

    def lateness(self, drawn, first):
        """How long after it was drawn each picture, or a newer one, was seen."""
        seen = iter(self.first_seen)
        number, at = next(seen)
        for picture_number in range(first, max(drawn) + 1):
            while number < picture_number:
                number, at = next(seen)
            yield at - drawn[picture_number]

    def gaps(self, drawn, first):
        """The times without a new picture, while there were new ones."""
        times = [drawn[first]] + [at for number, at in self.first_seen if number >= first]
        return [later - earlier for earlier, later in zip(times, times[1:])]


def table(results):
    """The median of all rounds for each scene and way."""
    lines = ["| scene | way | pictures | late p50 | p99 | longest | freezes | kilobytes | packets | CPU |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]

    def played(result):
        return result["scene"] if result["pass"] == 1 else f"{result['scene']}, pass {result['pass']}"

    for scene in dict.fromkeys(map(played, results)):
        for way in dict.fromkeys(result["way"] for result in results):
            some = [result for result in results if (played(result), result["way"]) == (scene, way)]

            def middle(key, unit="", some=some):
                if key not in some[0]:
                    return "–"
                return f"{statistics.median(result[key] for result in some):.0f}{unit}"

            used = ", ".join(f"{name} {statistics.median(r['cpu_percent'][name] for r in some):.0f} %"
                             for name in some[0]["cpu_percent"])
            freezes = "/".join(str(result.get("freezes", "–")) for result in some)
            lines.append(f"| {scene} | {way} | {middle('pictures')} | {middle('late_p50_ms', ' ms')} | "
                         f"{middle('late_p99_ms', ' ms')} | {middle('late_max_ms', ' ms')} | {freezes} | "
                         f"{middle('kilobytes')} | {middle('packets')} | {used} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
