"""One node takes the place of another one: looks, does the next step, waits, and believes the end when it lasts.

All that is outside, cluster, directory, operator, clock, is passed in. Nothing is written down: a run that is killed is begun again.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.adopt.beside_hand import TwoNodesHand
from barnabas.adopt.beside_step import BesideAct, BesideStep, beside_step
from barnabas.adopt.beside_watch import TwoNodes
from barnabas.adopt.node_change import Pace, Refused, StandsStill
from barnabas.client.program import Program

__all__ = ["BesideChange"]


class BesideChange:
    """The replacement of one node.

    Args:
        say: prints a line.
        clock: seconds, monotonic.
        pause: waits for seconds.

    Attributes:
        done: the steps of this run.
    """

    def __init__(
        self,
        wanted: Program,
        watch: TwoNodes,
        hand: TwoNodesHand,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float],
        pause: Callable[[float], None],
        pace: Pace | None = None,
    ) -> None:
        self._wanted, self._watch, self._hand = wanted, watch, hand
        self._say, self._clock, self._pause = say, clock, pause
        self._pace = pace or Pace()
        self.done: list[BesideAct] = []
        self._step_since = clock()
        self._done_since: float | None = None
        self._said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<BesideChange to {self._wanted.value} done={[each.value for each in self.done]}>"

    def run(self) -> None:
        """Replace the node.

        Raises:
            Refused: nothing was changed, or nothing more.
            StandsStill: it is on its way, and the rest was not seen; the next run goes on.
        """
        while not self._turn():
            self._pause(self._pace.look_every_s)

    def _turn(self) -> bool:
        """Look once and act; return whether the node has taken the place."""
        sight = self._watch.look()
        now = self._clock()
        if sight is None:
            self._wait(BesideStep(BesideAct.WAIT, ("no broker answers",)), now)
            return False
        step = beside_step(sight, self._wanted, self.done[-1] if self.done else None)
        if step.act == BesideAct.REFUSE:
            raise Refused(step.reasons)
        if step.act == BesideAct.DONE:
            self._done_since = now if self._done_since is None else self._done_since
            return now - self._done_since >= self._pace.hold_s
        self._done_since = None
        if step.act == BesideAct.WAIT:
            self._wait(step, now)
        else:
            self._act(step)
        return False

    def _act(self, step: BesideStep) -> None:
        if not self.done and (refused := self._watch.refusals(needs_health=step.needs_health)):
            raise Refused(refused)
        self.done.append(step.act)
        self._hand.do(step.act)
        self._step_since = self._clock()

    def _wait(self, step: BesideStep, now: float) -> None:
        if step.reasons != self._said:
            self._said = step.reasons
            self._say(f"waiting: {'; '.join(step.reasons)}")
        if failure := self._hand.failure():
            raise StandsStill(failure)
        waited_s = now - self._step_since
        if waited_s >= self._pace.limit_s:
            raise StandsStill(f"for {waited_s:.0f} s: {'; '.join(step.reasons)}")
