"""Redundancy policies of one's own, for the simulator.

A policy is a class. Each coding session of a connection gets an instance, which is told what happens and asked, for each
slot of the congestion window, whether a repair symbol goes next::

    from sutura import lab
    from sutura.policy import Redundancy

    class EveryTen(Redundancy):
        name = "every-ten"

        def __init__(self):
            self.uncovered = 0

        def on_source_sent(self, now, symbol, view):
            self.uncovered += 1

        def on_repair_sent(self, now, view):
            self.uncovered = 0

        def decide(self, now, view):
            return self.uncovered >= 10

    report, _ = lab.sweep("own-paths", own=[EveryTen], policies=["every-ten", "auto"], seeds=5)
    print(report.markdown)

An exception of a policy ends the job and is raised by the call that did it.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from ._native import View

__all__ = ["Redundancy", "View"]


class Redundancy:
    """A policy that sends no repair symbol. ``now`` is in seconds since the session began."""

    name = ""
    """The name of the policy in experiments: without colons, commas and blanks."""

    mends = False
    """Whether the policy sends repair symbols in place of lost data, which then waits for them, and is sent again only if
    they fail to mend it."""

    def on_source_sent(self, now: float, symbol: int, view: View) -> None:
        """The source symbol with this number was sent for the first time."""

    def on_flushed(self, now: float, ended: bool, view: View) -> None:
        """All that the application has written was sent; ``ended`` if there will be no more."""

    def on_repair_sent(self, now: float, view: View) -> None:
        """A repair symbol was sent."""

    def on_lost(self, now: float, symbol: int, view: View) -> None:
        """The packet with this source symbol was declared lost."""

    def on_arrived(self, now: float, symbol: int, view: View) -> None:
        """The peer has this source symbol."""

    def protects(self, view: View) -> bool:
        """Whether data that is sent now becomes a source symbol. Other data saves the symbol's header, and no repair
        symbol covers it. ``view.deadline`` is None here."""
        return True

    def timeout(self) -> Optional[float]:
        """When :meth:`decide` may answer otherwise without any other event, in seconds since the session began: while
        there is nothing to send, it is not asked before."""
        return None

    def decide(self, now: float, view: View) -> Union[bool, None, tuple[int, int]]:
        """Whether a repair symbol goes next: over all symbols that are not known to have arrived (``True``), or over
        those from the first number up to the second.

        It is asked any number of times for one slot, and must change nothing: a repair symbol counts only when
        :meth:`on_repair_sent` is called.
        """
        return None
