"""The systems: what each carries, whether it is there, and how a run of it is made.

Programs are looked for in target/others, where build.sh puts them, then in $SUTURA_OTHERS/NAME, where those are that
have to be built by hand, then where Debian's packages have them.
"""

import os
import re
import shutil
import struct
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jobs import Point, encoded
from process import FEED, Failed, Link, Run, absent_libraries, tcp_port, udp_port, values_in, version_of

ROOT = Path(__file__).parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
BUILT = TARGET / "others"
BY_HAND = os.environ.get("SUTURA_OTHERS")

Values = list[float | None]


def program(name: str, system: str) -> Path | None:
    """A program of a system, if it is there."""
    places = [BUILT / name, TARGET / "release" / name]
    if BY_HAND:
        places.append(Path(BY_HAND) / system / name)
    found = next((place for place in places if os.access(place, os.X_OK)), None)
    which = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    return found or (Path(which) if which else None)


class Programs:
    """What is here of a system, which has these fields."""

    name: str
    family: str
    programs: tuple[str, ...]
    # Where to get it, for those that are missing.
    source: str

    def path(self, name: str) -> Path:
        found = program(name, self.family)
        if found is None:
            raise Failed(f"there is no {name}")
        return found

    def missing(self) -> str | None:
        """Why it cannot run here."""
        absent = [name for name in self.programs if program(name, self.family) is None]
        if absent:
            return f"there is no {' and no '.join(absent)}{self.source and ': ' + self.source}"
        libraries = {library for name in self.programs for library in absent_libraries(self.path(name))}
        if libraries:
            return f"there is no {' and no '.join(sorted(libraries))}, with which it is linked"
        if self.family == "wireguard-go" and (os.geteuid() != 0 or not Path("/dev/net/tun").exists()):
            return "tunnels need root and /dev/net/tun"
        return None


@dataclass(frozen=True)
class System(Programs):
    """A system with its settings."""

    name: str
    family: str
    programs: tuple[str, ...]
    carries: Callable[[Point], bool]
    # Makes a run over a link, and gives the times and the link's counters.
    run: Callable[["System", Run, Point, int], tuple[Values, dict]]
    version: Callable[["System"], str]
    settings: tuple[str, ...] = ()
    source: str = ""


def link(run: Run, point: Point, to: int, seed: int) -> Link:
    sutura = program("sutura", "sutura")
    if sutura is None:
        raise Failed("there is no sutura")
    return Link(run, sutura, to, point.up, point.down, seed)


def anything(_: Point) -> bool:
    return True


def only_messages(point: Point) -> bool:
    return point.request["kind"] == "messages"


def unordered(point: Point) -> bool:
    return not point.request.get("ordered", True)


# Sutura


def run_sutura(system: System, run: Run, point: Point, seed: int) -> tuple[Values, dict]:
    redundancy = system.settings[0].format(limit=point.limit_ms)
    common = [system.path("sutura-feed"), "--redundancy", redundancy, "--certificate", run.directory / "cert.der"]
    server = run.start("server", [*common, "serve"])
    port = int(server.await_line("127.0.0.1", 20).rsplit(":", 1)[1])
    path = link(run, point, port, seed)
    values = run.values("client", [*common, "fetch", f"127.0.0.1:{path.port}", encoded(point.request)])
    return values, path.stop()


# KCP


def run_kcp(system: System, run: Run, point: Point, seed: int) -> tuple[Values, dict]:
    source, server, client = tcp_port(), udp_port(), tcp_port()
    kcp = system.path("kcp")
    run.start("feed", [*FEED, "tcp-serve", "127.0.0.1", source], wait_for="ready")
    run.start("server", [kcp, "server", f"127.0.0.1:{server}", f"127.0.0.1:{source}"], wait_for="ready")
    path = link(run, point, server, seed)
    run.start("client", [kcp, "client", f"127.0.0.1:{client}", f"127.0.0.1:{path.port}"], wait_for="ready")
    values = run.values("fetch", [*FEED, "tcp-fetch", "127.0.0.1", client, encoded(point.request)])
    return values, path.stop()


# SRT


