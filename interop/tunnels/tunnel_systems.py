"""The systems: what each carries, how it is set, and how both its ends are opened in the two namespaces."""

import json
import secrets
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "others"))

from process import Child, Run
from systems import BY_HAND_ONLY, Programs, Tunnel, of_debian, of_file, of_sutura, program
from tun_path import FAR, Emulated, Ends, Wire, cpu_seconds, inside
from tunnel_jobs import Link

# Ports in the namespaces, where nothing else is: what is reached at the far end, and where tunnels begin at the near one.
TCP, UDP, PAGE = 7001, 7002, 7003
NEAR_TCP, NEAR_UDP, SOCKS = 6001, 6002, 1080
TUNNEL = 4433
LOOPBACK = "127.0.0.1"
# kcptun's packets, and how many it sends for each with its code of 10+3.
KCPTUN_MTU, KCPTUN_CODED = 1350, 1.3


@dataclass
class Session:
    """The two ends of one run, and what the programs of the system cost."""

    run: Run
    ends: Ends
    link: Link
    # The children of each end whose time counts.
    programs: dict[str, list[Child]] = field(default_factory=lambda: {"near": [], "far": []})

    def start(self, end: str, name: str, command: list, **options) -> Child:
        """Starts a program of the system at an end."""
        child = self.run.start(name, inside(getattr(self.ends, end), *command), **options)
        self.programs[end].append(child)
        return child

    def near(self, name: str, command: list, **options) -> Child:
        return self.start("near", name, command, **options)

    def far(self, name: str, command: list, **options) -> Child:
        return self.start("far", name, command, **options)

    def cpu(self) -> dict[str, float]:
        """Seconds of each end so far."""
        return {end: sum(cpu_seconds(child.process.pid) for child in children) for end, children in self.programs.items()}

    def mbit(self) -> str:
        return f"{self.link.mbit:g}"


@dataclass(frozen=True)
class Entrance:
    """Where a job enters the system at the near end."""

    tcp: tuple[str, int] = (FAR, TCP)
    udp: tuple[str, int] = (FAR, UDP)
    # The port of the client's own socket, and where the server answers to; otherwise any, and to where it was asked from.
    own: int | None = None
    answer_to: tuple[str, int] | None = None
    # Where the browser finds the page, and the proxy that it uses.
    page: tuple[str, int] = (FAR, PAGE)
    proxy: str | None = None


@dataclass(frozen=True)
class System(Programs):
    name: str
    family: str
    programs: tuple[str, ...]
    # Opens both ends.
    open: Callable[["System", Session], Entrance]
    version: Callable[["System"], str]
    # The word that says why, for each need of a job that it has no answer to.
    refuses: dict[str, str]
    settings: tuple[str, ...] = ()
    source: str = ""
    # Says what else is not as it must be.
    trouble: Callable[["System"], str | None] = lambda _: None

    def unavailable(self) -> str | None:
        return self.missing() or self.trouble(self)


ONLY_TCP = {"udp": "TCP only"}
ONLY_UDP = {"tcp": "UDP only", "page": "UDP only"}
NO_SOCKS = {"page": "no SOCKS"}
ALIKE = "as with CUBIC"


# Nothing in between, or the kernel alone


def open_kernel(system: System, session: Session) -> Entrance:
    session.ends.use(*system.settings)
    return Entrance()


def of_kernel(_: Programs) -> str:
    return Path("/proc/sys/kernel/osrelease").read_text().strip()


# Two hops of TCP


def open_hops(_: System, session: Session) -> Entrance:
    relay = ["socat", "-b", 65536]
    session.far("relay-far", [*relay, f"TCP-LISTEN:{TUNNEL},fork,reuseaddr,nodelay", f"TCP:{LOOPBACK}:{TCP},nodelay"])
    to = f"TCP:{FAR}:{TUNNEL},nodelay"
    session.near("relay-near", [*relay, f"TCP-LISTEN:{NEAR_TCP},bind={LOOPBACK},fork,reuseaddr,nodelay", to])
    return Entrance(tcp=(LOOPBACK, NEAR_TCP))


# kcptun


def open_kcptun(system: System, session: Session) -> Entrance:
    mode, *window = system.settings
    common = ["--key", "interop", "--mode", mode, "--nocomp", "--quiet"]
    if window:
        packets = round(float(*window) * session.link.packets(KCPTUN_MTU) / KCPTUN_CODED)
        common += ["--sndwnd", packets, "--rcvwnd", packets]
    server = [system.path("kcptun-server"), "--listen", f"{FAR}:{TUNNEL}", "--target", f"{LOOPBACK}:{TCP}"]
    session.far("kcptun-server", [*server, *common])
    client = [system.path("kcptun-client"), "--localaddr", f"{LOOPBACK}:{NEAR_TCP}", "--remoteaddr", f"{FAR}:{TUNNEL}"]
    session.near("kcptun-client", [*client, *common])
    return Entrance(tcp=(LOOPBACK, NEAR_TCP))


