#!/usr/bin/env python3
"""Tunnels between `sutura tunnel` and masquerade-proxy over the loopback device, in both roles: TCP by CONNECT, UDP by
CONNECT-UDP, and what either end says where the other one does not follow the RFCs. `masquerade/run.sh` builds and runs
it."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HOST = "127.0.0.1"
TOKEN = "0123456789abcdef"
# Seconds that a program may take to begin, and a step of a check.
PATIENCE = 30
STEP = 10
ATTEMPTS = 4
# More than a packet and less than the windows of masquerade-proxy, whose ends lose what comes when these are full.
BYTES = bytes(range(251)) * 1200
DATAGRAM = b"a datagram of UDP " * 50


class Wrong(Exception):
    """What is not as it should be."""


@contextlib.contextmanager
def program(scratch, command, **settings):
    """Runs a command until the end of the block. Gives the process and the file of what it says."""
    said = scratch / f"{len(list(scratch.iterdir()))}.log"
    with said.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, **settings)
    try:
        yield process, said
    except Exception:
        print(f"{' '.join(map(str, command))}\n{said.read_text()[-4000:]}", file=sys.stderr)
        raise
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(what, attempt, patience=PATIENCE):
    """Tries again until it returns something other than None."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if (outcome := attempt()) is not None:
            return outcome
        time.sleep(0.05)
    raise Wrong(what)


# The targets beyond the proxies, which answer with what they get.


def answer(connection):
    with connection, contextlib.suppress(OSError):
        while piece := connection.recv(1 << 16):
            connection.sendall(piece)


def tcp_target():
    listener = socket.create_server((HOST, 0))

    def serve():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()


def udp_target():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((HOST, 0))

    def serve():
        while True:
            datagram, sender = udp.recvfrom(2048)
            udp.sendto(datagram, sender)

    threading.Thread(target=serve, daemon=True).start()
    return udp.getsockname()


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as free:
        free.bind((HOST, 0))
        return free.getsockname()[1]


# Ways to a target.


def exactly(connection, length):
    got = bytearray()
    while len(got) < length and (piece := connection.recv(length - len(got))):
        got += piece
    return bytes(got)


def connect(port):
    return socket.create_connection((HOST, port), timeout=STEP)


def socks(port, command, target):
    """Asks a SOCKS5 proxy (RFC 1928). Gives the connection and the address in the answer."""
    connection = connect(port)
    connection.sendall(b"\x05\x01\x00")
    if exactly(connection, 2) != b"\x05\x00":
        raise Wrong("no SOCKS5 proxy without a password")
    connection.sendall(struct.pack("!BBBB", 5, command, 0, 1) + socket.inet_aton(target[0]) + struct.pack("!H", target[1]))
    head = exactly(connection, 10)
    if head[:2] != b"\x05\x00":
        raise Wrong(f"the answer of SOCKS5 is {head[1:2].hex() or 'none'}")
    return connection, struct.unpack("!H", head[8:])[0]


def by_socks(port, target):
    return socks(port, 1, target)[0]


