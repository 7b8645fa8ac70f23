"""A change of programs turns: it looks, does the next step, waits, and believes the end when it lasts.

One machine for both kinds: a node changes in place (`node_watch`), or a new one takes the place of another (`beside_watch`). The
kind says what the next step is, and what it doubts; its hand does the step.

All that is outside, cluster, directory, operator, clock, is passed in. Nothing is written down: a run that is killed is begun again.

- The end must be seen for `hold_s` without a break: a node that serves may fall behind once more while it catches up.
- Before its first step a run asks what forbids it. After that nothing keeps the node from its place.
- A doubt that lasts `doubt_s` ends the run.
- A step that takes longer than `limit_s` ends the run, with the reason that it waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

__all__ = ["Act", "Change", "Hand", "Pace", "Refused", "StandsStill", "Step", "Turn", "Watch"]


class Act(Enum):
    """An action, or its absence. A node that changes in place only stops and starts."""

    FORMAT = "format"
    START = "start"
    ADD_VOTER = "add the voter"
    MOVE = "move the replicas"
    REMOVE_VOTER = "remove the voter"
    STOP = "stop"
    FORGET = "forget"
    WAIT = "wait"
    DONE = "done"
    REFUSE = "refuse"


class Step(NamedTuple):
    """The next action.

    Attributes:
        reasons: why it is refused, or what is waited for.
        needs_health: whether a run may begin with it only in a healthy cluster. A node that is away is helped by
            nothing but its start, and one that is gone only lets the cluster look unhealthy.
    """

    act: Act
    reasons: tuple[str, ...] = ()
    needs_health: bool = True


class Turn(NamedTuple):
    """A look: the step that it leads to.

    Attributes:
        doubts: what is wrong with the rest of the cluster.
        may_fail: whether a command of the operator that failed explains what is seen.
    """

    step: Step
    doubts: tuple[str, ...] = ()
    may_fail: bool = True


class Watch(Protocol):
    """Sees the nodes of one change."""

    def turn(self, asked: Act | None) -> Turn:
        """Look; `asked` is the last action of this run."""

    def refusals(self, *, needs_health: bool) -> tuple[str, ...]:
        """Return why nothing may be changed now."""


class Hand(Protocol):
    """Does the steps."""

    def do(self, act: Act) -> None:
        """Do a step; START and STOP only begin."""

    def failure(self) -> str | None:
        """Return how the last command of the operator failed."""


class Refused(Exception):
    """Nothing was changed, or nothing more; each reason is a sentence."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class StandsStill(Exception):
    """The run ended before the node is back; the message is the reason."""


class Pace(NamedTuple):
    """Times in seconds; `limit_s` is for each step."""

    limit_s: float
    look_every_s: float = 0.5
    hold_s: float = 3.0
    doubt_s: float = 15.0


class Change:
    """One run.

    Args:
        say: prints a line.
        clock: seconds, monotonic.
        pause: waits for seconds.

    Attributes:
        done: the steps of this run.
    """

    def __init__(
        self,
        watch: Watch,
        hand: Hand,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float],
        pause: Callable[[float], None],
        pace: Pace,
    ) -> None:
        self._watch, self._hand = watch, hand
        self._say, self._clock, self._pause = say, clock, pause
        self._pace = pace
        self.done: list[Act] = []
        self._step_since = clock()
        self._done_since: float | None = None
        self._doubts: dict[str, float] = {}
        self._said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Change done={[each.value for each in self.done]} doubts={sorted(self._doubts)}>"

    def run(self) -> None:
        """Make the change.

        Raises:
            Refused: nothing was changed, or nothing more.
            StandsStill: it is on its way, and the rest was not seen; the next run goes on.
        """
        while not self._turn():
            self._pause(self._pace.look_every_s)

    def _turn(self) -> bool:
        """Look once and act; return whether the end is believed."""
        turn = self._watch.turn(self.done[-1] if self.done else None)
        now = self._clock()
        if turn.step.act == Act.DONE:
            self._done_since = now if self._done_since is None else self._done_since
            return now - self._done_since >= self._pace.hold_s
        self._done_since = None
        if turn.step.act == Act.REFUSE:
            raise Refused(turn.step.reasons)
        if turn.step.act == Act.WAIT:
            self._wait(turn, now)
        else:
            self._act(turn.step)
        return False

    def _act(self, step: Step) -> None:
        if not self.done and (refused := self._watch.refusals(needs_health=step.needs_health)):
            raise Refused(refused)
        self.done.append(step.act)
        self._hand.do(step.act)
        self._step_since = self._clock()

    def _wait(self, turn: Turn, now: float) -> None:
        reasons = "; ".join(turn.step.reasons)
        if turn.step.reasons != self._said:
            self._said = turn.step.reasons
            self._say(f"waiting: {reasons}")
        if turn.may_fail and (failure := self._hand.failure()):
            raise StandsStill(failure)
        self._doubts = {each: self._doubts.get(each, now) for each in turn.doubts}
        for doubt, since in self._doubts.items():
            if now - since >= self._pace.doubt_s:
                raise StandsStill(f"{doubt}, for {now - since:.0f} s")
        waited_s = now - self._step_since
        if waited_s >= self._pace.limit_s:
            raise StandsStill(f"for {waited_s:.0f} s: {reasons}")
