"""What the comparison computes from runs that are made up for it, and how messages are put together."""

import json
import math
import os
import socket
import struct
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import feed
from jobs import JOBS, Job, both, downloads, flec_path, messages, steady
from measure import run_once
from process import Failed, absent_libraries
from report import METRICS, Results, Spread, percentile
from systems import System, fork_query, pieces

POINT = both("here", "delay=1ms", messages(steady(1000, 100_000, 4), ordered=True), limit_ms=50)
JOB = Job("job", "A job", "Text.", [POINT], decides="p99")


def run(system: str, values: list, outcome: str = "ok") -> dict:
    link = {"down": {"sent_bytes": 6000}, "late_ms": {"mean": 0.1}}
    done = {"system": system, "family": system, "version": "1", "job": "job", "point": "here", "outcome": outcome}
    return done | ({"values_ms": values, "link": link} if outcome == "ok" else {})


class Figures(unittest.TestCase):
    def test_what_did_not_arrive_takes_for_ever(self) -> None:
        self.assertEqual(percentile([3, 1, None, 2], 0.5), 3)
        self.assertTrue(math.isinf(percentile([1, None], 0.99)))

    def test_a_message_is_on_time_within_the_limit(self) -> None:
        self.assertEqual(METRICS["on time"].value(run("a", [49, 50, 51, None]), POINT), 50)

    def test_bytes_are_those_of_the_link_for_each_of_the_messages(self) -> None:
        self.assertEqual(METRICS["bytes"].value(run("a", [1] * 4), POINT), 1.5)

    def test_a_failure_is_the_worst_and_is_shown(self) -> None:
        spread = Spread.of(METRICS["on time"], [run("a", [1]), run("a", [], "failed: late")], POINT)
        self.assertEqual(spread.cell(0), "50 [0 100], 1 of 2 failed")

    def test_ahead_is_who_is_apart_from_all_others(self) -> None:
        runs = [run("slow", [90]), run("slow", [99]), run("fast", [10]), run("fast", [20]), run("near", [20]), run("near", [80])]
        self.assertEqual(Results(runs).order(JOB, POINT), "| here | fast (15) | near (50) | slow (94) |")
        late = Job("job", "A job", "Text.", [POINT], decides="on time")
        self.assertEqual(Results(runs).order(late, POINT), "| here | fast (100.0) | near (50.0) | slow (0.0) |")

    def test_points_that_were_not_measured_are_left_out(self) -> None:
        elsewhere = both("elsewhere", "delay=1ms", POINT.request, limit_ms=50)
        job = Job("job", "A job", "Text.", [elsewhere, POINT], decides="p99")
        section = "\n".join(Results([run("a", [1])]).section(job))
        self.assertIn("| here | a (1) | none | none |", section)
        self.assertNotIn("elsewhere", section)

    def test_each_reason_for_a_failure_is_given_once(self) -> None:
        runs = [run("a", [], "failed: no"), run("a", [], "failed: no")]
        self.assertIn("- a, here: no (2)", Results(runs).section(JOB))

    def test_a_run_that_fails_is_a_result(self) -> None:
        def fails(*_: object) -> None:
            raise Failed("it does not run")

        system = System("a", "a", (), lambda _: True, fails, lambda _: "1")
        self.assertEqual(run_once(system, JOB, POINT, 1, 0)["outcome"], "failed: it does not run")


class Jobs(unittest.TestCase):
    def test_each_job_has_three_points_and_a_metric(self) -> None:
        for job in JOBS:
            self.assertEqual(len(job.points), 3, job.name)
            self.assertIn(job.decides, METRICS)

    def test_the_queue_of_a_path_is_that_of_flec(self) -> None:
        up, down = flec_path(8, 200, 2, 1)
        self.assertEqual(down, "rate=8mbit delay=200ms queue=524p loss=bern:0.0200")
        self.assertTrue(up.endswith("bern:0.0100"))


class Feed(unittest.TestCase):
    def test_a_message_is_there_with_its_last_datagram(self) -> None:
        parts = list(feed.datagrams(0, 1_000_000, 3000))
        self.assertEqual([len(part) for part in parts], [1316, 1316, 410])
        assembly = feed.Assembly(2)
        for at, part in enumerate(reversed(parts)):
            assembly.take(part, 1_001_000 + at * 1000)
        self.assertEqual(assembly.times, [3.0, None])

    def test_requests_over_tcp_give_a_time_for_each(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        # The options of TCP that it sets are not there; the rest is the same.
        class Plain:
            def __init__(self, inner: socket.socket) -> None:
                self.recv, self.sendall, self.settimeout = inner.recv, inner.sendall, inner.settimeout
                self.inner = inner

            def setsockopt(self, *_: object) -> None:
                pass

            def __enter__(self) -> "Plain":
                return self

            def __exit__(self, *_: object) -> None:
                self.inner.close()

        threading.Thread(target=feed.answer, args=(Plain(theirs),), daemon=True).start()
        times: list = []
        with ours:
            ours.sendall(b"\n")
            self.assertEqual(feed.read_line(ours), b"\n")
            feed.download(ours, downloads(100_000, 1), times)
            feed.stream(ours, messages(steady(1000, 1000, 3), ordered=True), times)
        self.assertEqual(len(times), 4)
        self.assertNotIn(None, times)


class Programs(unittest.TestCase):
    def test_libraries_that_are_not_there_are_named(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            # A program that says what ldd says of one that lacks a library.
            ldd = Path(directory) / "ldd"
            ldd.write_text("#!/bin/sh\nprintf '\\tlibc.so.6 => /lib/libc.so.6 (0x1)\\n\\tlibssl.so.0 => not found\\n'\n")
            ldd.chmod(0o755)
            with mock.patch.dict(os.environ, {"PATH": f"{directory}:{os.environ['PATH']}"}):
                self.assertEqual(absent_libraries(Path("any")), ["libssl.so.0"])
        self.assertEqual(absent_libraries(Path(sys.executable)), [])


class Fork(unittest.TestCase):
    def test_a_piece_is_as_late_as_its_latest_cell(self) -> None:
        cells = [(0, 40), (10, 50), (500, 45), (0, 0)]
        dump = struct.pack(">QQQQ", 0, 900, 0, 1000)
        dump += b"".join(struct.pack(">QQ", arrived, delay * 1) for arrived, delay in cells) + struct.pack(">QQ", 0, 2000)
        self.assertEqual(pieces(dump), {960: 0.05, 1455: 0.045})

    def test_a_query_says_what_is_made(self) -> None:
        query = fork_query(messages(steady(5000, 16_667, 3), ordered=True), 3)
        self.assertEqual(query, "length=15023&interval_us=16667&interval_len=5000&exp_eps=u%3D3%2Ci%2Cexp_b%3D3")
        self.assertEqual(fork_query(downloads(32_000, 1), 0), "length=32000&exp_eps=u%3D3")


if __name__ == "__main__":
    unittest.main()
