"""The driver of one node's change, in virtual time: a cluster that obeys, one that does not, and a run that is killed anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from barnabas.adopt.next_step import Act
from barnabas.adopt.node_change import NodeChange, Pace, Refused, StandsStill
from barnabas.adopt.observation import OwnNode, Seen
from barnabas.client.program import Program
from tests.adopt.sights import KAFKA, OURS, STOPPED, node, seen

PACE = Pace(look_every_s=0.5, hold_s=3.0, doubt_s=15.0, limit_s=60.0)


@dataclass
class World:
    """Node 2 of three, which stops and starts as it is asked, two seconds later each; it is in sync two seconds after that.

    Attributes:
        now: seconds.
        asked: what was asked, with its time.
        refused: by whether the node is away, why.
    """

    now: float = 0.0
    program: Program = KAFKA
    is_held: bool = True
    behind: int = 0
    starts_as: Program = OURS
    obeys: bool = True
    fails: str | None = None
    third_is_down: bool = False
    asked: list[tuple[Act, float]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    refused: dict[bool, tuple[str, ...]] = field(default_factory=dict)
    plans: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    dies_at: float | None = None

    def pause(self, seconds: float) -> None:
        self.now += seconds
        due, self.plans = (
            [each for each in self.plans if each[0] <= self.now],
            [each for each in self.plans if each[0] > self.now],
        )
        for _, happen in due:
            happen()
        if self.dies_at is not None and self.now >= self.dies_at:
            self.dies_at = None
            raise KeyboardInterrupt

    # Watch

    def own(self) -> OwnNode:
        return OwnNode(2, is_held=self.is_held)

    def look(self) -> Seen | None:
        found = seen(KAFKA, self.program, KAFKA, behind=self.behind, is_down=self.program == STOPPED)
        third = node(3, KAFKA, is_down=self.third_is_down)
        return found._replace(nodes={**found.nodes, 3: third})

    def refusals(self, *, is_away: bool) -> tuple[str, ...]:
        return self.refused.get(is_away, ())

    # Hand

    def ask(self, act: Act) -> None:
        self.asked.append((act, self.now))
        if self.obeys:
            steps = (self.close, self.free) if act == Act.STOP else (self.serve, self.catch_up)
            self.plans += [(self.now + 2.0, steps[0]), (self.now + 4.0, steps[1])]

    def failure(self) -> str | None:
        return self.fails

    # The node

    def close(self) -> None:
        self.program = STOPPED

    def free(self) -> None:
        self.is_held = False

    def serve(self) -> None:
        self.program, self.is_held, self.behind = self.starts_as, True, 3

    def catch_up(self) -> None:
        self.behind = 0


def change(world: World) -> NodeChange:
    return NodeChange(OURS, world, world, say=world.said.append, clock=lambda: world.now, pause=world.pause, pace=PACE)


def test_a_node_changes() -> None:
    world = World()
    change(world).run()
    assert world.asked == [(Act.STOP, 0.0), (Act.START, 4.0)]
    assert world.program == OURS
    assert 8.0 + PACE.hold_s <= world.now < 9.0 + PACE.hold_s, "the end is believed when it lasts"
    assert world.said == [
        "waiting: node 2 still runs",
        "waiting: nothing answers at the address of node 2, and a process has its directory",
        "waiting: node 2 is not there yet",
        "waiting: 3 replicas not in sync",
    ]


def test_a_node_that_has_changed_already() -> None:
    world = World(program=OURS)
    change(world).run()
    assert (world.asked, world.now) == ([], PACE.hold_s)


def test_a_replica_that_falls_behind_once_more() -> None:
    world = World(program=OURS)
    world.plans = [(2.0, world.serve), (5.0, world.catch_up)]
    change(world).run()
    assert world.now == 5.0 + PACE.hold_s


@pytest.mark.parametrize("moment", [0.5 * n for n in range(1, 22)])
def test_a_run_that_is_killed_at_any_moment_goes_on(moment: float) -> None:
    world = World(dies_at=moment)
    with pytest.raises(KeyboardInterrupt):
        change(world).run()
    # The start that the killed run asked for takes its course.
    change(world).run()
    assert world.program == OURS
    acts = [act for act, _ in world.asked]
    assert acts.count(Act.STOP) == (2 if moment < 2 else 1), "a node that stops already may be asked again"
    assert acts[-1] == Act.START


def test_what_is_refused_is_not_touched() -> None:
    world = World(refused={False: ("node 3 is down", "it is outside the window")})
    with pytest.raises(Refused, match="node 3 is down; it is outside the window"):
        change(world).run()
    assert world.asked == []


def test_a_node_that_is_away_is_started_unless_barnabas_would_not_start() -> None:
    world = World(program=STOPPED, is_held=False, refused={False: ("not healthy",)})
    change(world).run()
    assert [act for act, _ in world.asked] == [Act.START]
    world = World(program=STOPPED, is_held=False, refused={True: ("of another cluster",)})
    with pytest.raises(Refused, match="of another cluster"):
        change(world).run()


def test_after_a_stop_nothing_keeps_the_node_from_its_start() -> None:
    world = World(refused={True: ("of another cluster",)}, third_is_down=True, obeys=False)
    world.plans = [(20.0, world.close), (30.0, world.free)]
    with pytest.raises(StandsStill, match="node 3 is down, too, for 15 s"):
        change(world).run()
    assert [act for act, _ in world.asked] == [Act.STOP, Act.START]


def test_a_doubt_that_passes() -> None:
    world = World(third_is_down=True)
    world.plans = [(18.0, lambda: setattr(world, "third_is_down", False))]
    change(world).run()
    assert world.program == OURS


def test_the_wrong_program_starts() -> None:
    with pytest.raises(Refused, match="Apache Kafka runs on node 2 again"):
        change(World(starts_as=KAFKA)).run()


def test_a_command_that_fails() -> None:
    world = World(obeys=False, fails="`stop` ended with code 5")
    with pytest.raises(StandsStill, match="`stop` ended with code 5"):
        change(world).run()
    assert world.now < 2


def test_a_second_start_that_finds_the_first_one_at_work_is_no_failure() -> None:
    world = World(program=STOPPED, is_held=False, obeys=False, fails="`start` ended with code 1")
    world.plans = [(0.5, lambda: setattr(world, "is_held", True)), (9.0, world.serve), (10.0, world.catch_up)]
    change(world).run()
    assert world.program == OURS


def test_a_step_that_takes_too_long() -> None:
    world = World(obeys=False)
    with pytest.raises(StandsStill, match="for 60 s: node 2 still runs"):
        change(world).run()
