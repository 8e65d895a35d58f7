"""What goes through the tunnels: a typed session, a download, and streams of datagrams; and the server of a page.

    traffic.py typed HOST PORT REQUEST
    traffic.py download HOST PORT REQUEST
    traffic.py datagrams HOST PORT REQUEST [PORT OF THIS END]
    traffic.py answer-datagrams HOST PORT [HOST PORT OF THE OTHER END]
    traffic.py page HOST PORT DIRECTORY

The other end of the first two is `feed.py tcp-serve`. A stream has a datagram every so often, or several at a time:
`{"interval_us": 33333, "count": 300, "datagrams": 14, "bytes": 1200}`. Both ends read the same clock; the time of a
datagram counts from when it was to be sent.
"""

import functools
import http.server
import json
import math
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "others"))

from feed import BUFFER, NOISE, each_at_its_time, now, read_exactly, read_line

# Seconds within which a tunnel must be open.
PATIENCE = 25.0
# Datagrams of the handshake: the request, its answer, and that the streams begin.
ASK, AGREE, GO, DATA = b"?", b"!", b"g", b"d"
# The time in microseconds since 1970, the number of the message, and the number of the datagram in it.
HEADER = struct.Struct(">cQIH")


def opened(host: str, port: str) -> socket.socket:
    """A connection over which a byte went both ways. Tries again while nobody listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(b"\n")
            read_line(connection)
            return connection
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def keys(request: dict) -> list[list[int]]:
    """When keys are struck, in microseconds: about one each interval."""
    chance = random.Random(request["seed"])
    interval, at, plan = request["interval_us"], 0, []
    for _ in range(request["count"]):
        at += int(interval * chance.uniform(2 / 3, 4 / 3))
        plan.append([at, 1])
    return plan


def typed(host: str, port: str, text: str) -> None:
    request = json.loads(text)
    plan, struck, times = keys(request), [], []
    with opened(host, port) as connection:
        connection.sendall(json.dumps({"kind": "echo", "bytes": request["bytes"]}).encode() + b"\n")

        def strike() -> None:
            for _, made, _ in each_at_its_time(plan):
                struck.append(made)
                connection.sendall(b"k")

        threading.Thread(target=strike, daemon=True).start()
        end = time.monotonic() + plan[-1][0] / 1e6 + request["drain_s"]
        try:
            for number in range(request["count"]):
                connection.settimeout(max(0.001, end - time.monotonic()))
                read_exactly(connection, request["bytes"])
                times.append((now() - struck[number]) / 1e3)
        except TimeoutError:
            times += [None] * (request["count"] - len(times))
    print(json.dumps({"values_ms": times}))


def download(host: str, port: str, text: str) -> None:
    """Takes what comes within a time."""
    request, came, buffer = json.loads(text), 0, bytearray(1 << 20)
    with opened(host, port) as connection:
        start = time.monotonic()
        end = start + request["within_s"]
        connection.sendall(json.dumps({"kind": "download", "bytes": request["bytes"]}).encode() + b"\n")
        try:
            while came < request["bytes"]:
                connection.settimeout(max(0.001, end - time.monotonic()))
                part = connection.recv_into(buffer)
                if part == 0:
                    raise ConnectionError(f"the connection ended after {came} bytes")
                came += part
        except TimeoutError:
            pass
        took = time.monotonic() - start
    print(json.dumps({"bytes": came, "download_s": took}))


class Stream:
    """A stream of datagrams, at either of its ends."""

    def __init__(self, plan: dict) -> None:
        self.interval, self.count, self.datagrams = plan["interval_us"], plan["count"], plan["datagrams"]
        self.bytes = plan["bytes"]
        self.times: list[float | None] = [None] * self.count
        self.parts: list[set[int]] = [set() for _ in range(self.count)]
        self.came = 0

    def seconds(self) -> float:
        return self.count * self.interval / 1e6

    def send(self, socket_: socket.socket, to: tuple) -> None:
        padding = NOISE[:self.bytes - HEADER.size]
        for number, made, _ in each_at_its_time([[n * self.interval, 0] for n in range(self.count)]):
            for index in range(self.datagrams):
                socket_.sendto(HEADER.pack(DATA, made, number, index) + padding, to)

    def take(self, datagram: bytes, at: int) -> None:
        """A message has come with the last of its datagrams."""
        _, made, number, index = HEADER.unpack_from(datagram)
        parts = self.parts[number]
        if index not in parts:
            self.came += 1
            parts.add(index)
            if len(parts) == self.datagrams:
                self.times[number] = (at - made) / 1e3

    def is_complete(self) -> bool:
        return self.came == self.count * self.datagrams

    def figures(self) -> dict:
        """The delays of its messages, and the share of datagrams that came."""
        return {"values_ms": self.times, "datagrams": self.count * self.datagrams, "came": self.came}


def streams(request: dict) -> tuple[Stream | None, Stream | None]:
    """Those up and down."""
    up, down = (Stream(request[way]) if request.get(way) else None for way in ("up", "down"))
    return up, down


def exchange(socket_: socket.socket, sent: Stream | None, taken: Stream | None, to: tuple, request: dict) -> None:
    """Sends a stream and takes another, and prints what came of that."""
    sender = threading.Thread(target=sent.send, args=(socket_, to)) if sent else None
    if sender:
        sender.start()
    if taken:
        longest = max(stream.seconds() for stream in (sent, taken) if stream)
        take_all(socket_, taken, time.monotonic() + longest + request["drain_s"])
    if sender:
        sender.join()
    print(json.dumps(taken.figures() if taken else {"values_ms": [], "datagrams": 0, "came": 0}))


def take_all(socket_: socket.socket, taken: Stream, end: float) -> None:
    """Takes a stream until all of it is there, or the time is over."""
    while not taken.is_complete() and (left := end - time.monotonic()) > 0:
        socket_.settimeout(left)
        try:
            datagram = socket_.recv(1 << 16)
        except TimeoutError:
            return
        except ConnectionRefusedError:
            continue
        if datagram[:1] == DATA:
            taken.take(datagram, now())


def datagram_socket(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    made.bind((host, port))
    return made


def datagrams(host: str, port: str, text: str, own: str = "0") -> None:
    """Asks until the other end agrees; then the streams begin."""
    request, to = json.loads(text), (host, int(port))
    up, down = streams(request)
    with datagram_socket("0.0.0.0", int(own)) as socket_:
        socket_.settimeout(0.2)
        for _ in range(math.ceil(PATIENCE / 0.2)):
            try:
                socket_.sendto(ASK + text.encode(), to)
                if socket_.recv(1 << 16)[:1] == AGREE:
                    break
            except ConnectionRefusedError:
                time.sleep(0.2)
            except TimeoutError:
                pass
        else:
            raise SystemExit("the other end did not answer")
        for _ in range(8):
            socket_.sendto(GO, to)
        exchange(socket_, up, down, to, request)


def answer_datagrams(host: str, port: str, *other: str) -> None:
    """The other end of one exchange. It answers to where requests come from, or to where it is told."""
    with datagram_socket(host, int(port)) as socket_:
        request, to = None, None
        print("ready", flush=True)
        socket_.settimeout(2 * PATIENCE)
        while True:
            datagram, origin = socket_.recvfrom(1 << 16)
            to = (other[0], int(other[1])) if other else origin
            if datagram[:1] == ASK:
                request = json.loads(datagram[1:])
                socket_.sendto(AGREE, to)
            elif request is not None:
                break
        up, down = streams(request)
        if datagram[:1] == DATA and up:
            up.take(datagram, now())
        exchange(socket_, down, up, to, request)


class Pages(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass


def page(host: str, port: str, directory: str) -> None:
    handler = functools.partial(Pages, directory=directory)
    with http.server.ThreadingHTTPServer((host, int(port)), handler) as server:
        print("ready", flush=True)
        server.serve_forever()


COMMANDS = {"typed": typed, "download": download, "datagrams": datagrams, "answer-datagrams": answer_datagrams, "page": page}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