def run_srt(system: System, run: Run, point: Point, seed: int) -> tuple[Values, dict]:
    (latency,) = system.settings
    transmit, request = system.path("srt-live-transmit"), encoded(point.request)
    source, server, sink = udp_port(), udp_port(), udp_port()
    receiver = run.start("sink", [*FEED, "udp-receive", sink, request], wait_for="ready")
    options = f"latency={latency}"
    quiet = ["-loglevel:error"]
    listener = f"srt://127.0.0.1:{server}?mode=listener&{options}"
    # Bursts of messages wait in the socket of the source until it is read.
    udp = f"udp://127.0.0.1:{source}?rcvbuf=4000000"
    server_end = run.start("server", [transmit, *quiet, udp, listener], joined=True)
    path = link(run, point, server, seed)
    caller = f"srt://127.0.0.1:{path.port}?mode=caller&{options}"
    command = [transmit, *quiet, caller, f"udp://127.0.0.1:{sink}"]
    client = run.start("client", command, joined=True)
    server_end.await_line("Accepted", 20)
    run.finish("source", [*FEED, "udp-send", source, request])
    lines = receiver.result(run.limit)
    if client.process.poll() is not None:
        raise Failed(f"client: {client.trouble()}")
    return values_in(lines), path.stop()


# wireguard-go


class Tunnel:
    """Two ends of a WireGuard tunnel in network namespaces of their own, whose UDP sockets are outside."""

    NETWORK = "10.99.0"
    ENVIRONMENT = os.environ | {"LOG_LEVEL": "error"}

    def __init__(self, system: System, run: Run) -> None:
        self.system, self.run = system, run
        tag = uuid.uuid4().hex[:6]
        # Of the devices, and of the namespaces that they are in.
        self.names = self.spaces = [f"su{tag}{end}" for end in "ab"]
        self.keys = [self.call("wg", "genkey").strip() for _ in self.names]
        self.ports = [udp_port(), udp_port()]

    def call(self, *command: str) -> str:
        return self.run.finish(f"{command[0]}-{uuid.uuid4().hex[:4]}", list(command))

    def key_file(self, end: int) -> Path:
        file = self.run.directory / f"key{end}"
        file.write_text(self.keys[end])
        file.chmod(0o600)
        return file

    def public(self, end: int) -> str:
        command = ["sh", "-c", f"wg pubkey < {self.key_file(end)}"]
        return self.run.finish(f"pubkey{end}", command).strip()

    def open(self, end: int, endpoint: str | None) -> None:
        """Opens an end, which sends to `endpoint` or waits for the other."""
        name, peer = self.names[end], self.public(1 - end)
        self.start(end)
        self.run.await_(lambda: Path(f"/var/run/wireguard/{name}.sock").exists(), "wireguard-go did not start")
        where = ["endpoint", endpoint] if endpoint else []
        key = str(self.key_file(end))
        listen = ["listen-port", str(self.ports[end]), "private-key", key]
        self.call("wg", "set", name, *listen, "peer", peer, *where, "allowed-ips", f"{self.NETWORK}.0/24")
        self.enter(end)
        inside = ["ip", "-n", self.spaces[end]]
        self.call(*inside, "addr", "add", f"{self.NETWORK}.{end + 1}/24", "dev", name)
        self.call(*inside, "link", "set", name, "mtu", "1420", "up")
        self.call(*inside, "link", "set", "lo", "up")

    def start(self, end: int) -> None:
        """Starts the program, which makes the device."""
        name = self.names[end]
        self.call("ip", "netns", "add", name)
        self.run.stack.callback(self.call, "ip", "netns", "delete", name)
        self.run.start(name, self.command(end), env=self.ENVIRONMENT)

    def command(self, end: int) -> list:
        return [self.system.path("wireguard-go"), "--foreground", self.names[end]]

    def enter(self, end: int) -> None:
        """Puts the device into its namespace."""
        self.call("ip", "link", "set", self.names[end], "netns", self.spaces[end])

    def at(self, end: int, command: list) -> list:
        return ["ip", "netns", "exec", self.spaces[end], *command]


def run_wireguard(system: System, run: Run, point: Point, seed: int) -> tuple[Values, dict]:
    (congestion,) = system.settings
    tunnel = Tunnel(system, run)
    tunnel.open(1, None)
    path = link(run, point, tunnel.ports[1], seed)
    tunnel.open(0, f"127.0.0.1:{path.port}")
    address, source = f"{Tunnel.NETWORK}.2", tcp_port()
    server = [*FEED, "tcp-serve", address, source, congestion]
    run.start("feed", tunnel.at(1, server), wait_for="ready")
    fetch = [*FEED, "tcp-fetch", address, source, encoded(point.request)]
    values = run.values("fetch", tunnel.at(0, fetch))
    return values, path.stop()