def by_http(port, target):
    connection = connect(port)
    connection.sendall(f"CONNECT {target[0]}:{target[1]} HTTP/1.1\r\nHost: {target[0]}:{target[1]}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        if not piece:
            raise Wrong("no answer to CONNECT")
        head += piece
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise Wrong(f"the answer to CONNECT is {head}")
    return connection


def check_tcp(connection):
    """What is sent comes back. The end does not: masquerade-proxy does not hand it on, in neither role."""
    with connection:
        connection.settimeout(STEP)
        threading.Thread(target=connection.sendall, args=(BYTES,), daemon=True).start()
        got = exactly(connection, len(BYTES))
    if got != BYTES:
        raise Wrong(f"{len(got)} bytes came back of {len(BYTES)}, or other ones")


def echoed(udp, address, header=b""):
    """Sends a datagram until it comes back, since the first ones may be lost. `header` is that of SOCKS5."""
    udp.settimeout(0.2)

    def attempt():
        udp.sendto(header + DATAGRAM, address)
        try:
            got = udp.recv(2048)
        except OSError:
            return None
        if not got.endswith(DATAGRAM) or len(got) != len(header) + len(DATAGRAM):
            raise Wrong(f"another datagram came back: {got}")
        return True

    until("no datagram came back", attempt, STEP)


def check_udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        echoed(udp, (HOST, port))


def check_associate(port, target):
    connection, relay = socks(port, 3, ("0.0.0.0", 0))
    header = b"\x00\x00\x00\x01" + socket.inet_aton(target[0]) + struct.pack("!H", target[1])
    with connection, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        echoed(udp, (HOST, relay), header)


def refused(what, attempt):
    try:
        attempt()
    except (Wrong, OSError):
        return
    raise Wrong(f"{what} works although it should not")


def again(check):
    """Checks a client of theirs, which forgets an answer that comes before it has noted its question."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(Wrong, OSError):
            return check()
    return check()


class Tunnels:
    """The ends of both, and the targets."""

    def __init__(self, sutura, programs, scratch):
        self.sutura, self.scratch = sutura, scratch
        self.plain = programs / "masquerade"
        self.patched = programs / "masquerade-patched"
        # There is its example of a certificate.
        self.home = programs / "masquerade-patches" / "masquerade-proxy"
        self.tcp, self.udp = tcp_target(), udp_target()
        self.token_file = scratch / "token"
        self.token_file.write_text(TOKEN)

    @contextlib.contextmanager
    def our_client(self, binary):
        """Our client at a proxy of theirs: gives its ports and what it says."""
        port = free_port(socket.SOCK_DGRAM)
        command = [self.sutura, "tunnel", "connect", f"{HOST}:{port}", "--insecure", "--json"]
        command += ["-L", f"0:{HOST}:{self.tcp[1]}", "-D", "0", "--http", "0", "-U", f"0:{HOST}:{self.udp[1]}"]
        with (
            program(self.scratch, [binary, "serve", f"{HOST}:{port}"], cwd=self.home),
            program(self.scratch, command) as (client, said),
        ):
            line = client.stdout.readline()
            if not line:
                raise Wrong("our client does not connect")
            yield {at["kind"]: at["port"] for at in json.loads(line)["ports"]}, said

    @contextlib.contextmanager
    def their_client(self, binary, kind):
        """A client of theirs at our proxy: gives its port."""
        command = [self.sutura, "tunnel", "serve", "--listen", f"{HOST}:0", "--state-dir", self.scratch / "state"]
        command += ["--token-file", self.token_file, "--allow", f"{HOST}:*", "--json"]
        with program(self.scratch, command) as (proxy, _):
            at = json.loads(proxy.stdout.readline())["port"]
            port = free_port(socket.SOCK_STREAM)
            environment = os.environ | {"MASQUERADE_AUTHORIZATION": f"Bearer {TOKEN}"}
            with program(self.scratch, [binary, kind, f"{HOST}:{at}", f"{HOST}:{port}"], env=environment):

                def listens():
                    with contextlib.suppress(OSError):
                        connect(port).close()
                        return True

                until("their client does not listen", listens)
                yield port

    def our_client_their_proxy(self):
        with self.our_client(self.plain) as (ports, said):
            check_tcp(connect(ports["local"]))
            check_tcp(by_socks(ports["socks"], self.tcp))
            check_tcp(by_http(ports["http"], self.tcp))
            yield "TCP, our client with its proxy as it is"
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.sendto(DATAGRAM, (HOST, ports["udp"]))
                told = lambda: "SETTINGS_ENABLE_CONNECT_PROTOCOL" in said.read_text() or None
                until("our client does not say what its proxy lacks", told)
            yield "UDP, our client with its proxy as it is: our client says what is missing"
        with self.our_client(self.patched) as (ports, _):
            check_udp(ports["udp"])
            check_associate(ports["socks"], self.udp)
            yield "UDP, our client with its proxy, patched"
            check_tcp(connect(ports["local"]))
            yield "TCP, our client with its proxy, patched"

    def their_client_our_proxy(self):
        with self.their_client(self.plain, "socks5") as port:
            refused("a malformed request", lambda: by_socks(port, self.tcp))
            yield "TCP, its client as it is with our proxy: refused"
        with self.their_client(self.patched, "http") as port:
            again(lambda: check_tcp(by_http(port, self.tcp)))
            yield "TCP by HTTP, its client, patched, with our proxy"
        with self.their_client(self.patched, "socks5") as port:
            again(lambda: check_tcp(by_socks(port, self.tcp)))
            again(lambda: check_associate(port, self.udp))
            yield "TCP and UDP by SOCKS5, its client, patched, with our proxy"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sutura", type=pathlib.Path, required=True, help="the command")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="where build.sh has put its programs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sutura, programs = arguments.sutura.resolve(), arguments.programs.resolve()
        tunnels = Tunnels(sutura, programs, pathlib.Path(scratch))
        for checks in [tunnels.our_client_their_proxy(), tunnels.their_client_our_proxy()]:
            for passed in checks:
                print(f"{passed}: passed", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"FAILED: {wrong}")
