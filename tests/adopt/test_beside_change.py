"""The driver of the way beside, in virtual time: a cluster that obeys, one that does not, and a run that is killed anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from barnabas.adopt.beside_change import BesideChange
from barnabas.adopt.beside_sight import Sight
from barnabas.adopt.beside_step import BesideAct
from barnabas.adopt.node_change import Pace, Refused, StandsStill
from barnabas.client.program import Program
from tests.adopt.beside_sights import NEW, OLD, sight

PACE = Pace(look_every_s=0.5, hold_s=3.0, limit_s=60.0)
ALL = [
    BesideAct.FORMAT, BesideAct.START, BesideAct.ADD_VOTER, BesideAct.MOVE, BesideAct.REMOVE_VOTER, BesideAct.STOP, BesideAct.FORGET,
]  # fmt: skip


@dataclass
class World:
    """A cluster in which node 4 takes the place of node 2. Each step takes two seconds, MOVE while the hand waits for it.

    Attributes:
        now: seconds.
        asked: the steps of all runs.
        refused: by whether the cluster must be healthy, why.
        dies_at: when the run is killed.
    """

    now: float = 0.0
    seen: Sight = field(default_factory=sight)
    program: Program = Program.BARNABAS
    obeys: bool = True
    fails: str | None = None
    asked: list[BesideAct] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    refused: dict[bool, tuple[str, ...]] = field(default_factory=dict)
    plans: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    dies_at: float | None = None

    def pause(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self.plans if each[0] <= self.now]
        self.plans = [each for each in self.plans if each[0] > self.now]
        for _, happen in due:
            happen()
        if self.dies_at is not None and self.now >= self.dies_at:
            self.dies_at = None
            raise KeyboardInterrupt

    def coming(self, **fields: object) -> None:
        self.seen = self.seen._replace(coming=self.seen.coming._replace(**fields))  # type: ignore[arg-type]

    def leaving(self, **fields: object) -> None:
        self.seen = self.seen._replace(leaving=self.seen.leaving._replace(**fields))  # type: ignore[arg-type]

    def look(self) -> Sight | None:
        return self.seen

    def refusals(self, *, needs_health: bool) -> tuple[str, ...]:
        return self.refused.get(needs_health, ())

    def failure(self) -> str | None:
        return self.fails

    def do(self, act: BesideAct) -> None:
        self.asked.append(act)
        if not self.obeys:
            return
        if act == BesideAct.START:
            self.plans += [(self.now + 1, self.hold), (self.now + 2, self.serve)]
        elif act == BesideAct.STOP:
            self.plans += [(self.now + 2, self.stopped)]
        elif act == BesideAct.MOVE:
            # A reassignment goes on without the one who asked for it.
            self.seen = self.seen._replace(moving=5)
            self.plans += [(self.now + 2, self.moved)]
            for _ in range(5):
                self.pause(0.5)
        else:
            self.at_once(act)

    def at_once(self, act: BesideAct) -> None:
        if act == BesideAct.FORMAT:
            self.coming(is_formatted=True)
        elif act == BesideAct.ADD_VOTER:
            self.coming(is_voter=True)
        elif act == BesideAct.REMOVE_VOTER:
            self.leaving(is_voter=False)
        else:
            assert act == BesideAct.FORGET
            self.leaving(roles=(), is_registered=False)

    def hold(self) -> None:
        self.coming(is_held=True)

    def serve(self) -> None:
        self.coming(program=self.program, serves=True, lag=0)

    def stopped(self) -> None:
        self.leaving(runs=False, serves=False)
        self.seen = self.seen._replace(leader=3)

    def moved(self) -> None:
        self.seen = self.seen._replace(moving=0)
        self.leaving(replicas=0)


def change(world: World, wanted: Program = Program.BARNABAS) -> BesideChange:
    return BesideChange(
        wanted, world, world, say=world.said.append, clock=lambda: world.now, pause=world.pause, pace=PACE
    )


def test_a_node_takes_the_place_of_another_one() -> None:
    world = World()
    change(world).run()
    assert world.asked == ALL
    assert world.said[:2] == ["waiting: node 4 is not there yet", "waiting: the cluster does not count node 4 as serving yet; "
                              "the metadata log of node 4 is not complete yet"]  # fmt: skip
    world.asked.clear()
    change(world).run()
    assert world.asked == [], "a second run has nothing to do"


LEADER = [*ALL[:4], BesideAct.STOP, BesideAct.REMOVE_VOTER, BesideAct.FORGET]


@pytest.mark.parametrize("moment", [0.5 * n for n in range(1, 27)])
@pytest.mark.parametrize(("leader", "steps"), [(1, ALL), (2, LEADER)], ids=["voter", "leader"])
def test_a_run_that_is_killed_at_any_moment_goes_on(moment: float, leader: int, steps: list[BesideAct]) -> None:
    world = World(seen=sight(leader=leader), dies_at=moment)
    try:
        change(world).run()
    except KeyboardInterrupt:
        change(world).run()
    assert world.seen.leaving.roles == ()
    # A node that starts, or stops, may be asked again; nothing else is done twice.
    assert list(dict.fromkeys(world.asked)) == steps
    twice = {act for act in world.asked if world.asked.count(act) > 1}
    assert twice <= {BesideAct.START, BesideAct.STOP}


@pytest.mark.parametrize("moment", [0.5 * n for n in range(1, 20)])
def test_a_run_that_is_killed_at_any_moment_can_be_undone(moment: float) -> None:
    world = World(dies_at=moment)
    with pytest.raises(KeyboardInterrupt):
        change(world).run()
    while world.plans:
        world.pause(0.5)
    new, old = world.seen.coming, world.seen.leaving
    roles = OLD.roles if new.serves else ()
    runs = new.is_held
    moved = OLD.replicas - old.replicas
    world.seen = world.seen._replace(
        coming=NEW._replace(
            id=2, program=Program.KAFKA if old.runs else Program.STOPPED, is_formatted=True, is_held=old.runs, serves=old.serves,
            is_voter=old.is_voter, lag=0,
        ),
        leaving=OLD._replace(
            id=4, roles=roles, is_registered=new.serves, serves=new.serves, runs=runs, replicas=moved, is_voter=new.is_voter
        ),
    )  # fmt: skip
    world.program = Program.KAFKA
    change(world, Program.KAFKA).run()
    found = world.seen
    assert (found.coming.id, found.coming.is_voter, found.coming.serves) == (2, True, True)
    assert (found.leaving.replicas, found.leaving.is_voter, found.leaving.runs) == (0, False, False)


def test_what_is_refused_is_not_touched() -> None:
    world = World(refused={True: ("node 3 is down",)})
    with pytest.raises(Refused, match="node 3 is down"):
        change(world).run()
    assert world.asked == []


def test_a_node_that_is_away_is_started_whatever_the_health() -> None:
    world = World(refused={True: ("node 2 is down",)})
    world.coming(is_formatted=True)
    change(world).run()
    assert world.asked == ALL[1:]


def test_a_command_that_fails() -> None:
    world = World(obeys=False, fails="`start` ended with code 5")
    world.coming(is_formatted=True)
    with pytest.raises(StandsStill, match="ended with code 5"):
        change(world).run()


def test_the_wrong_program_starts() -> None:
    with pytest.raises(Refused, match="node 4 runs Apache Kafka, not barnabas"):
        change(World(program=Program.KAFKA)).run()


def test_a_step_that_takes_too_long() -> None:
    world = World(obeys=False)
    world.coming(is_formatted=True)
    with pytest.raises(StandsStill, match="for 60 s: node 4 is not there yet"):
        change(world).run()
