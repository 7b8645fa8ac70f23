"""`cluster resize`: its plan, its steps in order, and what it refuses; `tests/cluster/test_resized_cluster.py` has real nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import cluster_resize
from barnabas.cli.session import Session
from barnabas.client.admin import (
    ClusterDescription,
    Node,
    PartitionDescription,
    Quorum,
    QuorumReplica,
    Reassignment,
    TopicPartition,
)
from barnabas.client.local_supervisor import LocalNodes, NotResized, NotSupervised, SupervisedNode
from barnabas.main import command_group
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.primitives import Uuid
from tests.cli.made_up_cluster import MadeUpAdmin

T0 = TopicPartition("t", 0)


class Cluster(MadeUpAdmin):
    """A cluster of one topic and its supervisor. Nodes 1 to 3 vote.

    Attributes:
        steps: what it was asked for, in order.
    """

    def __init__(self, folder: Path, nodes: int, replicas: Sequence[int] = (1, 2)) -> None:
        super().__init__()
        self.folder = folder
        self.supervised = list(range(1, nodes + 1))
        self.serving, self.fenced = list(self.supervised), list[int]()
        self.voters = [1, 2, 3][:nodes]
        self.directory: Uuid | None = None
        self.placed, self.leader = list(replicas), replicas[0]
        self.moving = 0
        self.steps: list[str] = []
        self.answer: Exception | None = None

    def described(self, *, changes_copies: bool = False) -> LocalNodes:
        nodes = [
            SupervisedNode(n, f"h:{n}", str(self.folder / f"node-{n}"), n in self.serving) for n in self.supervised
        ]
        return LocalNodes("id", nodes, changes_copies)

    def ask_for_nodes(self, folder: Path) -> LocalNodes:
        return self.described()

    def ask_for_resize(self, folder: Path, had: int, wanted: int) -> LocalNodes:
        self.steps.append(f"{had} to {wanted}")
        if self.answer is not None:
            raise self.answer
        self.fenced += [n for n in self.serving if n > wanted]
        self.supervised = self.serving = list(range(1, wanted + 1))
        return self.described(changes_copies=min(had, 3) != min(wanted, 3))

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription(
            "id", 1, [Node(n, "h", n) for n in self.serving], [Node(n, "h", n) for n in self.fenced]
        )

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        return {T0: PartitionDescription(self.leader, 1, self.placed, self.placed, [], [], [])}

    def list_reassignments(self, *_: object) -> dict[TopicPartition, Reassignment]:
        self.moving -= 1
        return {T0: Reassignment([1], [2], [])} if self.moving >= 0 else {}

    def describe_quorum(self) -> Quorum:
        return Quorum(1, 1, 1, [QuorumReplica(n, 1, n in self.voters, self.directory) for n in (1, 2, 3)])

    def reassign(
        self, plan: Mapping[TopicPartition, Sequence[int]], **_: Any
    ) -> dict[TopicPartition, KafkaError | None]:
        self.steps.append(f"move {list(plan[T0])}")
        self.placed, self.leader = list(plan[T0]), plan[T0][0]
        return {T0: None}

    def remove_voter(self, node: int, directory_id: Uuid) -> None:
        self.voters.remove(node)
        self.steps.append(f"unvote {node}")

    def unregister_broker(self, broker_id: int) -> None:
        self.fenced.remove(broker_id)
        self.steps.append(f"forget {broker_id}")


def run(cluster: Cluster, *arguments: str) -> Result:
    words = ["cluster", "resize", *arguments, "--data-dir", str(cluster.folder)]
    with (
        mock.patch.object(Session, "admin", return_value=cluster),
        mock.patch.multiple(
            cluster_resize,
            ask_for_nodes=cluster.ask_for_nodes,
            ask_for_resize=cluster.ask_for_resize,
            _CLUSTER_SECONDS=0,
            _LOOK_SECONDS=0,
        ),
    ):
        return CliRunner().invoke(command_group(), words, prog_name="barnabas", env={"COLUMNS": "300"})


def statuses(result: Result) -> dict[int, str]:
    return {each["node"]: each["status"] for each in json.loads(result.stdout)["nodes"]}


def test_growth(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3)
    planned = run(cluster, "4", "--dry-run", "-o", "json")
    assert statuses(planned) == {1: "serves", 2: "serves", 3: "serves", 4: "would be added"}
    assert cluster.steps == []
    result = run(cluster, "4", "-o", "json")
    assert statuses(result) == {1: "serves", 2: "serves", 3: "serves", 4: "added"}
    assert result.stderr == (
        "new topics use them; `barnabas cluster rebalance` gives them their share of those that exist\n"
    )
    # The same words again add nothing.
    again = run(cluster, "4", "-o", "json")
    assert (again.stderr, set(statuses(again).values()), cluster.steps) == ("", {"serves"}, ["3 to 4", "4 to 4"])


def test_growth_that_changes_the_number_of_copies(tmp_path: Path) -> None:
    result = run(Cluster(tmp_path, 1, [1]), "2")
    assert result.stderr.splitlines()[1] == (
        "the nodes' files have other settings for the number of copies now:"
        f" `barnabas cluster restart --rolling --data-dir {tmp_path}` lets them apply"
    )


def test_two_nodes_leave(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 5, [4, 5, 1])
    planned = run(cluster, "3", "--dry-run", "-o", "json")
    assert statuses(planned) == {**dict.fromkeys((1, 2, 3), "serves"), **dict.fromkeys((4, 5), "would be retired")}
    assert [each["new_replicas"] for each in json.loads(planned.stdout)["partitions"]] == [[1, 2, 3]]
    assert cluster.steps == []
    # A run that was killed has left a move.
    cluster.moving = 2
    result = run(cluster, "3", "-o", "json")
    assert cluster.steps == ["move [1, 2, 3]", "5 to 3", "forget 4", "forget 5"]
    assert statuses(result) == {**dict.fromkeys((1, 2, 3), "serves"), **dict.fromkeys((4, 5), "retired")}
    assert result.stderr.splitlines() == [
        "replicas of 1 partition are being moved already: waiting for them (`barnabas cluster cancel --all` ends the moves)",
        "replicas of 1 partition move away from node 4, 5",
    ]


def test_a_run_that_was_killed_before_it_forgot_goes_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3)
    # The supervisor did not start broker 9.
    cluster.fenced = [4, 9]
    (tmp_path / "node-4").mkdir()
    result = run(cluster, "3", "-o", "json")
    assert (cluster.steps, cluster.fenced) == (["3 to 3", "forget 4"], [9])
    assert statuses(result)[4] == "retired"


def test_a_voter_leaves_the_quorum_first(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3)
    refused = run(cluster, "2")
    assert refused.stderr == (
        "error: node 3 votes, and the voters of this quorum are fixed: controller.quorum.voters lists them (kraft.version 0)"
        " (`kafka-features.sh upgrade --feature kraft.version=1` lets them change)\n"
    )
    assert cluster.steps == []
    cluster.directory = Uuid(bytes(16))
    assert run(cluster, "2").exit_code == 0
    assert cluster.steps == ["unvote 3", "3 to 2", "forget 3"]


@pytest.mark.parametrize(
    ("nodes", "replicas", "wanted", "error"),
    [
        (
            4,
            [4, 1, 2, 3],
            "3",
            "t-0 has 4 replicas, and 3 other brokers can take them (a cluster keeps as many brokers as",
        ),
        (3, [1], "0", "0 is not from 1 to 99"),
    ],
)
def test_what_is_refused(tmp_path: Path, nodes: int, replicas: list[int], wanted: str, error: str) -> None:
    cluster = Cluster(tmp_path, nodes, replicas)
    result = run(cluster, wanted)
    assert error in result.stderr
    assert cluster.steps == []


def test_no_vote_is_left_or_no_majority(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 4)
    cluster.directory = Uuid(bytes(16))
    cluster.voters = [2]
    assert "error: node 2 has all votes (keep a node that votes)" in run(cluster, "1").stderr
    cluster.voters = [1, 2, 3]
    quorum = cluster.describe_quorum()
    late = [each._replace(last_fetch_ms=0 if each.id == 2 else 60_000) for each in quorum.replicas]
    with mock.patch.object(cluster, "describe_quorum", return_value=quorum._replace(replicas=late)):
        assert "of the other 2 voters 2 does not read the metadata log" in run(cluster, "2").stderr
    assert cluster.steps == []


def test_a_partition_without_a_leader_stays(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 4, [4])
    cluster.leader = -1
    result = run(cluster, "3")
    assert (result.exit_code, cluster.steps) == (1, [])
    assert "error: t-0 cannot move without a leader" in result.stderr


def test_what_the_supervisor_says_is_said(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3)
    cluster.answer = NotResized("node 4 does not start: port taken; its log: /c/node-4/node.log")
    assert run(cluster, "4").stderr == f"error: {cluster.answer}\n"
    cluster.answer = NotSupervised("no cluster of `barnabas start --nodes` runs in c")
    assert "runs in c (name the --data-dir of the cluster that runs)" in run(cluster, "4").stderr


def test_another_cluster_is_left_alone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3)
    with mock.patch.object(cluster, "described", return_value=cluster.described()._replace(cluster_id="other")):
        result = run(cluster, "4")
    assert f"is not the one in {tmp_path} (name an address of it: -b h:1,h:2,h:3)" in result.stderr
    assert cluster.steps == []


def test_what_arrives_meanwhile_is_moved_too_or_said(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 4, [4])

    def arrive(*_: object, **__: object) -> dict[TopicPartition, None]:
        cluster.steps.append("move")
        return {T0: None}

    with mock.patch.object(cluster, "reassign", arrive):
        assert "new replicas arrive on node 4 while the others move away (type the command again)" in (
            run(cluster, "3").stderr
        )
    assert cluster.steps == ["move"] * 3
    cluster = Cluster(tmp_path, 4, [1])
    resize = cluster.ask_for_resize

    def late(folder: Path, had: int, wanted: int) -> LocalNodes:
        cluster.placed = [4]
        return resize(folder, had, wanted)

    with mock.patch.object(cluster, "ask_for_resize", late):
        result = run(cluster, "3")
    assert "node 4 is stopped and not forgotten: broker 4 has replicas of 1 partition: t-0" in result.stderr
    assert f"`barnabas cluster resize 4 --data-dir {tmp_path}` starts the node again" in result.stderr


def test_a_node_that_the_cluster_does_not_see(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3)
    with mock.patch.object(cluster, "describe_cluster", return_value=cluster.describe_cluster()):
        result = run(cluster, "4")
    assert (
        "and it is not so that the new nodes are part of the cluster (`barnabas cluster status` says" in result.stderr
    )
