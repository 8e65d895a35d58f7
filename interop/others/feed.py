"""Sources and sinks for systems that carry the bytes of others: a server and a client over TCP, which measure as
sutura-feed does, and a source and a sink of datagrams.

    feed.py tcp-serve ADDRESS PORT [CONGESTION CONTROL]
    feed.py tcp-fetch ADDRESS PORT REQUEST
    feed.py udp-send PORT REQUEST
    feed.py udp-receive PORT REQUEST

A message begins with the time at which it was made, in microseconds since 1970, and its size. In datagrams, each
begins with that time, the number of the message, and the number of the datagram in it and of all.
"""

import contextlib
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator

HEADER = struct.Struct(">QI")
DATAGRAM_HEADER = struct.Struct(">QHHH")
# The most that SRT takes in one packet.
DATAGRAM = 1316
BUFFER = 8 << 20
# What a download is made of, again and again: nothing that can be compressed, and longer than what compressors remember.
NOISE = random.Random(1).randbytes(1 << 20)


def now() -> int:
    return time.time_ns() // 1000


def each_at_its_time(messages: list[list[int]]) -> Iterator[tuple[int, int, int]]:
    """Waits for each message; gives its number, when it was to be made, and its size."""
    start = now()
    for number, (at, size) in enumerate(messages):
        made = start + at
        time.sleep(max(0, made - now()) / 1e6)
        yield number, made, size


def read_exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(length - len(data), 1 << 16))
        if not part:
            raise ConnectionError(f"the connection ended after {len(data)} bytes of {length}")
        data += part
    return bytes(data)


def read_line(connection: socket.socket) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        line += read_exactly(connection, 1)
    return bytes(line)


def echo(connection: socket.socket, size: int) -> None:
    """Sends so many bytes for each that comes, until the client closes the connection."""
    while came := connection.recv(1 << 10):
        connection.sendall(NOISE[:size] * len(came))


def answer(connection: socket.socket) -> None:
    """Answers a word that opens the connection, and requests until the client closes it."""
    with connection, contextlib.suppress(ConnectionError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read_line(connection)
        connection.sendall(b"\n")
        while True:
            request = json.loads(read_line(connection))
            if request["kind"] == "download":
                for at in range(0, request["bytes"], len(NOISE)):
                    connection.sendall(NOISE[:request["bytes"] - at])
            elif request["kind"] == "echo":
                echo(connection, request["bytes"])
            else:
                for _, made, size in each_at_its_time(request["messages"]):
                    connection.sendall(HEADER.pack(made, size) + bytes(size - HEADER.size))


def tcp_serve(address: str, port: str, congestion: str | None = None) -> None:
    listener = socket.create_server((address, int(port)))
    if congestion is not None:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def download(connection: socket.socket, request: dict, times: list[float | None]) -> None:
    start = time.monotonic()
    connection.sendall(json.dumps(request).encode() + b"\n")
    read_exactly(connection, request["bytes"])
    times.append((time.monotonic() - start) * 1e3)


def stream(connection: socket.socket, request: dict, times: list[float | None]) -> None:
    messages = request["messages"]
    deadline = time.monotonic() + messages[-1][0] / 1e6 + request["drain_s"]
    connection.sendall(json.dumps(request).encode() + b"\n")
    try:
        for _ in messages:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            made, size = HEADER.unpack(read_exactly(connection, HEADER.size))
            read_exactly(connection, size - HEADER.size)
            times.append((now() - made) / 1e3)
    except TimeoutError:
        times += [None] * (len(messages) - len(times))


def tcp_fetch(address: str, port: str, text: str) -> None:
    request, times = json.loads(text), []
    count = request.get("count", 1)
    connections = count if request.get("fresh", True) else 1
    for _ in range(connections):
        with socket.create_connection((address, int(port)), timeout=30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(b"\n")
            read_line(connection)
            for _ in range(count // connections):
                (download if request["kind"] == "download" else stream)(connection, request, times)
    print(json.dumps({"values_ms": times}))


def datagrams(number: int, made: int, size: int) -> Iterator[bytes]:
    """The datagrams of a message."""
    room = DATAGRAM - DATAGRAM_HEADER.size
    count = -(-size // room)
    for index in range(count):
        part = min(room, size - index * room)
        yield DATAGRAM_HEADER.pack(made, number, index, count) + bytes(part)


def udp_send(port: str, text: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for message in each_at_its_time(json.loads(text)["messages"]):
            for datagram in datagrams(*message):
                out.sendto(datagram, ("127.0.0.1", int(port)))


class Assembly:
    """Puts messages together, and takes their times."""

    def __init__(self, count: int) -> None:
        self.times: list[float | None] = [None] * count
        self.parts: dict[int, set[int]] = {}

    def take(self, datagram: bytes, at: int) -> None:
        made, number, index, count = DATAGRAM_HEADER.unpack_from(datagram)
        parts = self.parts.setdefault(number, set())
        parts.add(index)
        if len(parts) == count and self.times[number] is None:
            self.times[number] = (at - made) / 1e3

    def complete(self) -> bool:
        return None not in self.times


def udp_receive(port: str, text: str) -> None:
    request = json.loads(text)
    assembly = Assembly(len(request["messages"]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as incoming:
        incoming.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        incoming.bind(("127.0.0.1", int(port)))
        print("ready", flush=True)
        wait = request["messages"][-1][0] / 1e6 + request["drain_s"]
        incoming.settimeout(30)
        end = None
        try:
            while not assembly.complete():
                datagram = incoming.recv(1 << 16)
                end = end or time.monotonic() + wait
                assembly.take(datagram, now())
                incoming.settimeout(max(0.001, end - time.monotonic()))
        except TimeoutError:
            pass
    print(json.dumps({"values_ms": assembly.times}))


COMMANDS = {"tcp-serve": tcp_serve, "tcp-fetch": tcp_fetch, "udp-send": udp_send, "udp-receive": udp_receive}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
