"""The machine of both changes, in virtual time: a cluster that obeys, one that does not, and a run that is killed anywhere."""

from __future__ import annotations

import pytest

from barnabas.adopt.change import Act, Refused, StandsStill
from tests.adopt.sights import KAFKA, NEW, OLD, OURS, STOPPED, sight
from tests.adopt.worlds import PACE, Beside, InPlace, World

ALL = [Act.FORMAT, Act.START, Act.ADD_VOTER, Act.MOVE, Act.REMOVE_VOTER, Act.STOP, Act.FORGET]
LEADER = [*ALL[:4], Act.STOP, Act.REMOVE_VOTER, Act.FORGET]
BOTH = pytest.mark.parametrize("kind", [InPlace, Beside])


def away(kind: type[World], **fields: object) -> World:
    """Return a world whose node has its directory, and does not run."""
    if kind is InPlace:
        return InPlace(program=STOPPED, is_held=False, **fields)  # type: ignore[arg-type]
    world = Beside(**fields)  # type: ignore[arg-type]
    world.coming(is_formatted=True)
    return world


def killed(world: World) -> None:
    with pytest.raises(KeyboardInterrupt):
        world.run()


def test_a_node_changes_in_place() -> None:
    world = InPlace()
    world.run()
    assert world.asked == [(Act.STOP, 0.0), (Act.START, 4.0)]
    assert world.program == OURS
    assert 8.0 + PACE.hold_s <= world.now < 9.0 + PACE.hold_s, "the end is believed when it lasts"
    assert world.said == [
        "waiting: node 2 still runs",
        "waiting: nothing answers at the address of node 2, and a process has its directory",
        "waiting: node 2 is not there yet",
        "waiting: 3 replicas not in sync",
    ]


def test_a_node_takes_the_place_of_another_one() -> None:
    world = Beside()
    world.run()
    assert world.acts == ALL
    assert world.said[:2] == [
        "waiting: node 4 is not there yet",
        "waiting: the cluster does not count node 4 as serving yet; the metadata log of node 4 is not complete yet",
    ]


def typed_again(world: Beside) -> None:
    """Run a change that may have ended: then the node that left is not found, and the run says so."""
    if world.seen.leaving.roles:
        world.run()
        return
    with pytest.raises(Refused, match="nothing is left to do"):
        world.run()


def test_a_second_run_has_nothing_to_do() -> None:
    world = InPlace()
    world.run()
    world.asked.clear()
    world.now = 0.0
    world.run()
    assert (world.asked, world.now) == ([], PACE.hold_s)


def test_a_second_run_beside_cannot_tell_the_node_that_left_from_a_mistyped_id() -> None:
    world = Beside()
    world.run()
    world.asked.clear()
    with pytest.raises(Refused, match=r"node 2 is not part of this cluster.*; node 4 is barnabas already"):
        world.run()
    assert world.asked == []


def test_a_replica_that_falls_behind_once_more() -> None:
    world = InPlace(program=OURS)
    world.plans = [(2.0, world.serve), (5.0, world.catch_up)]
    world.run()
    assert world.now == 5.0 + PACE.hold_s


@pytest.mark.parametrize("moment", [0.5 * n for n in range(1, 22)])
def test_a_change_in_place_that_is_killed_at_any_moment_goes_on(moment: float) -> None:
    world = InPlace(dies_at=moment)
    killed(world)
    # The start that the killed run asked for takes its course.
    world.run()
    assert world.program == OURS
    assert world.acts.count(Act.STOP) == (2 if moment < 2 else 1), "a node that stops already may be asked again"
    assert world.acts[-1] == Act.START


@pytest.mark.parametrize("moment", [0.5 * n for n in range(1, 27)])
@pytest.mark.parametrize(("leader", "steps"), [(1, ALL), (2, LEADER)], ids=["voter", "leader"])
def test_a_change_beside_that_is_killed_at_any_moment_goes_on(moment: float, leader: int, steps: list[Act]) -> None:
    world = Beside(seen=sight(leader=leader), dies_at=moment)
    try:
        world.run()
    except KeyboardInterrupt:
        typed_again(world)
    assert world.seen.leaving.roles == ()
    # A node that starts, or stops, may be asked again; nothing else is done twice.
    assert list(dict.fromkeys(world.acts)) == steps
    assert {act for act in ALL if world.acts.count(act) > 1} <= {Act.START, Act.STOP}


