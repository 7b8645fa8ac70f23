"""`cluster drain` and `cluster rebalance`: what they ask of a cluster, what they print, and when they refuse.

`tests/client/test_placement.py` has the plans themselves. The screens show the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.session import Session
from barnabas.client.admin import (
    ClusterDescription,
    Node,
    PartitionDescription,
    Reassignment,
    TopicPartition,
)
from barnabas.client.reassignments import Cancelled, Stalled
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, error_for
from tests.cli.made_up_cluster import MadeUpAdmin


def at(index: int) -> TopicPartition:
    return TopicPartition("t", index)


class Cluster(MadeUpAdmin):
    """Brokers 1, 2 and 3 serve and 4 does not; it remembers what it is asked to do."""

    def __init__(self, *replicas: list[int], leaders: Sequence[int] = ()) -> None:
        super().__init__()
        self.found = {}
        for index, each in enumerate(replicas):
            leader = leaders[index] if leaders else each[0]
            in_sync, eligible = ([one for one in each if one != 4], []) if leader >= 0 else ([], [4])
            self.found[at(index)] = PartitionDescription(leader, 1, each, in_sync, eligible, [], [4])
        self.moved: dict[TopicPartition, list[int]] = {}
        self.at_once = 0
        self.elected: list[TopicPartition] = []
        self.moving: dict[TopicPartition, Reassignment] = {}
        self.fails: Callable[[TopicPartition], Any] = lambda _: None

    def describe_cluster(self) -> ClusterDescription:
        nodes = [Node(each, "h", each) for each in (1, 2, 3, 4)]
        return ClusterDescription("id", 1, nodes[:3], nodes[3:])

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        return self.found

    def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return self.moving

    def reassign(
        self,
        wanted: Mapping[TopicPartition, Sequence[int]],
        *,
        at_once: int = 0,
        ended: Callable[[int], object] = print,
        **_: object,
    ) -> dict[TopicPartition, Any]:
        self.moved = {where: list(replicas) for where, replicas in wanted.items()}
        self.at_once = at_once
        ended(len(wanted))
        return {where: self.fails(where) for where in wanted}

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Any]:
        self.elected = list(partitions)
        return dict.fromkeys(self.elected)


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), ["cluster", *arguments, "-o", "json"], prog_name="barnabas")


def printed(result: Result) -> tuple[dict[int, tuple[Any, ...]], dict[int, tuple[int, ...]]]:
    """Return the partitions and the brokers that were printed."""
    found = json.loads(result.stdout)
    partitions = {
        each["partition"]: (each["new_replicas"], each["new_leader"], each["status"]) for each in found["partitions"]
    }
    brokers = {
        each["broker"]: (each["replicas"], each["new_replicas"], each["leaders"], each["new_leaders"])
        for each in found["brokers"]
    }
    return partitions, brokers


def test_a_drained_broker_has_nothing_left() -> None:
    cluster = Cluster([1, 2], [2, 1], [1], [2, 3])
    result = run(cluster, "drain", "1", "--at-once", "7")
    assert (result.exit_code, result.stderr) == (0, "")
    assert cluster.moved == {at(0): [3, 2], at(1): [2, 3], at(2): [2]}
    assert (cluster.at_once, cluster.elected) == (7, [])
    partitions, brokers = printed(result)
    assert partitions == {0: ([3, 2], 3, "moved"), 1: ([2, 3], 2, "moved"), 2: ([2], 2, "moved")}
    assert brokers == {1: (3, 0, 2, 0), 2: (3, 4, 2, 3), 3: (1, 3, 0, 1), 4: (0, 0, 0, 0)}


def test_a_leader_that_stays_is_not_moved_by_a_drain() -> None:
    partitions, _ = printed(run(Cluster([1, 2], leaders=[2]), "drain", "1"))
    assert partitions[0] == ([2, 3], 2, "moved")


@pytest.mark.parametrize("command", [("drain", "1"), ("rebalance",)])
def test_a_dry_run_changes_nothing(command: tuple[str, ...]) -> None:
    cluster = Cluster([1, 2], [1, 2], [1, 2])
    result = run(cluster, *command, "--dry-run")
    assert (result.exit_code, cluster.moved, cluster.elected, cluster.at_once) == (0, {}, [], 0)
    assert {status for _, _, status in printed(result)[0].values()} <= {"would be moved", "would be reordered"}


def test_a_broker_that_does_not_serve_can_be_drained() -> None:
    cluster = Cluster([1, 4], [2, 3])
    assert run(cluster, "drain", "4").exit_code == 0
    assert cluster.moved.keys() == {at(0)}
    assert 4 not in cluster.moved[at(0)]


def test_a_partition_without_a_leader_stays_and_the_others_go() -> None:
    cluster = Cluster([4], [1, 4], [4], leaders=[-1, 1, -1])
    result = run(cluster, "drain", "4")
    assert (result.exit_code, cluster.moved.keys()) == (1, {at(1)})
    assert result.stderr == "error: t-0, t-2 cannot move without a leader (start broker 4)\n"


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([1, 2, 3], "t-0 has 3 replicas, and 2 other brokers can take them (start another broker first)\n"),
        ([2, 4, 1, 3], "t-0 has 4 replicas, and 2 other brokers can take them (start another broker first)\n"),
    ],
)
def test_a_drain_that_cannot_keep_the_replicas_is_refused(replicas: list[int], message: str) -> None:
    cluster = Cluster(replicas)
    result = run(cluster, "drain", "3")
    assert (result.exit_code, cluster.moved, result.stdout) == (1, {}, "")
    assert result.stderr == f"error: broker 3 cannot be drained: {message}"


def test_a_broker_that_nobody_knows_cannot_be_drained() -> None:
    result = run(Cluster([1]), "drain", "9")
    message = "error: broker 9 is not part of the cluster now (its brokers are: 1, 2, 3, 4)\n"
    assert (result.exit_code, result.stderr) == (1, message)


def test_replicas_on_a_broker_that_is_gone_can_be_drained() -> None:
    cluster = Cluster([1, 9])
    assert run(cluster, "drain", "9").exit_code == 0
    assert cluster.moved == {at(0): [1, 2]}


@pytest.mark.parametrize("command", [("drain", "1"), ("rebalance",), ("rebalance", "--dry-run")])
def test_what_moves_already_is_waited_for(command: tuple[str, ...]) -> None:
    cluster = Cluster([1, 2])
    cluster.moving = {at(0): Reassignment([1, 2, 3], [3], [1])}
    result = run(cluster, *command)
    assert (result.exit_code, cluster.moved) == (1, {})
    assert result.stderr.startswith("error: replicas of 1 partition are being moved already (wait until")


def test_a_rebalance_moves_few_replicas_and_elects_the_preferred_leaders() -> None:
    cluster = Cluster([1, 2], [1, 2], [2, 1], [3, 1], leaders=[1, 2, 2, 3])
    result = run(cluster, "rebalance")
    assert (result.exit_code, result.stderr) == (0, "")
    partitions, brokers = printed(result)
    assert [new for _, new, _, _ in list(brokers.values())[:3]] == [3, 3, 2]
    assert sum(status == "moved" for _, _, status in partitions.values()) == 1
    assert all(after[0] == leader for after, leader, _ in partitions.values())
    assert set(cluster.elected) == {where for where in cluster.found if where.partition in partitions}


def test_leaders_are_elected_although_nothing_moves() -> None:
    cluster = Cluster([1, 2], [2, 3], [3, 1], leaders=[2, 2, 3])
    partitions, _ = printed(run(cluster, "rebalance"))
    assert partitions == {0: ([1, 2], 1, "leader elected")}
    assert (cluster.moved, cluster.elected) == ({}, [at(0)])
    partitions, _ = printed(run(cluster, "rebalance", "--dry-run"))
    assert partitions == {0: ([1, 2], 1, "leader would be elected")}


def test_a_preferred_leader_that_is_not_in_sync_is_not_elected() -> None:
    cluster = Cluster([1, 2], [2, 3], [3, 1], leaders=[2, 2, 3])
    cluster.found[at(0)] = cluster.found[at(0)]._replace(isr=[2])
    result = run(cluster, "rebalance")
    assert (cluster.elected, result.stderr) == ([], "nothing to move\n")


def test_a_partition_that_cannot_be_moved_is_an_error_of_its_own() -> None:
    cluster = Cluster([1], [1], [2], [3])
    cluster.fails = lambda where: error_for(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no") if where == at(0) else None
    result = run(cluster, "drain", "1")
    assert result.exit_code == 1
    assert printed(result)[0].keys() == {1}
    assert result.stderr == "error: partition t-0: no\n"
    assert run(cluster, "rebalance").exit_code == 0


def test_moves_that_stand_still_end_with_what_to_start() -> None:
    cluster = Cluster([1], [1])
    with mock.patch.object(cluster, "reassign", side_effect=Stalled({at(0): [2], at(1): [3, 2]})):
        result = run(cluster, "drain", "1")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: t-0, t-1 cannot move until these brokers serve: 2, 3 (start them: what was begun goes on by itself)\n"
    )


def test_ctrl_c_says_what_goes_on_and_how_it_ends() -> None:
    cluster = Cluster([1], [1])

    def interrupt(*_: object, **__: object) -> None:
        cluster.moving = {at(0): Reassignment([1, 2], [2], [1])}
        raise KeyboardInterrupt

    with mock.patch.object(cluster, "reassign", interrupt):
        result = run(cluster, "drain", "1")
    assert result.exit_code != 0
    assert "no other move was begun; 1 move will end without this command" in result.stderr
    assert "`barnabas cluster cancel --all` gives these partitions back the replicas that they had" in result.stderr


def test_ctrl_c_after_the_last_move_says_so() -> None:
    cluster = Cluster([1], [1])
    with mock.patch.object(cluster, "reassign", side_effect=KeyboardInterrupt):
        result = run(cluster, "drain", "1")
    assert "no move goes on; no other move was begun" in result.stderr


def test_ctrl_c_without_an_answer_names_the_command_that_shows_what_moves() -> None:
    cluster = Cluster([1], [1])

    def interrupt(*_: object, **__: object) -> None:
        cluster.list_reassignments = mock.Mock(side_effect=error_for(ErrorCode.NOT_CONTROLLER))  # type: ignore[method-assign]
        raise KeyboardInterrupt

    with mock.patch.object(cluster, "reassign", interrupt):
        result = run(cluster, "drain", "1")
    assert "what was begun goes on: `barnabas cluster status` counts the partitions that move" in result.stderr


def test_moves_that_somebody_cancels_are_an_error() -> None:
    cluster = Cluster([1], [1], [1])
    with mock.patch.object(cluster, "reassign", side_effect=Cancelled([at(0)], 1, 1)):
        result = run(cluster, "drain", "1")
    assert result.exit_code == 1
    assert "the moves of t-0 were cancelled: they keep the replicas that they had" in result.stderr
    assert "of 3 partitions 1 moved, and 1 were not begun" in result.stderr


def test_a_real_node_alone_has_nothing_to_even_out_and_cannot_be_drained(barnabas: barnabas.Broker) -> None:
    barnabas.create_topic("t", partitions=2)
    with mock.patch.dict("os.environ", BARNABAS_BOOTSTRAP_SERVERS=barnabas.bootstrap_servers):
        call = ["cluster", "rebalance"]
        result = CliRunner().invoke(command_group(), call, prog_name="barnabas")
        assert (result.exit_code, result.stderr) == (0, "nothing to move\n")
        result = CliRunner().invoke(command_group(), ["cluster", "drain", "1"], prog_name="barnabas")
    assert result.stderr == (
        "error: broker 1 cannot be drained: t-0 has 1 replica, and 0 other brokers can take them"
        " (start another broker first)\n"
    )