# wireguard-go


class WireGuard(Tunnel):
    """A tunnel whose programs are in the two namespaces, and with them its devices and its UDP sockets."""

    def __init__(self, system: System, session: Session) -> None:
        super().__init__(system, session.run)
        self.session = session
        self.spaces = [session.ends.near, session.ends.far]

    def start(self, end: int) -> None:
        self.session.start(("near", "far")[end], self.names[end], self.command(end), env=self.ENVIRONMENT)

    def enter(self, end: int) -> None:
        """It is where it was made."""


def open_wireguard(system: System, session: Session) -> Entrance:
    session.ends.use(*system.settings)
    tunnel = WireGuard(system, session)
    tunnel.open(1, None)
    tunnel.open(0, f"{FAR}:{tunnel.ports[1]}")
    host = f"{Tunnel.NETWORK}.2"
    return Entrance(tcp=(host, TCP), udp=(host, UDP), page=(host, PAGE))


# SRT: a pair of programs for each direction, because the program carries one only


def open_srt(system: System, session: Session) -> Entrance:
    # Times of a round trip, or milliseconds.
    (wanted,) = system.settings
    latency = round(2 * session.link.one_way_ms * float(wanted[:-1])) if wanted.endswith("x") else int(wanted)
    options = f"latency={latency}&passphrase=interoperability&pbkeylen=16"
    transmit = [system.path("srt-live-transmit"), "-loglevel:error"]
    up, down, up_source, down_source, own = TUNNEL, TUNNEL + 1, NEAR_UDP, NEAR_UDP + 1, NEAR_UDP + 2

    def pair(name: str, listener: list, caller: list) -> Child:
        child = session.far(f"srt-{name}-far", [*transmit, *listener], joined=True)
        session.near(f"srt-{name}-near", [*transmit, *caller], joined=True)
        return child

    def source(port: int) -> str:
        # Bursts wait in the socket until it is read.
        return f"udp://{LOOPBACK}:{port}?rcvbuf=4000000"

    def srt(port: int, mode: str) -> str:
        return f"srt://{FAR}:{port}?mode={mode}&{options}"

    waiting = [
        pair("up", [srt(up, "listener"), f"udp://{LOOPBACK}:{UDP}"], [source(up_source), srt(up, "caller")]),
        pair("down", [source(down_source), srt(down, "listener")], [srt(down, "caller"), f"udp://{LOOPBACK}:{own}"]),
    ]
    for child in waiting:
        child.await_line("Accepted", 20)
    return Entrance(udp=(LOOPBACK, up_source), own=own, answer_to=(LOOPBACK, down_source))


# Hysteria 2, the program


def open_hysteria(system: System, session: Session) -> Entrance:
    hysteria, directory, password = system.path("hysteria"), session.run.directory, "interop"
    session.run.certificate()
    server = {
        "listen": f"{FAR}:{TUNNEL}",
        "tls": {"cert": "cert.pem", "key": "key.pem"},
        "auth": {"type": "password", "password": password},
    }
    client = {
        "server": f"{FAR}:{TUNNEL}",
        "auth": password,
        "tls": {"sni": "localhost", "insecure": True},
        "socks5": {"listen": f"{LOOPBACK}:{SOCKS}"},
        "tcpForwarding": [{"listen": f"{LOOPBACK}:{NEAR_TCP}", "remote": f"{LOOPBACK}:{TCP}"}],
        "udpForwarding": [{"listen": f"{LOOPBACK}:{NEAR_UDP}", "remote": f"{LOOPBACK}:{UDP}"}],
    }
    if system.settings:
        client["bandwidth"] = {"up": f"{session.mbit()} mbps", "down": f"{session.mbit()} mbps"}
    for name, config in (("server", server), ("client", client)):
        (directory / f"{name}.json").write_text(json.dumps(config))
    quiet = {"joined": True, "env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HYSTERIA_DISABLE_UPDATE_CHECK": "1"}}
    far = session.far("hysteria-server", [hysteria, "server", "-c", "server.json"], **quiet)
    far.await_line("server up and running", 20)
    near = session.near("hysteria-client", [hysteria, "client", "-c", "client.json"], **quiet)
    near.await_line("connected to server", 20)
    return Entrance((LOOPBACK, NEAR_TCP), (LOOPBACK, NEAR_UDP), proxy=f"socks5://{LOOPBACK}:{SOCKS}")