@pytest.mark.parametrize("moment", [0.5 * n for n in range(1, 20)])
def test_a_change_beside_that_is_killed_at_any_moment_can_be_undone(moment: float) -> None:
    world = Beside(dies_at=moment)
    killed(world)
    while world.plans:
        world.pause(0.5)
    new, old = world.seen.coming, world.seen.leaving
    world.seen = world.seen._replace(
        coming=NEW._replace(
            id=2, program=KAFKA if old.runs else STOPPED, is_formatted=True, is_held=old.runs, serves=old.serves,
            is_voter=old.is_voter, lag=0,
        ),
        leaving=OLD._replace(
            id=4, roles=OLD.roles if new.serves else (), is_registered=new.serves, serves=new.serves, runs=new.is_held,
            replicas=OLD.replicas - old.replicas, is_voter=new.is_voter,
        ),
    )  # fmt: skip
    world.starts_as = world.wanted = KAFKA
    typed_again(world)
    found = world.seen
    assert (found.coming.id, found.coming.is_voter, found.coming.serves) == (2, True, True)
    assert (found.leaving.replicas, found.leaving.is_voter, found.leaving.runs) == (0, False, False)


@BOTH
def test_what_is_refused_is_not_touched(kind: type[World]) -> None:
    world = kind(refused={True: ("node 3 is down", "it is outside the window")})
    with pytest.raises(Refused, match="node 3 is down; it is outside the window"):
        world.run()
    assert world.asked == []


@BOTH
def test_a_node_that_is_away_is_started_whatever_the_health(kind: type[World]) -> None:
    world = away(kind, refused={True: ("node 3 is down",)})
    world.run()
    assert world.acts == ([Act.START] if kind is InPlace else ALL[1:])


@BOTH
def test_a_node_that_is_away_is_not_started_if_barnabas_would_not_start(kind: type[World]) -> None:
    with pytest.raises(Refused, match="of another cluster"):
        away(kind, refused={False: ("of another cluster",)}).run()


def test_after_a_stop_nothing_keeps_the_node_from_its_start() -> None:
    world = InPlace(refused={False: ("of another cluster",)}, third_is_down=True, obeys=False)
    world.plans = [(20.0, world.close), (30.0, world.free)]
    with pytest.raises(StandsStill, match="node 3 is down, too, for 15 s"):
        world.run()
    assert world.acts == [Act.STOP, Act.START]


def test_a_doubt_that_passes() -> None:
    world = InPlace(third_is_down=True)
    world.plans = [(18.0, lambda: setattr(world, "third_is_down", False))]
    world.run()
    assert world.program == OURS


@pytest.mark.parametrize(
    ("kind", "said"),
    [(InPlace, "Apache Kafka runs on node 2 again"), (Beside, "node 4 runs Apache Kafka, not barnabas")],
)
def test_the_wrong_program_starts(kind: type[World], said: str) -> None:
    with pytest.raises(Refused, match=said):
        kind(starts_as=KAFKA).run()


@BOTH
def test_a_command_that_fails(kind: type[World]) -> None:
    world = away(kind, obeys=False, fails="`start` ended with code 5")
    with pytest.raises(StandsStill, match="`start` ended with code 5"):
        world.run()
    assert world.now < 2


def test_a_stop_that_fails() -> None:
    world = InPlace(obeys=False, fails="`stop` ended with code 5")
    with pytest.raises(StandsStill, match="`stop` ended with code 5"):
        world.run()
    assert world.now < 2


def test_a_second_start_that_finds_the_first_one_at_work_is_no_failure() -> None:
    world = InPlace(program=STOPPED, is_held=False, obeys=False, fails="`start` ended with code 1")
    world.plans = [(0.5, lambda: setattr(world, "is_held", True)), (9.0, world.serve), (10.0, world.catch_up)]
    world.run()
    assert world.program == OURS


@pytest.mark.parametrize(("kind", "node"), [(InPlace, 2), (Beside, 4)])
def test_a_step_that_takes_too_long(kind: type[World], node: int) -> None:
    with pytest.raises(StandsStill, match=f"for 60 s: node {node} is not there yet"):
        away(kind, obeys=False).run()
