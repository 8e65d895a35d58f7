"""What the comparison of tunnels computes from runs that are made up for it, and what traffic makes of requests."""

import math
import socket
import sys
import threading
import unittest
from argparse import Namespace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "others"))

import bench
import traffic
from report import Results
from tunnel_jobs import DOWNLOAD, FULL, GAME, JOBS, LINKS, QUICK, TYPED, VIDEO, WIRE, WIRE_JOBS, WIRE_TYPED, limit_ms, request
from tunnel_report import METRICS, beside_tcp, page, row, table
from tunnel_systems import SYSTEMS, WIRE_SYSTEMS

LINK = LINKS[0]
SATELLITE = next(link for link in LINKS if link.name == "satellite")


def run(system: str, job: str, values: list, outcome: str = "ok", link: str = LINK.name, number: int = 0, **more) -> dict:
    wire = {"up": {"sent_bytes": 1000}, "down": {"sent_bytes": 3000}, "late_ms": {"mean": 0.1}}
    done = {"system": system, "family": "kernel" if system.startswith("TCP") else system, "version": "1", "job": job,
            "point": link, "outcome": outcome, "repetition": number, "seconds": 6.0, "streams_s": 12}
    figures = {"values_ms": values, "wire": wire, "cpu_s": {"near": 0.5, "far": 1.5}}
    return done | (figures if outcome == "ok" else {}) | more


class Figures(unittest.TestCase):
    def test_late_and_lost_are_told_apart(self) -> None:
        game = run("a", "game", [99, 100, 101, None], came=6, datagrams=8)
        self.assertEqual(METRICS["late"].value(game, LINK), 25)
        self.assertEqual(METRICS["lost"].value(game, LINK), 25)
        self.assertEqual(METRICS["on time"].value(run("a", "video", [199, 201, None, 0]), LINK), 50)

    def test_limits_are_those_of_the_path(self) -> None:
        self.assertEqual((limit_ms("game", LINK), limit_ms("video", LINK)), (100, 200))
        self.assertEqual(limit_ms("game", SATELLITE), 375)

    def test_packets_under_way_fill_the_path(self) -> None:
        self.assertEqual(LINK.packets(1250), 100)
        self.assertEqual(SATELLITE.packets(1500), 500)

    def test_what_did_not_arrive_takes_for_ever(self) -> None:
        self.assertTrue(math.isinf(METRICS["longest"].value(run("a", "typed", [1, None]), LINK)))
        self.assertEqual(METRICS["p99 came"].value(run("a", "game", [1, 2, None]), LINK), 2)

    def test_goodput_is_of_what_came_in_its_time(self) -> None:
        part = run("a", "download", [], bytes=1_000_000, download_s=4.0)
        self.assertEqual(METRICS["goodput"].value(part, LINK), 2)
        self.assertEqual(METRICS["cost"].value(part | {"bytes": 2000}, LINK), 2)
        self.assertEqual(METRICS["goodput"].value(run("a", "download", [], "failed: no"), LINK), 0)

    def test_the_time_of_both_ends_is_for_each_gibibyte(self) -> None:
        half = run("a", "bulk", [], bytes=1 << 29)
        costs = [METRICS[name].value(half, WIRE) for name in ("cpu near", "cpu far", "cpu both")]
        self.assertEqual(costs, [1, 3, 4])
        self.assertEqual(METRICS["cpu"].value(half, WIRE), 2000)

    def test_what_is_added_is_beyond_tcp_of_the_same_round(self) -> None:
        runs = [run("TCP CUBIC", "typed", [2], link=WIRE.name), run("TCP CUBIC", "typed", [4], link=WIRE.name, number=1)]
        runs += [run("a", "typed", [7], link=WIRE.name), run("a", "typed", [7], link=WIRE.name, number=1)]
        beside_tcp(runs)
        self.assertEqual([METRICS["added"].value(one, WIRE) for one in runs], [0, 0, 5, 3])

    def test_what_a_load_takes_is_of_one(self) -> None:
        loads = run("a", "page", [100, 300])
        figures = [METRICS[name].value(loads, LINK) for name in ("middle", "longest", "wire load", "cpu load")]
        self.assertEqual(figures, [200, 300, 2, 1000])

    def test_figures_of_both_directions_are_one(self) -> None:
        parts = [{"values_ms": [1], "came": 1, "datagrams": 2}, {"values_ms": [None], "came": 0, "datagrams": 3}]
        self.assertEqual(bench.joined(parts), {"values_ms": [1, None], "came": 1, "datagrams": 5})
        self.assertEqual(bench.joined(parts[:1]), parts[0])


