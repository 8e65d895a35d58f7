"""Child processes that end with a run, and the link between two of them."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

FEED = [sys.executable, str(Path(__file__).with_name("feed.py"))]


class Failed(Exception):
    """Why a run has no result."""


def free_port(kind: int) -> int:
    """A port of 127.0.0.1 that is free now."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def mortal(command: list) -> list:
    """The command as one that ends with the process that starts it, however that ends, where there is util-linux."""
    return ["setpriv", "--pdeathsig", "KILL", *command] if shutil.which("setpriv") else command


def udp_port() -> int:
    return free_port(socket.SOCK_DGRAM)


def tcp_port() -> int:
    return free_port(socket.SOCK_STREAM)


class Run:
    """The processes of one run, in the directory of their files. Leaving it ends them."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> "Run":
        self.directory = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def start(self, name: str, command: list, wait_for: str | None = None, **options) -> "Child":
        """Starts a process; waits for a line that has `wait_for` in it, if that is given."""
        child = Child(name, [str(part) for part in command], self.directory, **options)
        self.stack.callback(child.end)
        if wait_for is not None:
            child.await_line(wait_for, 20)
        return child

    def finish(self, name: str, command: list, **options) -> str:
        """What a process printed that ends by itself."""
        child = Child(name, [str(part) for part in command], self.directory, **options)
        self.stack.callback(child.end)
        return child.result(self.limit)

    def values(self, name: str, command: list, **options) -> list[float | None]:
        """The times that a client prints."""
        return values_in(self.finish(name, command, **options))

    def await_(self, condition: Callable[[], bool], trouble: str) -> None:
        """Waits up to five seconds."""
        end = time.monotonic() + 5
        while not condition():
            if time.monotonic() > end:
                raise Failed(trouble)
            time.sleep(0.02)

    def certificate(self, certificate: str = "cert.pem", key: str = "key.pem") -> None:
        """Makes a certificate for localhost in the directory of the run."""
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split()
        self.finish("openssl", [*command, "-subj", "/CN=localhost", "-keyout", key, "-out", certificate])


def values_in(lines: str) -> list[float | None]:
    return json.loads(lines.splitlines()[-1])["values_ms"]


class Child:
    """A process, and the lines that it prints."""

    def __init__(self, name: str, command: list[str], directory: Path, env: dict | None = None, joined: bool = False) -> None:
        """With `joined`, lines on standard error count as printed, too."""
        self.name = name
        self.errors = directory / f"{name}.err"
        self.lines: list[str] = []
        self.printed = threading.Condition()
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if joined else errors,
                cwd=directory, env=env, text=True
            )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            with self.printed:
                self.lines.append(line)
                self.printed.notify_all()
        with self.printed:
            self.printed.notify_all()

    def trouble(self) -> str:
        """The last words on its standard error."""
        words = self.errors.read_text(errors="replace").strip().splitlines() or self.lines
        return words[-1].strip()[:200] if words else f"exit code {self.process.poll()}"

    def await_line(self, text: str, limit: float) -> str:
        def found() -> str | None:
            return next((line for line in self.lines if text in line), None)

        with self.printed:
            self.printed.wait_for(lambda: found() is not None or not self.reader.is_alive(), limit)
            line = found()
        if line is None:
            raise Failed(f"{self.name} did not start: {self.trouble()}")
        return line

    def await_lines(self, text: str, count: int, limit: float) -> list[str]:
        """Waits for so many lines that have `text` in them, and gives those that came."""

        def found() -> list[str]:
            return [line for line in self.lines if text in line]

        with self.printed:
            self.printed.wait_for(lambda: len(found()) >= count or not self.reader.is_alive(), limit)
            return found()

    def result(self, limit: float) -> str:
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} took more than {limit:.0f} s") from None
        if code != 0:
            raise Failed(f"{self.name}: {self.trouble()}")
        self.reader.join(5)
        return "".join(self.lines)

    def end(self, first: int = signal.SIGTERM) -> None:
        """Ends the process, politely at first."""
        if self.process.poll() is None:
            self.process.send_signal(first)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(5)


class Link:
    """`sutura link` in front of a port of 127.0.0.1."""

    def __init__(self, run: Run, sutura: Path, to: int, up: str, down: str, seed: int) -> None:
        command = [sutura, "link", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{to}"]
        command += ["--up", up, "--down", down, "--seed", seed, "--json"]
        self.child = run.start("link", mortal(command))
        self.port = int(json.loads(self.child.await_line("listening", 20))["listening"].rsplit(":", 1)[1])

    def stop(self) -> dict:
        """Its counters from start to end."""
        self.child.end(signal.SIGINT)
        stats = json.loads(self.child.lines[-1])
        counted = {way: {key: stats[way][key] for key in ("sent", "sent_bytes", "lost", "overflow")} for way in ("up", "down")}
        return counted | {"late_ms": stats["late_ms"]}


def absent_libraries(program: Path) -> list[str]:
    """The shared libraries that a program needs and the system does not have."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True)
    return [line.split()[0] for line in said.stdout.splitlines() if line.endswith("=> not found")]


def version_of(command: list[str]) -> str:
    """What a program says of its version."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except OSError as error:
        return str(error)
    lines = (said.stdout + said.stderr).strip().splitlines()
    return lines[0] if lines else "unknown"