# Sutura


def has_tunnel(system: System) -> str | None:
    """Why the command cannot be used."""
    asked = subprocess.run([system.path("sutura"), "tunnel", "--help"], capture_output=True, timeout=20, check=False)
    return None if asked.returncode == 0 else "this sutura has no command `tunnel`"


def open_sutura(system: System, session: Session) -> Entrance:
    sutura, directory = system.path("sutura"), session.run.directory
    session.run.certificate()
    token = directory / "token"
    token.write_text(secrets.token_hex(16) + "\n")
    token.chmod(0o600)
    server = ["tunnel", "serve", "--listen", f"{FAR}:{TUNNEL}", "--cert", "cert.pem", "--key", "key.pem"]
    session.far("sutura-serve", [sutura, *server, "--token-file", "token", "--allow", f"{FAR}/32:*", *system.settings])
    client = ["tunnel", "connect", f"{FAR}:{TUNNEL}", "--token-file", "token", "--insecure"]
    client += ["-L", f"{LOOPBACK}:{NEAR_TCP}:{FAR}:{TCP}", "-U", f"{LOOPBACK}:{NEAR_UDP}:{FAR}:{UDP}"]
    client += ["-D", f"{LOOPBACK}:{SOCKS}", *system.settings]
    session.near("sutura-connect", [sutura, *client], wait_for="leads to")
    return Entrance((LOOPBACK, NEAR_TCP), (LOOPBACK, NEAR_UDP), proxy=f"socks5://{LOOPBACK}:{SOCKS}")


def open_get(*_: object) -> Entrance:
    """There is no tunnel: the job itself starts both ends."""
    return Entrance()


# All


def tcp(congestion: str) -> System:
    return System(f"TCP {congestion.upper()}", "kernel", ("ip",), open_kernel, of_kernel, ONLY_TCP, (congestion,))


def kcptun(name: str, mode: str, *window: str) -> System:
    """With a window in products of bandwidth and delay, or with the default ones."""
    programs, source = ("kcptun-server", "kcptun-client"), "Debian's kcptun"
    settings, refuses = (mode, *window), ONLY_TCP | NO_SOCKS
    return System(f"kcptun, {name}", "kcptun", programs, open_kcptun, of_debian("kcptun"), refuses, settings, source)


def wireguard(congestion: str, refuses: dict[str, str]) -> System:
    name, programs = f"wireguard-go, TCP {congestion.upper()}", ("wireguard-go", "wg", "ip")
    source = "Debian's wireguard-go and wireguard-tools"
    return System(name, "wireguard-go", programs, open_wireguard, of_debian("wireguard-go"), refuses, (congestion,), source)


def srt(name: str, latency: str) -> System:
    programs, version = ("srt-live-transmit",), of_debian("srt-tools")
    return System(f"SRT, {name}", "srt", programs, open_srt, version, ONLY_UDP, (latency,), "Debian's srt-tools")


def hysteria(name: str, *settings: str) -> System:
    return System(name, "hysteria", ("hysteria",), open_hysteria, of_file, {}, settings, BY_HAND_ONLY)


def sutura(name: str, *settings: str) -> System:
    return System(name, "sutura", ("sutura",), open_sutura, of_sutura, {}, settings, trouble=has_tunnel)


# Over the links.
SYSTEMS = [
    tcp("cubic"),
    tcp("bbr"),
    System("UDP", "kernel", ("ip",), open_kernel, of_kernel, ONLY_UDP, ("cubic",)),
    kcptun("fast", "fast"),
    kcptun("fast3, window of the link", "fast3", "1.5"),
    wireguard("cubic", {}),
    wireguard("bbr", {"udp": ALIKE}),
    srt("4 round trips", "4x"),
    srt("120 ms", "120"),
    hysteria("Hysteria, BBR"),
    hysteria("Hysteria, Brutal", "bandwidth"),
    sutura("Sutura"),
]

# Without loss.
WIRE_SYSTEMS = [
    tcp("cubic"),
    System("two hops of TCP", "socat", ("socat",), open_hops, of_debian("socat"), ONLY_TCP | NO_SOCKS, source="Debian's socat"),
    System("sutura get", "sutura-get", ("sutura",), open_get, of_sutura, {"tcp": "no tunnel"}),
    kcptun("fast", "fast"),
    wireguard("cubic", {}),
    hysteria("Hysteria, BBR"),
    sutura("Sutura"),
]


def path_of(run: Run, link: Link, seed: int) -> Ends:
    """The two namespaces of a run, and what is between them."""
    return Emulated(run, program("sutura", "sutura"), link.profile, link.profile, seed) if link.profile else Wire(run)