class Pages(unittest.TestCase):
    def test_an_empty_cell_says_why(self) -> None:
        system = next(system for system in SYSTEMS if system.family == "kcptun")
        self.assertTrue(row(system, GAME, [], LINK, {}).startswith("| kcptun, fast | TCP only | – |"))
        self.assertIn("left out", row(system, TYPED, [], LINK, {"kcptun": "it is not here"}))
        self.assertIn("not run", row(system, TYPED, [], LINK, {}))

    def test_what_failed_has_no_time_of_anybody(self) -> None:
        cells = row(SYSTEMS[-1], TYPED, [run("Sutura", "typed", [], "failed: no")], LINK, {})
        self.assertNotIn("kernel", cells)
        self.assertIn("failed (1)", cells)

    def test_time_of_the_kernel_is_not_counted(self) -> None:
        runs = [run("TCP CUBIC", "typed", [50], cpu_s=None)]
        cells = next(line for line in table(Results(runs), TYPED, LINK, SYSTEMS, {}) if line.startswith("| TCP CUBIC"))
        self.assertTrue(cells.endswith("| kernel |"), cells)
        self.assertTrue(cells.startswith("| TCP CUBIC | 50.0 | 50.0 |"), cells)

    def test_a_page_has_what_was_measured_and_failures(self) -> None:
        runs = [run("Sutura", "typed", [60]), run("Sutura", "typed", [], "failed: it is broken", number=1)]
        made = {"command": "interop/tunnels/run.sh", "machine": "m", "date": "d", "minutes": 1, "repetitions": 2, "measurements": 2}
        text = page(Results(runs), made, {"hysteria": "it is not here"})
        self.assertIn("## A typed session", text)
        self.assertNotIn("## Video", text)
        self.assertIn("in 2 measurements", text)
        self.assertIn("1 of 2 failed", text)
        self.assertIn("streams of 12 s", text)
        self.assertIn("A typed session, failed:", text)
        self.assertIn("- Sutura, random 1 %: it is broken (1)", text)
        self.assertIn("- hysteria: it is not here", text)


class Plans(unittest.TestCase):
    def wanted(self, **more) -> Namespace:
        return Namespace(**{"rounds": 2, "quick": False, "link": None, "job": None, "system": None} | more)

    def test_all_systems_take_turns_and_do_what_they_can(self) -> None:
        runs = bench.plan(self.wanted(link=["random 1"], job=["typed"]), {})
        able = [system.name for system in SYSTEMS if "tcp" not in system.refuses]
        self.assertEqual([one.system.name for one in runs if one.round == 0], able)
        self.assertEqual({one.system.name for one in runs if one.round == 1}, set(able))
        self.assertNotEqual([one.system.name for one in runs if one.round == 1], able)
        self.assertEqual([one for one in bench.plan(self.wanted(), {}) if one.job.needs in one.system.refuses], [])

    def test_a_quick_run_has_one_round_of_each_job(self) -> None:
        runs = bench.plan(self.wanted(quick=True), {"hysteria": "it is not here"})
        self.assertEqual({one.link.name for one in runs}, {LINK.name, WIRE.name})
        self.assertEqual({one.job.name for one in runs}, {job.name for job in [*JOBS, *WIRE_JOBS]})
        self.assertEqual({one.round for one in runs}, {0})
        self.assertNotIn("hysteria", {one.system.family for one in runs})

    def test_jobs_have_figures_and_each_system_says_what_it_refuses(self) -> None:
        for job in [*JOBS, *WIRE_JOBS]:
            self.assertLessEqual(set(job.metrics), set(METRICS))
        needs = {job.needs for job in [*JOBS, *WIRE_JOBS]}
        for system in [*SYSTEMS, *WIRE_SYSTEMS]:
            self.assertLess(set(system.refuses), needs, system.name)


class Traffic(unittest.TestCase):
    def test_keys_are_struck_at_uneven_times(self) -> None:
        asked = request(TYPED, LINK, FULL, 1)
        plan = traffic.keys(asked)
        gaps = [later[0] - earlier[0] for earlier, later in zip([[0, 1], *plan], plan)]
        self.assertEqual(len(plan), 200)
        self.assertTrue(all(80_000 <= gap <= 160_000 for gap in gaps), gaps)
        self.assertEqual(plan, traffic.keys(asked))
        self.assertNotEqual(plan, traffic.keys(asked | {"seed": 2}))

    def test_rates_are_those_of_the_jobs(self) -> None:
        video = request(VIDEO, LINK, FULL, 1)["down"]
        self.assertAlmostEqual(video["datagrams"] * video["bytes"] * 8 / video["interval_us"], 4, delta=0.1)
        game = request(GAME, LINK, QUICK, 1)
        self.assertEqual((game["up"]["count"], game["up"]["bytes"], game["up"]), (180, 200, game["down"]))
        self.assertEqual(request(DOWNLOAD, LINK, FULL, 1)["bytes"], 20_000_000)

    def test_a_frame_is_there_with_its_last_datagram(self) -> None:
        stream = traffic.Stream({"interval_us": 1000, "count": 2, "datagrams": 2, "bytes": 100})
        parts = [traffic.HEADER.pack(traffic.DATA, 1_000_000, 0, index) for index in (1, 1, 0)]
        for at, part in enumerate(parts):
            stream.take(part, 1_001_000 + 1000 * at)
        self.assertEqual(stream.figures(), {"values_ms": [3.0, None], "datagrams": 4, "came": 2})
        self.assertFalse(stream.is_complete())

    def test_streams_go_both_ways(self) -> None:
        near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        with near, far:
            for end in (near, far):
                end.bind(("127.0.0.1", 0))
            plan = {"interval_us": 1000, "count": 5, "datagrams": 2, "bytes": 100}
            sent, taken = traffic.Stream(plan), traffic.Stream(plan)
            thread = threading.Thread(target=sent.send, args=(near, far.getsockname()))
            thread.start()
            traffic.take_all(far, taken, traffic.time.monotonic() + 30)
            thread.join()
        self.assertTrue(taken.is_complete())
        self.assertNotIn(None, taken.figures()["values_ms"])


if __name__ == "__main__":
    unittest.main()
