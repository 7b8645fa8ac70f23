"""The steps as calls: which replicas move where, how a directory is formatted, and what was done already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from barnabas.adopt.beside_hand import TwoNodesHand, format_command, release_of, replacement_plan
from barnabas.adopt.change import Act, StandsStill
from barnabas.client.admin import TopicPartition
from barnabas.client.errors import RequestTimedOut
from barnabas.client.features import BrokerFeatures
from barnabas.client.placement import TooFewBrokers
from barnabas.client.reassignments import Cancelled
from barnabas.protocol.errors import ErrorCode, error_for
from tests.adopt.test_beside_watch import quorum, replica

A, B, C = (TopicPartition("orders", index) for index in range(3))
RACKS: dict[int, str | None] = dict.fromkeys((1, 2, 3, 4))


def test_each_replica_goes_to_the_new_node_in_its_place():
    plan = replacement_plan({A: [2, 3], B: [1, 2], C: [1, 3]}, 2, 4, [1, 2, 3, 4], RACKS)
    assert plan == {A: [4, 3], B: [1, 4]}


def test_a_replica_that_both_have_goes_elsewhere():
    plan = replacement_plan({A: [2, 4], B: [2, 1]}, 2, 4, [1, 2, 3, 4], RACKS)
    assert plan[B] == [4, 1]
    assert sorted(plan[A]) == [3, 4]
    with pytest.raises(TooFewBrokers):
        replacement_plan({A: [2, 4]}, 2, 4, [2, 4], RACKS)


def test_a_controller_of_a_quorum_that_changes_is_no_first_voter():
    words = format_command("4L6g3nShT-eMCtK--X86sw", "new.properties", joins_voters=True, release=None)
    assert words == [
        "storage", "format", "-g", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", "new.properties", "--no-initial-controllers",
    ]  # fmt: skip
    assert format_command("x", "new.properties", joins_voters=False, release="4.0-IV3")[-2:] == [
        "--release-version",
        "4.0-IV3",
    ]


def levels(level: int, epoch: int = 5) -> BrokerFeatures:
    return BrokerFeatures({}, {"metadata.version": level}, epoch)


@pytest.mark.parametrize(
    ("answers", "release"),
    [
        ([levels(25)], "4.0-IV3"),
        ([levels(25, 5), levels(29, 7), error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)], "4.2-IV1"),
        ([levels(7)], "3.9-IV0"),
        ([levels(999)], None),
        ([BrokerFeatures({}, {}, -1)], None),
        ([], None),
    ],
)
def test_the_release_is_that_of_the_broker_that_knows_the_most(answers, release):
    assert release_of(answers) == release


class Calls:
    """An admin client that notes what it is asked, and an operator."""

    def __init__(self, outcome: Any = None, lost: int = 0) -> None:
        self.outcome, self.lost = outcome, lost
        self.calls: list[tuple[Any, ...]] = []

    def describe_quorum(self) -> Any:
        return quorum(replica(4, 100, votes=False))._replace(listener="CONTROLLER")

    def describe_cluster(self) -> Any:
        nodes = [SimpleNamespace(id=each, rack=None) for each in (1, 2, 3, 4)]
        return SimpleNamespace(cluster_id="4L6g3nShT-eMCtK--X86sw", brokers=nodes, fenced=[])

    def describe_partitions(self) -> Any:
        return {A: SimpleNamespace(replicas=[2, 3])}

    def describe_features(self) -> Any:
        return {1: levels(25)}

    def add_voter(self, *given: Any) -> Any:
        self.calls.append(("add", given[0], *given[2:]))
        return self.outcome

    def remove_voter(self, node: int, directory: Any) -> Any:
        self.calls.append(("remove", node))
        if self.lost:
            self.lost -= 1
            raise RequestTimedOut("four:9092 did not answer in time")
        return self.outcome

    def unregister_broker(self, node: int) -> Any:
        self.calls.append(("forget", node))
        return self.outcome

    def reassign(self, plan: Any, *, at_once: int) -> Any:
        self.calls.append(("move", plan))
        if isinstance(self.outcome, Cancelled):
            raise self.outcome
        return dict.fromkeys(plan, self.outcome)

    def do(self, act: Act) -> None:
        self.calls.append(("do", act))

    def failure(self) -> str | None:
        return None


def done(act: Act, outcome: Any = None, lost: int = 0) -> list[tuple[Any, ...]]:
    calls: Any = Calls(outcome, lost)
    hand = TwoNodesHand(
        calls, calls, coming=4, leaving=2, path="new.properties", is_controller=True, address=("four", 9093),
        say=lambda line: None,
    )  # fmt: skip
    hand.do(act)
    assert hand.failure() is None
    found: list[tuple[Any, ...]] = calls.calls
    return found


def test_each_step_is_one_call():
    assert done(Act.START) == [("do", Act.START)]
    assert done(Act.ADD_VOTER) == [("add", 4, "CONTROLLER", "four", 9093)]
    assert done(Act.MOVE) == [("move", {A: [4, 3]})]
    assert done(Act.REMOVE_VOTER) == [("remove", 2)]
    assert done(Act.STOP) == [("do", Act.STOP)]
    assert done(Act.FORGET) == [("forget", 2)]


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (Act.ADD_VOTER, ErrorCode.DUPLICATE_VOTER),
        (Act.REMOVE_VOTER, ErrorCode.VOTER_NOT_FOUND),
        (Act.FORGET, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_what_was_done_already_is_no_failure(act, code):
    assert len(done(act, error_for(code))) == 1
    with pytest.raises(StandsStill, match=act.value):
        done(act, error_for(ErrorCode.INVALID_REQUEST))


def test_a_lost_answer_is_asked_for_again():
    assert done(Act.REMOVE_VOTER, error_for(ErrorCode.VOTER_NOT_FOUND), lost=2) == [("remove", 2)] * 3
    with pytest.raises(StandsStill, match="remove the voter: four:9092 did not answer in time"):
        done(Act.REMOVE_VOTER, lost=3)


def test_a_move_that_does_not_begin():
    with pytest.raises(StandsStill, match="the replica of orders"):
        done(Act.MOVE, error_for(ErrorCode.INVALID_REPLICA_ASSIGNMENT))


def test_a_move_that_somebody_cancels():
    with pytest.raises(StandsStill, match="the moves of orders-0 were cancelled"):
        done(Act.MOVE, Cancelled([A], 0, 0))


def test_a_format_that_fails_says_its_last_line():
    with (
        mock.patch("subprocess.run", return_value=SimpleNamespace(returncode=1, stderr="one\ntwo\n", stdout="")) as ran,
        pytest.raises(StandsStill, match="the directory of node 4 is not formatted: two"),
    ):
        done(Act.FORMAT)
    words = ran.call_args.args[0]
    assert words[3:5] == ["storage", "format"]
    assert words[-3:] == ["--release-version", "4.0-IV3", "--no-initial-controllers"]
