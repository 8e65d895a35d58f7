#!/usr/bin/env python3
"""A transfer over TCP, for tun.sh: `serve`, or `fetch HOST BYTES`, which checks what comes and says how fast."""

import socket
import sys
import threading
import time

PORT = 5001
PATTERN = bytes(range(251)) * 64


def answer(connection):
    with connection:
        wanted = int(connection.makefile().readline())
        sent = 0
        while sent < wanted:
            piece = PATTERN[: wanted - sent]
            connection.sendall(piece)
            sent += len(piece)


def serve():
    with socket.create_server(("", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def fetch(host, wanted):
    began = time.monotonic()
    with socket.create_connection((host, PORT), timeout=50) as connection:
        connection.sendall(b"%d\n" % wanted)
        got = bytearray()
        while piece := connection.recv(1 << 16):
            got += piece
    expected = (PATTERN * (wanted // len(PATTERN) + 1))[:wanted]
    if bytes(got) != expected:
        sys.exit(f"{len(got)} bytes came of {wanted}, or other ones")
    took = time.monotonic() - began
    print(f"{wanted} bytes in {took:.2f} s, {wanted * 8 / took / 1e6:.1f} Mbit/s")


if sys.argv[1] == "serve":
    serve()
else:
    fetch(sys.argv[2], int(sys.argv[3]))
