"""`cluster move` and `cancel`: what they ask of a cluster, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.admin import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    Node,
    PartitionDescription,
    PartitionMetadata,
    Reassignment,
    ResourceType,
    TopicMetadata,
    TopicPartition,
)
from barnabas.client.replication_throttle import Moving
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import ZERO_UUID
from tests.cli.made_up_cluster import MadeUpAdmin


def at(index: int) -> TopicPartition:
    return TopicPartition("t", index)


class Cluster(MadeUpAdmin):
    """Brokers 1, 2 and 3 serve and 4 does not; topic t has three partitions, and nobody leads the last."""

    def __init__(self, moving: Mapping[TopicPartition, Reassignment] | None = None) -> None:
        super().__init__()
        self.moving = dict(moving or {})
        self.asked: list[tuple[str, Any]] = []
        self.fails: KafkaError | None = None

    def describe_cluster(self) -> ClusterDescription:
        nodes = [Node(each, "h", each) for each in (1, 2, 3, 4)]
        return ClusterDescription("id", 1, nodes[:3], nodes[3:])

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicMetadata | KafkaError]:
        partitions = [PartitionMetadata(each, 1, 1, [1, 2], [1, 2], []) for each in range(3)]
        missing = error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic u does not exist")
        return {name: TopicMetadata(name, ZERO_UUID, False, partitions) if name == "t" else missing for name in names}

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        led = {at(each): PartitionDescription(1, 1, [1, 2], [1, 2], [], [], []) for each in range(2)}
        return {**led, at(2): PartitionDescription(-1, 1, [4], [], [4], [], [4])}

    def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return self.moving

    def reassign(self, wanted: Mapping[TopicPartition, Sequence[int]], **_: object) -> dict[TopicPartition, Any]:
        self.asked.append(("move", {where: list(each) for where, each in wanted.items()}))
        return dict.fromkeys(wanted, self.fails)

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Any]:
        return {}

    def alter_reassignments(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        self.asked.append(("cancel", dict(wanted)))
        return dict.fromkeys(wanted, self.fails)

    def set_throttle(
        self, rate: int, moves: Mapping[TopicPartition, Moving]
    ) -> dict[ConfigResource, KafkaError | None]:
        self.asked.append(("throttle", (rate, dict(moves))))
        return {}

    def remove_throttle(self) -> dict[ConfigResource, KafkaError | None]:
        self.asked.append(("throttle off", None))
        return {ConfigResource(ResourceType.TOPIC, "t"): None}


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), ["cluster", *arguments], prog_name="barnabas")


def test_given_partitions_get_given_replicas() -> None:
    cluster = Cluster()
    result = run(cluster, "move", "t:0,1", "--to", "3,1", "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert cluster.asked == [("move", {at(0): [3, 1], at(1): [3, 1]})]
    found = json.loads(result.stdout)["partitions"]
    assert [(each["partition"], each["new_replicas"], each["status"]) for each in found] == [
        (0, [3, 1], "moved"),
        (1, [3, 1], "moved"),
    ]


def test_fewer_replicas_than_clients_can_do_with_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    three = {at(0): PartitionDescription(1, 1, [1, 2, 3], [1, 2, 3], [], [], [])}
    entry = ConfigEntry("min.insync.replicas", "2", ConfigSource.DEFAULT_CONFIG, False, False, "int", [], None)
    monkeypatch.setattr(cluster, "describe_partitions", lambda names=None: three)
    monkeypatch.setattr(cluster, "describe_configs", lambda resources, **_: {each: [entry] for each in resources})
    result = run(cluster, "move", "t:0", "--to", "3,1", "--dry-run")
    assert (result.exit_code, cluster.asked) == (0, [])
    assert result.stderr.startswith("warning: topic t has no more replicas than min.insync.replicas: ")
    assert run(cluster, "move", "t:0", "--to", "3,2,1", "--dry-run").stderr == ""


def test_a_file_of_kafkas_tool(tmp_path: Path) -> None:
    entry = {"topic": "t", "partition": 1, "replicas": [2, 3], "log_dirs": ["any", "any"]}
    path = tmp_path / "moves.json"
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    cluster = Cluster()
    assert run(cluster, "move", "--file", str(path)).exit_code == 0
    assert cluster.asked == [("move", {at(1): [2, 3]})]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "is not a file of kafka-reassign-partitions"),
        ('{"partitions": [{"topic": "t"}]}', "is not a file of kafka-reassign-partitions"),
        ('{"partitions": []}', "names no partition"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
            ' {"topic": "t", "partition": 0, "replicas": [2]}]}',
            "names partition t-0 twice",
        ),
        ('{"partitions": [{"topic": "u", "partition": 0, "replicas": [1]}]}', "topic u does not exist"),
        ('{"partitions": [{"topic": "t", "partition": 9, "replicas": [1]}]}', "there is no partition t-9"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "t-0 would have no replica"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "/disk-2"]}]}',
            "names log_dirs of partition t-0",
        ),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "moves.json"
    path.write_text(text)
    cluster = Cluster()
    result = run(cluster, "move", "--file", str(path))
    assert (result.exit_code, cluster.asked) == (1, [])
    assert error in result.stderr


def test_a_move_with_a_throttle_removes_it_afterwards() -> None:
    cluster = Cluster()
    assert run(cluster, "move", "t:0", "--to", "2,3", "--throttle", "20MB").exit_code == 0
    assert [what for what, _ in cluster.asked] == ["throttle", "move", "throttle off"]
    assert cluster.asked[0] == ("throttle", (20_000_000, {at(0): Moving([1, 2], [3])}))


def test_a_throttle_stays_when_the_move_is_interrupted() -> None:
    cluster = Cluster()
    with mock.patch.object(cluster, "reassign", side_effect=KeyboardInterrupt):
        result = run(cluster, "move", "t:0", "--to", "2,3", "--throttle", "20MB")
    assert "`barnabas cluster throttle off` removes it" in result.stderr
    assert [what for what, _ in cluster.asked] == ["throttle"]


def test_another_order_copies_nothing_and_needs_no_throttle() -> None:
    cluster = Cluster()
    assert run(cluster, "move", "t:0", "--to", "2,1", "--throttle", "20MB").exit_code == 0
    assert cluster.asked == [("move", {at(0): [2, 1]})]


def test_a_dry_run_changes_nothing() -> None:
    cluster = Cluster({at(0): Reassignment([1, 2, 3], [3], [2])})
    assert run(cluster, "cancel", "--all", "--dry-run").stdout.splitlines()[1].endswith("would be cancelled")
    cluster.moving = {}
    assert "would be moved" in run(cluster, "move", "t:0", "--to", "3", "--dry-run").stdout
    assert cluster.asked == []


def test_what_is_as_wanted_already() -> None:
    cluster = Cluster()
    result = run(cluster, "move", "t:0,1", "--to", "1,2")
    assert (result.exit_code, result.stderr) == (0, "nothing to move\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("t:0", "--to", "4"), "broker 4 cannot take replicas: not in service (in service are: 1, 2, 3)"),
        (("t:0", "--to", "9"), "broker 9 cannot take replicas: not in service (in service are: 1, 2, 3)"),
        (("t:0", "--to", "1,1"), "broker 1 cannot have two replicas of t-0 (name each broker once)"),
        (("t:9", "--to", "1"), "topic t has no partition 9 (it has 3, from 0 on)"),
        (
            ("t:2", "--to", "1"),
            "t-2 cannot move without a leader (`barnabas cluster status` says which broker it needs)",
        ),
    ],
)
def test_a_move_that_cannot_be(arguments: tuple[str, ...], error: str) -> None:
    cluster = Cluster()
    result = run(cluster, "move", *arguments)
    assert (result.exit_code, result.stderr, cluster.asked) == (1, f"error: {error}\n", [])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("move", "t:0"), "name partitions and --to"),
        (("move", "--to", "1"), "name partitions and --to"),
        (("move", "t:0", "--to", "a"), "'a' is not a list of brokers: write their ids, as 2,3,1"),
        (("move", "t:a", "--to", "1"), "'t:a' is not TOPIC or TOPIC:0,1"),
        (("move", "t:0", "--to", "1", "--throttle", "fast"), "'fast' is not a valid size"),
        (("cancel",), "name partitions, or --all"),
        (("cancel", "t:0", "--all"), "name partitions, or --all"),
    ],
)
def test_a_command_line_that_is_wrong(arguments: tuple[str, ...], error: str) -> None:
    result = run(Cluster(), *arguments)
    assert result.exit_code == 2
    assert error in result.stderr


def test_a_move_is_cancelled() -> None:
    cluster = Cluster({at(0): Reassignment([3, 1, 2], [3], [2]), at(1): Reassignment([1, 2, 3], [3], [])})
    result = run(cluster, "cancel", "t:0")
    assert result.stdout == (
        "TOPIC  PARTITION  REPLICAS  ADDING  REMOVING  STATUS\nt      0          1,2       3       2         cancelled\n"
    )
    assert cluster.asked == [("cancel", {at(0): None})]


def test_what_does_not_move_is_not_cancelled() -> None:
    cluster = Cluster()
    result = run(cluster, "cancel", "t:0")
    assert (result.exit_code, cluster.asked) == (1, [])
    assert "no replica of t-0 is being moved" in result.stderr
    assert run(cluster, "cancel", "--all").stderr == "nothing moves\n"


def test_a_move_that_ended_meanwhile_is_an_error() -> None:
    cluster = Cluster({at(0): Reassignment([3, 1, 2], [3], [2])})
    cluster.fails = error_for(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "it has ended")
    result = run(cluster, "cancel", "--all")
    assert (result.exit_code, "t-0: it has ended" in result.stderr) == (1, True)
