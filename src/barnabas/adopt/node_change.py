"""One node becomes the other program: looks, does the next step, waits, and believes the end when it lasts.

All that is outside, cluster, directory, operator, clock, is passed in. Nothing is written down: a run that is killed is begun again.

- The end must be seen for `hold_s` without a break: a node that serves may fall behind once more while it catches up.
- A doubt about another node that lasts `doubt_s` ends the run, except between STOP and START: the node that is away is started first.
- A step that takes longer than `limit_s` ends the run, with the reason that it waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.adopt.next_step import Act, Step, doubts, next_step
from barnabas.adopt.node_watch import NodeWatch
from barnabas.adopt.observation import OwnNode, Seen
from barnabas.adopt.stop_and_start import Operator
from barnabas.client.program import Program

__all__ = ["NodeChange", "Pace", "Refused", "StandsStill"]


class Refused(Exception):
    """The node was not stopped or started; each reason is a sentence."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class StandsStill(Exception):
    """The run ended before the node is back; the message is the reason."""


class Pace(NamedTuple):
    """Times in seconds."""

    look_every_s: float = 0.5
    hold_s: float = 3.0
    doubt_s: float = 15.0
    limit_s: float = 900.0


class NodeChange:
    """The change of one node.

    Args:
        say: prints a line.
        clock: seconds, monotonic.
        pause: waits for seconds.
    """

    def __init__(
        self,
        wanted: Program,
        watch: NodeWatch,
        operator: Operator,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float],
        pause: Callable[[float], None],
        pace: Pace | None = None,
    ) -> None:
        self._wanted, self._watch, self._operator = wanted, watch, operator
        self._say, self._clock, self._pause = say, clock, pause
        self._pace = pace or Pace()
        self.asked: Act | None = None
        self._step_since = clock()
        self._done_since: float | None = None
        self._doubts: dict[str, float] = {}
        self._said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<NodeChange to {self._wanted.value} asked={self.asked and self.asked.value} doubts={sorted(self._doubts)}>"

    def run(self) -> None:
        """Change the node.

        Raises:
            Refused: it was not touched, or not a second time.
            StandsStill: it is on its way, and the rest was not seen; the next run goes on.
        """
        while not self._turn():
            self._pause(self._pace.look_every_s)

    def _turn(self) -> bool:
        """Look once and act; return whether the node is back."""
        seen = self._watch.look()
        own = self._watch.own()
        step = next_step(seen, own, self._wanted, self.asked)
        now = self._clock()
        if step.act != Act.DONE:
            self._done_since = None
        if step.act == Act.REFUSE:
            raise Refused(step.reasons)
        if step.act in (Act.STOP, Act.START):
            self._begin(step.act, now)
        elif step.act == Act.DONE:
            self._done_since = now if self._done_since is None else self._done_since
            return now - self._done_since >= self._pace.hold_s
        else:
            self._wait(step, seen, own, now)
        return False

    def _begin(self, act: Act, now: float) -> None:
        # A node that this run has stopped is started without a question.
        if self.asked is None and (refused := self._watch.refusals(is_away=act == Act.START)):
            raise Refused(refused)
        self.asked, self._step_since = act, now
        self._operator.ask(act)

    def _wait(self, step: Step, seen: Seen | None, own: OwnNode, now: float) -> None:
        if step.reasons != self._said:
            self._said = step.reasons
            self._say(f"waiting: {'; '.join(step.reasons)}")
        waited_s = now - self._step_since
        if (failure := self._operator.failure()) and own.is_held == (self.asked == Act.STOP):
            raise StandsStill(failure)
        if self.asked != Act.STOP:
            found = doubts(seen, own)
            self._doubts = {each: self._doubts.get(each, now) for each in found}
            for doubt, since in self._doubts.items():
                if now - since >= self._pace.doubt_s:
                    raise StandsStill(f"{doubt}, for {now - since:.0f} s")
        if waited_s >= self._pace.limit_s:
            raise StandsStill(f"for {waited_s:.0f} s: {'; '.join(step.reasons)}")
