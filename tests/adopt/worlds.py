"""Two clusters in virtual time that obey `barnabas adopt`, or do not, for runs that are killed anywhere: `InPlace` and `Beside`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.adopt.beside_sight import Sight
from barnabas.adopt.beside_step import beside_turn
from barnabas.adopt.change import Act, Change, Pace, Turn
from barnabas.adopt.next_step import next_turn
from barnabas.adopt.observation import OwnNode, Seen
from barnabas.client.program import Program
from tests.adopt.sights import KAFKA, OURS, STOPPED, node, seen, sight

PACE = Pace(look_every_s=0.5, hold_s=3.0, doubt_s=15.0, limit_s=60.0)


@dataclass
class World:
    """The watch, the hand and the clock of a change.

    Attributes:
        now: seconds.
        wanted: the program that the operator wants.
        starts_as: the program that starts.
        asked: what was asked of all runs, with its time.
        refused: by whether the cluster must be healthy, why.
        plans: what happens at which time.
        dies_at: when the run is killed.
    """

    now: float = 0.0
    wanted: Program = OURS
    starts_as: Program = OURS
    obeys: bool = True
    fails: str | None = None
    asked: list[tuple[Act, float]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    refused: dict[bool, tuple[str, ...]] = field(default_factory=dict)
    plans: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    dies_at: float | None = None
    cluster_id: str = "4L6g3nShT-eMCtK--X86sw"

    def run(self) -> None:
        """Run a change to its end, or until it is killed."""
        Change(self, self, say=self.said.append, clock=lambda: self.now, pause=self.pause, pace=PACE).run()

    def pause(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self.plans if each[0] <= self.now]
        self.plans = [each for each in self.plans if each[0] > self.now]
        for _, happen in due:
            happen()
        if self.dies_at is not None and self.now >= self.dies_at:
            self.dies_at = None
            raise KeyboardInterrupt

    @property
    def acts(self) -> list[Act]:
        return [act for act, _ in self.asked]

    def turn(self, asked: Act | None) -> Turn:
        raise NotImplementedError

    def obey(self, act: Act) -> None:
        raise NotImplementedError

    def refusals(self, *, needs_health: bool) -> tuple[str, ...]:
        return self.refused.get(needs_health, ())

    def do(self, act: Act) -> None:
        self.asked.append((act, self.now))
        if self.obeys:
            self.obey(act)

    def failure(self) -> str | None:
        return self.fails


@dataclass
class InPlace(World):
    """Node 2 of three, which stops and starts as it is asked, two seconds later each; it is in sync two seconds after that."""

    program: Program = KAFKA
    is_held: bool = True
    behind: int = 0
    third_is_down: bool = False

    def look(self) -> Seen | None:
        found = seen(KAFKA, self.program, KAFKA, behind=self.behind, is_down=self.program == STOPPED)
        third = node(3, KAFKA, is_down=self.third_is_down)
        return found._replace(nodes={**found.nodes, 3: third})

    def turn(self, asked: Act | None) -> Turn:
        return next_turn(self.look(), OwnNode(2, is_held=self.is_held), self.wanted, asked)

    def obey(self, act: Act) -> None:
        steps = (self.close, self.free) if act == Act.STOP else (self.serve, self.catch_up)
        self.plans += [(self.now + 2.0, steps[0]), (self.now + 4.0, steps[1])]

    def close(self) -> None:
        self.program = STOPPED

    def free(self) -> None:
        self.is_held = False

    def serve(self) -> None:
        self.program, self.is_held, self.behind = self.starts_as, True, 3

    def catch_up(self) -> None:
        self.behind = 0


@dataclass
class Beside(World):
    """Node 4 takes the place of node 2. Each step takes two seconds, MOVE while the hand waits for it."""

    seen: Sight = field(default_factory=sight)

    def coming(self, **fields: object) -> None:
        self.seen = self.seen._replace(coming=self.seen.coming._replace(**fields))  # type: ignore[arg-type]

    def leaving(self, **fields: object) -> None:
        self.seen = self.seen._replace(leaving=self.seen.leaving._replace(**fields))  # type: ignore[arg-type]

    def look(self) -> Sight | None:
        return self.seen

    def turn(self, asked: Act | None) -> Turn:
        return beside_turn(self.look(), self.wanted, asked)

    def obey(self, act: Act) -> None:
        if act == Act.START:
            self.plans += [(self.now + 1, lambda: self.coming(is_held=True)), (self.now + 2, self.serve)]
        elif act == Act.STOP:
            self.plans += [(self.now + 2, self.stopped)]
        elif act == Act.MOVE:
            # A reassignment goes on without the one who asked for it.
            self.seen = self.seen._replace(moving=5)
            self.plans += [(self.now + 2, self.moved)]
            for _ in range(5):
                self.pause(0.5)
        elif act == Act.FORMAT:
            self.coming(is_formatted=True)
        elif act == Act.ADD_VOTER:
            self.coming(is_voter=True)
        elif act == Act.REMOVE_VOTER:
            self.leaving(is_voter=False)
        else:
            assert act == Act.FORGET
            self.leaving(roles=(), is_registered=False)

    def serve(self) -> None:
        self.coming(program=self.starts_as, serves=True, lag=0)

    def stopped(self) -> None:
        self.leaving(runs=False, serves=False)
        self.seen = self.seen._replace(leader=3)

    def moved(self) -> None:
        self.seen = self.seen._replace(moving=0)
        self.leaving(replicas=0)