# The fork of quiche of Holzinger 2025: its client writes down when each 16 bytes came, and how long they took


def steady_or_download(point: Point) -> bool:
    """Downloads on connections of their own, and pieces of one size in order."""
    return only_steady(point) if only_messages(point) else point.request["fresh"]


def only_steady(point: Point) -> bool:
    sizes = {size for _, size in point.request["messages"]}
    return point.request["ordered"] and len(sizes) == 1


def pieces(dump: bytes) -> dict[int, float]:
    """The largest delay of a part of each piece, by the time at which the piece was made.

    After the times of the request and of the response's headers, a cell for each 16 bytes has when it came, from the
    headers on, and its delay, both in microseconds; it is zero where a read ended amid it. The last has the end."""
    made: dict[int, float] = {}
    headers = struct.unpack(">QQ", dump[16:32])[1]
    for at in range(32, len(dump) - 31, 16):
        arrived, delay = struct.unpack_from(">QQ", dump, at)
        if arrived or delay:
            born = headers + arrived - delay
            made[born] = max(made.get(born, 0.0), delay / 1e3)
    return made


def fork_query(request: dict, burst: int) -> str:
    """What the fork's server makes, and how many repair symbols it sends behind it."""
    incremental = request["kind"] == "messages"
    field = f"u=3{',i' if incremental else ''}" + (f",exp_b={burst}" if burst else "")
    query = f"exp_eps={field.replace('=', '%3D').replace(',', '%2C')}"
    if not incremental:
        return f"length={request['bytes']}&{query}"
    (first, size), (second, _) = request["messages"][:2]
    # It rounds pieces up to 16 bytes, and stops after the piece with which it has more than the length.
    length = -(-size // 16) * 16 * len(request["messages"]) - 1
    return f"length={length}&interval_us={second - first}&interval_len={size}&{query}"


def run_fork(system: System, run: Run, point: Point, seed: int) -> tuple[Values, dict]:
    burst, request = int(system.settings[0]), point.request
    common = ["--cc-algorithm", "bbr2", "--enable-fec", "--http-version", "HTTP/3", "--idle-timeout", "10000"]
    port = udp_port()
    run.certificate()
    server = [system.path("quiche-server"), "--listen", f"127.0.0.1:{port}", "--no-retry", *common]
    server += ["--cert", "cert.pem", "--key", "key.pem", "--root", "."]
    path = link(run, point, port, seed)
    url = f"https://127.0.0.1:{path.port}/of?{fork_query(request, burst)}"
    values: Values = []
    for number in range(request.get("count", 1)):
        directory = run.directory / f"dump{number}"
        directory.mkdir()
        client = [system.path("quiche-client"), "--no-verify", "--dump-responses", directory, *common, url]
        # Its server does not answer the third client and later ones, not even without loss.
        serving = run.start(f"server{number}", server)
        time.sleep(0.2)
        try:
            run.finish(f"client{number}", client)
        except Failed as failure:
            # A client may wait for ever for one download: that is the time of this one.
            print(f"{system.name}, {point.name}, seed {seed}: {failure}", file=sys.stderr)
            values.append(None)
            continue
        finally:
            serving.end()
        dump = next(directory.iterdir()).read_bytes()
        if request["kind"] == "download":
            sent, end = (int.from_bytes(part, "big") for part in (dump[:16], dump[-16:]))
            values.append((end - sent) / 1e3)
        else:
            values += list(pieces(dump).values())
            values += [None] * (len(request["messages"]) - len(values))
    if not any(values):
        raise Failed(f"none of {len(values)} arrived")
    return values, path.stop()


# XQUIC: its test client prints how long each request took


def asked_for(point: Point) -> bool:
    return not point.request.get("fresh", True)


def run_xquic(system: System, run: Run, point: Point, seed: int) -> tuple[Values, dict]:
    request, port = point.request, udp_port()
    schemes = system.settings
    run.certificate("server.crt", "server.key")
    common = ["-c", "B", "-C", "-l", "e"]
    server = [system.path("test_server"), "-p", port, "-s", request["bytes"], *common]
    run.start("server", [*server, *(["-f"] if schemes else [])])
    path = link(run, point, port, seed)
    fec = ["-g", "--fec_encoder", schemes[0], "--fec_decoder", schemes[0]] if schemes else []
    # One more, because the time of the first has the handshake in it.
    count = request["count"] + 1
    # The client stays when it has all; its lines come at once only with stdbuf.
    client = ["stdbuf", "-oL", system.path("test_client"), "-a", "127.0.0.1", "-p", path.port, "-h", "localhost", "-G"]
    child = run.start("client", [*client, "-t", "30", "-n", count, *common, *fec])
    printed = child.await_lines("request time cost", count, run.limit)
    took = [int(re.search(r"cost:(\d+) us", line)[1]) / 1e3 for line in printed][1:]
    if len(took) < request["count"]:
        raise Failed(f"{len(took)} of {request['count']} requests were answered")
    return list(took), path.stop()


# All


def of_debian(package: str) -> Callable[[Programs], str]:
    query = ["dpkg-query", "--show", "--showformat=${Version}", package]
    return lambda _: version_of(query)


def of_kcp(_: System) -> str:
    return next(line.split()[-1] for line in (ROOT / "interop/others/kcp/go.mod").open() if "kcp-go" in line)


def of_sutura(_: Programs) -> str:
    return version_of([str(program("sutura", "sutura")), "--version"]).split()[-1]


def of_file(system: Programs) -> str:
    """The commit that was built, which is in a file beside the programs."""
    file = system.path(system.programs[0]).with_name("commit")
    return file.read_text().strip() if file.exists() else "unknown commit"


BY_HAND_ONLY = "build it by hand, see interop/others/README.md"


def sutura(name: str, redundancy: str, carries: Callable[[Point], bool] = anything) -> System:
    programs = ("sutura", "sutura-feed")
    return System(name, "sutura", programs, carries, run_sutura, of_sutura, (redundancy,))


def fork(burst: int) -> System:
    programs = ("quiche-server", "quiche-client")
    name = f"fork of quiche, exp_b={burst}"
    return System(name, "quiche-fork", programs, steady_or_download, run_fork, of_file, (str(burst),), BY_HAND_ONLY)


def xquic(name: str, *scheme: str) -> System:
    programs = ("test_server", "test_client")
    return System(f"xquic, {name}", "xquic", programs, asked_for, run_xquic, of_file, scheme, BY_HAND_ONLY)


def srt(latency: int) -> System:
    programs, name = ("srt-live-transmit",), f"srt, latency={latency}"
    version = of_debian("srt-tools")
    return System(name, "srt", programs, only_messages, run_srt, version, (str(latency),), "Debian's srt-tools")


def wireguard(congestion: str) -> System:
    programs, name = ("wireguard-go", "wg", "ip"), f"wireguard-go, TCP {congestion.upper()}"
    version = of_debian("wireguard-go")
    source = "Debian's wireguard-go, wireguard-tools and iproute2"
    return System(name, "wireguard-go", programs, anything, run_wireguard, version, (congestion,), source)


SYSTEMS = [
    sutura("sutura, auto", "auto"),
    # It is told when a message is late, also on a stream, whose pieces have no deadlines of their own.
    sutura("sutura, auto:within", "auto:within={limit}ms", only_messages),
    sutura("sutura, none", "none"),
    sutura("sutura, tail:3", "tail:3", lambda point: not unordered(point)),
    fork(0),
    fork(3),
    xquic("no FEC"),
    xquic("Reed-Solomon", "8"),
    xquic("XOR", "11"),
    xquic("packet mask", "12"),
    System("kcp-go", "kcp", ("kcp",), anything, run_kcp, of_kcp, source="interop/others/build.sh kcp"),
    srt(120),
    srt(400),
    wireguard("cubic"),
    wireguard("bbr"),
]

# Systems that were to be compared, and cannot be.
LEFT_OUT = {
    "kcptun": "the Go module proxy does not serve it (403 Forbidden, `This module version is not available`); kcp-go, the "
    "library that it is made of, is there: a tunnel of our own has its default settings",
    "FlEC's PQUIC": "at 6c819e8 it needs a picotls of before May 2020 (`ptls_context_t has no member named "
    "hkdf_label_prefix`, `ptls_aead_context_t has no member named static_iv` with a later one), its program does not link "
    "(`multiple definition of context_sbrk` in michelfralloc), and of its plugins that for messages does not compile with "
    "LLVM 14 (`LLVM ERROR: Cannot select: i64 = sdiv`); its Makefile asks for LLVM 9, which Debian 12 does not have",
}
