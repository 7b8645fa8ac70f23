"""The machine of the way beside: each step, what each waits for, and what it refuses."""

from __future__ import annotations

import pytest

from barnabas.adopt.beside_step import beside_step
from barnabas.adopt.change import Act, Step
from barnabas.client.program import Program
from tests.adopt.sights import GONE, NEW, OLD, THERE, sight

OURS, KAFKA = Program.BARNABAS, Program.KAFKA
VOTES = THERE._replace(is_voter=True)
EMPTY = OLD._replace(replicas=0)
READS = EMPTY._replace(is_voter=False)
STOPPED = READS._replace(serves=False, runs=False)


@pytest.mark.parametrize(
    ("seen", "act"),
    [
        (sight(), Act.FORMAT),
        (sight(NEW._replace(is_formatted=True)), Act.START),
        (sight(THERE), Act.ADD_VOTER),
        (sight(VOTES), Act.MOVE),
        (sight(VOTES, EMPTY), Act.REMOVE_VOTER),
        (sight(VOTES, READS), Act.STOP),
        (sight(VOTES, STOPPED), Act.FORGET),
    ],
)
def test_the_steps(seen, act):
    step = beside_step(seen, OURS)
    assert (step.act, step.reasons) == (act, ())


def test_the_end():
    assert beside_step(sight(VOTES, GONE), OURS, Act.FORGET) == Step(Act.DONE)


def test_a_leader_is_stopped_before_it_loses_its_vote():
    leads = sight(VOTES, EMPTY, leader=2)
    assert beside_step(leads, OURS).act == Act.STOP
    assert beside_step(leads, OURS, Act.STOP) == Step(Act.WAIT, ("node 2 still runs",))
    away = EMPTY._replace(serves=False, runs=False)
    late = beside_step(sight(VOTES, away, leader=2), OURS, Act.STOP)
    assert late == Step(Act.WAIT, ("the quorum still counts node 2 as its leader",))
    assert beside_step(sight(VOTES, away), OURS) == Step(Act.REMOVE_VOTER, needs_health=False)
    assert beside_step(sight(VOTES, STOPPED), OURS) == Step(Act.FORGET, needs_health=False)


def test_a_broker_alone_needs_no_vote_even_in_a_fixed_quorum():
    old = READS._replace(roles=("broker",), replicas=3)
    new = THERE._replace(roles=("broker",))
    assert beside_step(sight(new, old, can_vote=False), OURS).act == Act.MOVE


@pytest.mark.parametrize(("asked", "act"), [(Act.FORGET, Act.WAIT), (None, Act.STOP)], ids=["forgotten", "typed again"])
def test_a_broker_alone_that_was_just_forgotten_looks_like_a_controller(asked, act):
    new = THERE._replace(roles=("broker",))
    old = GONE._replace(roles=("controller",), runs=True)
    assert beside_step(sight(new, old, can_vote=False), OURS, asked).act == act
    assert beside_step(sight(new, GONE, can_vote=False), OURS, Act.FORGET).act == Act.DONE


@pytest.mark.parametrize(
    ("seen", "asked", "reason"),
    [
        (sight(leader=-1), None, "the quorum has no leader"),
        (sight(NEW._replace(is_formatted=True)), Act.START, "node 4 is not there yet"),
        (sight(THERE._replace(serves=False)), None, "the cluster does not count node 4 as serving yet"),
        (sight(THERE._replace(program=Program.SILENT)), None, "which program node 4 runs cannot be seen yet"),
        (sight(THERE._replace(lag=11)), None, "the metadata log of node 4 is not complete yet"),
        (sight(THERE._replace(lag=None)), None, "the metadata log of node 4 is not complete yet"),
        (sight(VOTES, moving=2), None, "the replicas of 2 partitions move"),
        (sight(VOTES, EMPTY, behind=1), None, "1 replica not in sync"),
        (sight(VOTES, READS), Act.STOP, "node 2 still runs"),
        (sight(VOTES, STOPPED._replace(serves=True)), Act.STOP, "the cluster still counts node 2 as serving"),
    ],
)
def test_what_is_waited_for(seen, asked, reason):
    assert beside_step(seen, OURS, asked) == Step(Act.WAIT, (reason,))


@pytest.mark.parametrize(
    ("seen", "begin"),
    [
        (sight(NEW._replace(id=2)), "node 2 cannot take its own place"),
        (sight(THERE._replace(program=KAFKA)), "node 4 runs Apache Kafka, not barnabas"),
        (sight(can_vote=False), "node 2 is a voter of a quorum that cannot change"),
        (sight(NEW, GONE), "node 2 is not part of this cluster, whose nodes are 1, 2, 3"),
        (
            sight(VOTES, GONE._replace(id=9)),
            "node 9 is not part of this cluster, whose nodes are 1, 2, 3; node 4 is barnabas already: if it has replaced"
            " node 9, nothing is left to do, else correct --beside",
        ),
        (
            sight(NEW._replace(roles=("broker",))),
            "node 2 is controller too, and the file of node 4 has process.roles=broker",
        ),
    ],
)
def test_what_is_refused(seen, begin):
    step = beside_step(seen, OURS)
    assert step.act == Act.REFUSE
    assert step.reasons[0].startswith(begin)


def test_the_way_back_is_the_same_with_the_nodes_exchanged():
    old = THERE._replace(id=2, program=KAFKA)
    new = OLD._replace(id=4)
    assert beside_step(sight(old, new), KAFKA).act == Act.ADD_VOTER
