"""Two network namespaces, and between them the emulated link or a plain wire, for programs that are given no link of
their own: all packets of IP that they send to each other pass through it. Needs root, iproute2 and, for the link,
socat."""

import contextlib
import json
import os
import re
import socket
import subprocess
import time
import uuid
from pathlib import Path

from process import Child, Failed, Link, Run, mortal, udp_port

# The addresses of the near and the far end.
NEAR, FAR = "10.77.0.2", "10.77.0.1"
CONTROL = "/proc/sys/net/ipv4/tcp_{}_congestion_control"
# Names of namespaces and devices: who made them, a few letters that tell them apart, and which end it is.
NAME = re.compile(r"su(\d+)-[0-9a-f]{4}[nf]\b")


def allow(stack: contextlib.ExitStack, algorithms: set[str]) -> None:
    """Lets namespaces choose these algorithms of congestion control, which the system may reserve for itself, until the
    stack is left. Says which ones the kernel has not."""

    def names(which: str) -> list[str]:
        return Path(CONTROL.format(which)).read_text(encoding="ascii").split()

    def set_allowed(allowed: list[str]) -> None:
        Path(CONTROL.format("allowed")).write_text(" ".join(allowed), encoding="ascii")

    if missing := algorithms - set(names("available")):
        raise Failed(f"MISSING: {', '.join(f'tcp_{name}' for name in sorted(missing))} of the kernel (modprobe)")
    before = names("allowed")
    if not algorithms <= set(before):
        stack.callback(set_allowed, before)
        set_allowed(sorted(algorithms | set(before)))


def inside(namespace: str, *command: object) -> list[str]:
    """The command, to be run in a namespace. It ends with the process that starts it, however that ends."""
    return mortal(["ip", "netns", "exec", namespace, *map(str, command)])


def cpu_seconds(process: int) -> float:
    """The CPU time of a process and of the children that it waited for."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def call(*command: object) -> None:
    """Runs a command that takes no time."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise Failed(f"{command[0]}: {done.stderr.strip()[:200]}")


def sweep() -> None:
    """Deletes namespaces that a process has left that was killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=20, check=False).stdout
    for found in NAME.finditer(listed):
        if not Path(f"/proc/{found[1]}").exists():
            subprocess.run(["ip", "netns", "delete", found[0]], timeout=20, check=False)


class Ends:
    """The two namespaces. Devices in them have their names."""

    def __init__(self, run: Run, mtu: int) -> None:
        self.run, self.mtu = run, mtu
        tag = f"su{os.getpid()}-{uuid.uuid4().hex[:4]}"
        self.near, self.far = f"{tag}n", f"{tag}f"
        for name in (self.near, self.far):
            run.stack.callback(call, "ip", "netns", "delete", name)
            call("ip", "netns", "add", name)
            # Neighbours that nobody asked for are no part of what is measured.
            self.set(name, "net.ipv6.conf.all.disable_ipv6=1")

    def set(self, name: str, assignment: str) -> None:
        """Sets a parameter of the kernel in a namespace."""
        call(*inside(name, "sysctl", "-qw", assignment))

    def use(self, congestion: str) -> None:
        """Has TCP use this algorithm of congestion control, which is allowed."""
        for name in (self.near, self.far):
            self.set(name, f"net.ipv4.tcp_congestion_control={congestion}")

    def up(self, name: str) -> None:
        """Gives a device, which is in the namespace of its name, its address."""
        address = NEAR if name == self.near else FAR
        for command in (f"addr add {address}/24 dev {name}", f"link set {name} mtu {self.mtu} up", "link set lo up"):
            call("ip", "-n", name, *command.split())

    def sent(self, name: str) -> tuple[int, int]:
        """Bytes and packets that an end has sent, with the headers of IP."""
        said = subprocess.run(["ip", "-n", name, "-s", "-j", "link", "show", "dev", name], capture_output=True,
                              text=True, timeout=20, check=True).stdout
        counted = json.loads(said)[0]["stats64"]["tx"]
        return counted["bytes"], counted["packets"]


class Wire(Ends):
    """A plain wire, which loses and delays nothing."""

    def __init__(self, run: Run, mtu: int = 1500) -> None:
        super().__init__(run, mtu)
        call("ip", "link", "add", self.near, "netns", self.near, "type", "veth",
             "peer", "name", self.far, "netns", self.far)
        for name in (self.near, self.far):
            self.up(name)

    def stop(self) -> dict:
        """What was sent, as the link counts it."""
        ends = {"up": self.near, "down": self.far}
        return {way: {"sent_bytes": self.sent(name)[0]} for way, name in ends.items()}


class Emulated(Ends):
    """The emulated link, by `sutura link`: `up` is from the near end to the far one."""

    def __init__(self, run: Run, sutura: Path, up: str, down: str, seed: int, mtu: int = 1500) -> None:
        super().__init__(run, mtu)
        port = udp_port()
        self.carriers: list[Child] = []
        # It learns the address of the link from the first packet.
        self.carry(self.far, f"UDP4-LISTEN:{port},bind=127.0.0.1")
        self.link = Link(run, sutura, port, up, down, seed)
        self.carry(self.near, f"UDP4:127.0.0.1:{self.link.port}")
        self.come_first()
        self.introduce()

    def come_first(self) -> None:
        """The link passes packets on before what is measured runs, if that comes before other work."""
        if os.sched_getscheduler(0) != os.SCHED_RR:
            return
        above = os.sched_param(os.sched_getparam(0).sched_priority + 1)
        for child in (self.link.child, *self.carriers):
            for thread in Path(f"/proc/{child.process.pid}/task").iterdir():
                os.sched_setscheduler(int(thread.name), os.SCHED_RR, above)

    def carry(self, name: str, to: str) -> None:
        """Has socat make a device, and carry packets between it and a UDP socket outside of the namespace."""
        tun = f"TUN,tun-name={name},iff-no-pi,tun-type=tun"
        command = mortal(["socat", "-b", 65536, tun, f"{to},rcvbuf=4194304"])
        child = self.run.start(f"carry-{name}", command)

        def made() -> bool:
            return Path(f"/sys/class/net/{name}").exists() or child.process.poll() is not None

        self.run.await_(made, f"socat made no device: {child.trouble()}")
        call("ip", "link", "set", name, "netns", name)
        self.up(name)
        self.carriers.append(child)

    def introduce(self) -> None:
        """Sends packets to a port of the far end where nobody listens, until one was answered."""
        probe = ["bash", "-c", f"echo > /dev/udp/{FAR}/9"]
        end = time.monotonic() + 20
        while self.sent(self.far)[1] == 0:
            if time.monotonic() > end:
                raise Failed("no packet passes the link")
            call(*inside(self.near, *probe))
            time.sleep(0.05)

    def stop(self) -> dict:
        """The link's counters from start to end."""
        return self.link.stop()
