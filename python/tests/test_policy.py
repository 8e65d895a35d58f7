"""Policies that are written in Python."""

import re
from statistics import median

import pytest

from sutura import lab
from sutura.policy import Redundancy

LOSSY = {"links": ["rate=5mbit delay=20ms loss=bern:5%"], "apps": ["messages=900b every=20ms count=300 within=60ms"]}


class EveryFive(Redundancy):
    name = "every-five"

    def __init__(self):
        self.uncovered = 0

    def on_source_sent(self, now, symbol, view):
        assert now >= 0 and symbol < view.next and 0 <= view.loss <= 1 and view.rtt > 0
        self.uncovered += 1

    def on_repair_sent(self, now, view):
        self.uncovered = 0

    def decide(self, now, view):
        return self.uncovered >= 5


class Never(Redundancy):
    name = "never"


class LastTwo(EveryFive):
    """Covers the last two symbols alone."""

    name = "last-two"

    def decide(self, now, view):
        return (view.next - 2, view.next) if self.uncovered >= 5 else None


class Later(EveryFive):
    """Covers what was sent 7 ms before."""

    name = "later"
    late = []

    def __init__(self):
        self.due = None

    def on_source_sent(self, now, symbol, view):
        self.due = now + 0.007

    def on_repair_sent(self, now, view):
        self.late.append(now - self.due)
        self.due = None

    def timeout(self):
        return self.due

    def decide(self, now, view):
        return self.due is not None and now >= self.due


class Untimed(Later):
    """The same, asked only when something else happens."""

    name = "untimed"
    late = []

    def timeout(self):
        return None


class Nothing(EveryFive):
    """Protects no data, so that it is told of none."""

    name = "nothing"

    def protects(self, view):
        return False

    def on_source_sent(self, now, symbol, view):
        raise AssertionError("nothing is protected")


class Mending(Redundancy):
    """A repair symbol for each lost one."""

    name = "mending"
    mends = True

    def decide(self, now, view):
        return view.missing > view.added


def figures(own, **options):
    """Late messages and repair symbols for each packet, of none and each policy, by name."""
    names = [policy.name for policy in own]
    report, _ = lab.sweep("own-paths", own=own, policies=names, seeds=3, **LOSSY, **options)
    table = report.tables["Policies"].to_pydict()
    return {name: (late, repairs) for name, late, repairs in zip(table["policy"], table["late or time"], table["repairs"])}


def test_a_policy_decides():
    found = figures([EveryFive, Never, LastTwo])
    assert found["never"] == found["none"] and found["none"][1] == 0
    assert 0.1 < found["every-five"][1] < 0.25
    assert found["every-five"][0] < found["none"][0]
    assert found["last-two"][1] > 0.1


def test_a_policy_is_asked_again_at_its_time():
    Later.late.clear()
    Untimed.late.clear()
    found = figures([Later, Untimed])
    assert found["later"][1] > 0.2
    # A timer goes by microseconds; sometimes pacing has no room at its time.
    assert median(Later.late) < 0.0001 < median(Untimed.late)


def test_what_a_policy_does_not_protect_is_no_symbol():
    found = figures([Nothing])
    assert found["nothing"] == found["none"]


def test_a_policy_mends_what_is_lost():
    found = figures([Mending])
    assert 0.02 < found["mending"][1] < 0.2


def test_results_are_the_same_each_time():
    options = dict(own=[EveryFive], policies=["every-five"], seeds=1, **LOSSY)
    assert lab.run("own-paths", "0-1", **options) == lab.run("own-paths", "0-1", **options)


@pytest.mark.parametrize("method", ["__init__", "on_source_sent", "protects", "timeout", "decide"])
def test_an_exception_is_that_of_the_job(method):
    def fail(self, *_):
        raise KeyError("by design")

    broken = type("Broken", (EveryFive,), {"name": "broken", method: fail})
    with pytest.raises(KeyError, match="by design"):
        lab.run("own-paths", "0-1", own=[broken], policies=["broken"], seeds=1, **LOSSY)


@pytest.mark.parametrize(
    ("own", "error", "told"),
    [
        ([EveryFive()], TypeError, "own: a policy is a class"),
        ([type("Nameless", (Redundancy,), {})], ValueError, "own: `` is not a name"),
        ([object], AttributeError, "name"),
        (3, TypeError, "own: "),
    ],
)
def test_what_is_no_policy_is_told(own, error, told):
    with pytest.raises(error, match=re.escape(told)):
        lab.jobs("own-paths", own=own)
