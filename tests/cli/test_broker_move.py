"""`broker move`: what it asks of a broker, what it waits for, and what it refuses.

Real brokers of both programs are in `tests/conform/test_directory_moves.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.admin import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    Node,
    PartitionMetadata,
    ReplicaSize,
    ResourceType,
    TopicMetadata,
    TopicPartition,
)
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import ZERO_UUID
from tests.cli.made_up_cluster import MadeUpAdmin

LIMIT = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER_1 = ConfigResource(ResourceType.BROKER, "1")


def at(index: int) -> TopicPartition:
    return TopicPartition("t", index)


def held(index: int, size: int = 100, *, is_future: bool = False) -> ReplicaSize:
    return ReplicaSize(at(index), size, 0, is_future)


class Cluster(MadeUpAdmin):
    """Broker 1 has replicas of t-0 and t-1 in /a, of t-2 in /b, and none of t-3; /off is offline, /full has 50 bytes."""

    def __init__(self) -> None:
        super().__init__()
        offline = error_for(ErrorCode.KAFKA_STORAGE_ERROR)
        self.directories = [
            LogDir("/a", None, [held(0), held(1)], 1000, 1000),
            LogDir("/b", None, [held(2)], 1000, 1000),
            LogDir("/cordoned", None, [], 1000, 1000, True),
            LogDir("/full", None, [], 1000, 50),
            LogDir("/off", offline, [], -1, -1),
        ]
        self.asked: list[Any] = []
        self.refused: dict[TopicPartition, KafkaError] = {}
        self.ends_in: dict[TopicPartition, str | None] = {}
        self.own_limit: str | None = None

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("id", 1, [Node(1, "h", 1)], [])

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicMetadata | KafkaError]:
        partitions = [PartitionMetadata(each, 1, 1, [1], [1], []) for each in range(4)]
        return {name: TopicMetadata(name, ZERO_UUID, False, partitions) for name in names}

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, partitions: Collection[TopicPartition] | None = None
    ) -> dict[int, Any]:
        def only(replicas: list[ReplicaSize]) -> list[ReplicaSize]:
            return [each for each in replicas if partitions is None or each.partition in partitions]

        return {1: [each._replace(replicas=only(each.replicas)) for each in self.directories]}

    def alter_replica_log_dirs(
        self, broker_id: int, wanted: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, KafkaError | None]:
        self.asked.append((broker_id, dict(wanted)))
        self.ends_in = dict(wanted) | self.ends_in
        return {each: self.refused.get(each) for each in wanted}

    def await_directory_moves(
        self, broker_id: int, partitions: Collection[TopicPartition], *, looked: Callable[[dict[Any, int]], object]
    ) -> dict[TopicPartition, str]:
        looked(dict.fromkeys(partitions, 10))
        return {each: path for each in partitions if (path := self.ends_in[each]) is not None}

    def describe_configs(self, resources: Iterable[ConfigResource], **_: object) -> dict[ConfigResource, Any]:
        source = ConfigSource.DYNAMIC_BROKER_CONFIG if self.own_limit else ConfigSource.DEFAULT_CONFIG
        return {
            each: [ConfigEntry(LIMIT, self.own_limit, source, False, False, "long", [], None)] for each in resources
        }

    def alter_configs(
        self, changes: Mapping[ConfigResource, list[ConfigChange]], **_: object
    ) -> dict[ConfigResource, KafkaError | None]:
        for resource, (change,) in changes.items():
            self.asked.append((resource, change.name, change.value))
        return dict.fromkeys(changes)


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), ["broker", "move", *arguments], prog_name="barnabas")


def found(result: Result) -> list[tuple[object, ...]]:
    return [
        (each["partition"], each["directory"], each["new_directory"], each["size_bytes"], each["status"])
        for each in json.loads(result.stdout)
    ]


def test_named_replicas_move() -> None:
    cluster = Cluster()
    result = run(cluster, "1", "t:0,2", "--to", "/b/", "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert cluster.asked == [(1, {at(0): "/b"})], "t-2 is there already"
    assert found(result) == [(0, "/a", "/b", 100, "moved"), (2, "/b", "/b", 100, "already there")]


def test_a_directory_is_emptied() -> None:
    cluster = Cluster()
    assert run(cluster, "1", "--from", "/a", "--to", "/b").exit_code == 0
    assert cluster.asked == [(1, {at(0): "/b", at(1): "/b"})]
    assert run(cluster, "1", "t:1,2", "--from", "/a", "--to", "/b").exit_code == 0
    assert cluster.asked[1:] == [(1, {at(1): "/b"})]


def test_a_dry_run_asks_nothing() -> None:
    cluster = Cluster()
    result = run(cluster, "1", "t:0", "--to", "/b", "--dry-run", "-o", "json")
    assert (found(result), cluster.asked) == ([(0, "/a", "/b", 100, "would be moved")], [])


def test_nothing_to_move() -> None:
    cluster = Cluster()
    result = run(cluster, "1", "t:2", "--to", "/b")
    assert (result.exit_code, cluster.asked) == (0, [])
    assert result.stderr == "nothing to move: what is named is in /b already\n"
    result = run(cluster, "1", "t:2", "--from", "/a", "--to", "/b")
    assert (result.exit_code, result.stdout, cluster.asked) == (0, "", [])
    assert result.stderr == "nothing to move: no such replica is in /a\n"


def test_the_directory_of_a_replica_ends_its_move() -> None:
    cluster = Cluster()
    cluster.directories[1].replicas.append(held(0, 40, is_future=True))
    result = run(cluster, "1", "t:0", "--to", "/a", "-o", "json")
    assert cluster.asked == [(1, {at(0): "/a"})]
    assert found(result) == [(0, "/a", "/a", 100, "move cancelled")]
    cluster.asked.clear()
    result = run(cluster, "1", "t:0", "--to", "/a", "-o", "json", "-d")
    assert (found(result), cluster.asked) == ([(0, "/a", "/a", 100, "move would be cancelled")], [])


@pytest.mark.parametrize(
    ("target", "status"), [("/b", "moves already"), ("/full", "would be moved, in place of a move to /b")]
)
def test_a_dry_run_says_what_moves_already(target: str, status: str) -> None:
    cluster = Cluster()
    cluster.directories[1].replicas.append(held(0, 40, is_future=True))
    cluster.directories[3] = cluster.directories[3]._replace(usable_bytes=1000)
    result = run(cluster, "1", "t:0", "--to", target, "-d", "-o", "json")
    assert found(result) == [(0, "/a", target, 100, status)]


def test_a_move_out_of_a_cordoned_directory_is_not_cancelled() -> None:
    """The broker rejects it, as Apache Kafka does."""
    cluster = Cluster()
    cluster.directories[2].replicas.append(held(3))
    cluster.directories[1].replicas.append(held(3, 40, is_future=True))
    result = run(cluster, "1", "t:3", "--to", "/cordoned")
    assert (result.exit_code, cluster.asked) == (1, [])
    assert "/cordoned is where these replicas are, and their moves cannot be cancelled: it is cordoned" in result.stderr


def test_what_is_copied_already_needs_no_space() -> None:
    cluster = Cluster()
    cluster.directories[3].replicas.append(held(0, 60, is_future=True))
    assert run(cluster, "1", "t:0", "--to", "/full").exit_code == 0
    assert cluster.asked == [(1, {at(0): "/full"})]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["7", "t:0", "--to", "/b"], "error: broker 7 is not part of the cluster now (its brokers are: 1)"),
        (
            ["1", "t:0", "--to", "/nowhere"],
            "error: broker 1 has no directory /nowhere (write one as the broker does: /a, /b, /cordoned, /full, /off)",
        ),
        (
            ["1", "t:0", "--to", "/off"],
            "error: /off of broker 1 is offline: KAFKA_STORAGE_ERROR"
            " (mend its disk and restart the broker; if the disk is lost, put an empty one in its place)",
        ),
        (
            ["1", "--from", "/off", "--to", "/a"],
            "error: /off of broker 1 is offline: KAFKA_STORAGE_ERROR"
            " (mend its disk and restart the broker; if the disk is lost, put an empty one in its place)",
        ),
        (
            ["1", "t:0", "--to", "/cordoned"],
            "error: /cordoned takes no other replica: it is cordoned (take it out of cordoned.log.dirs:"
            " `barnabas config alter broker 1 --delete cordoned.log.dirs`, or in the file of the node)",
        ),
        (
            ["1", "t:0", "--to", "/full"],
            "error: /full has 50 B free, and these replicas need 100 B more (move fewer of them)",
        ),
        (
            ["1", "t:3", "--to", "/b"],
            "error: broker 1 has no replica of t-3 (`barnabas topic describe t` shows which brokers have one)",
        ),
        (
            ["1", "t:0", "--from", "/b", "--to", "/b"],
            "error: --from and --to are the same directory (name another one as --to)",
        ),
        (["1", "t:9", "--to", "/b"], "error: topic t has no partition 9 (it has 4, from 0 on)"),
    ],
)
def test_what_is_refused_begins_nothing(arguments: list[str], error: str) -> None:
    cluster = Cluster()
    result = run(cluster, *arguments)
    assert (result.exit_code, result.stdout, cluster.asked) == (1, "", [])
    assert result.stderr == f"{error}\n"


@pytest.mark.parametrize(
    "arguments", [["1", "--to", "/b"], ["1", "t:0"], ["1", "t:x", "--to", "/b"], ["1", "t:", "--to", "/b"], ["t:0"]]
)
def test_a_command_line_that_is_wrong(arguments: list[str]) -> None:
    cluster = Cluster()
    assert (run(cluster, *arguments).exit_code, cluster.asked) == (2, [])


def test_each_replica_that_did_not_move_is_an_error() -> None:
    cluster = Cluster()
    cluster.directories[0].replicas.append(ReplicaSize(at(3), 1, 0, False))
    cluster.refused = {at(0): error_for(ErrorCode.KAFKA_STORAGE_ERROR)}
    cluster.ends_in = {at(1): "/a", at(3): None}
    result = run(cluster, "1", "--from", "/a", "--to", "/b", "-o", "json")
    assert (result.exit_code, found(result)) == (1, [])
    first, second, third = result.stderr.splitlines()
    assert first.startswith("error: partition t-0: ")
    assert second == (
        "error: the move of t-1 has ended early: the replica is in /a"
        " (somebody ended it, or the broker gave it up: its log says why)"
    )
    assert third == "error: broker 1 has no replica of t-3 any longer"


@pytest.mark.parametrize(("before", "after"), [(None, None), ("7", "7")])
def test_a_limit_holds_while_the_command_runs(before: str | None, after: str | None) -> None:
    cluster = Cluster()
    cluster.own_limit = before
    result = run(cluster, "1", "t:0", "--to", "/b", "--throttle", "20MB")
    assert result.exit_code == 0
    assert result.stderr == ("the limit that was set before holds again: 7 bytes a second\n" if before else "")
    assert cluster.asked == [(BROKER_1, LIMIT, "20000000"), (1, {at(0): "/b"}), (BROKER_1, LIMIT, after)]


@pytest.mark.parametrize(
    ("before", "change"), [(None, f"--delete {LIMIT}` removes it"), ("7", f"--set {LIMIT}=7` sets the former one")]
)
def test_what_goes_on_after_an_interrupt_is_said(before: str | None, change: str) -> None:
    cluster = Cluster()
    cluster.own_limit = before
    with mock.patch.object(cluster, "await_directory_moves", side_effect=KeyboardInterrupt):
        result = run(cluster, "1", "t:0,1", "--to", "/b", "--throttle", "20MB")
    assert result.exit_code != 0
    goes_on, limit = result.stderr.splitlines()[:2]
    assert goes_on == (
        "the broker goes on with the moves that have begun; to cancel: `barnabas broker move 1 t:0,1 --to /a`"
    )
    assert limit == f"the limit of 20.0 MB a second stays: `barnabas config alter broker 1 {change}"
    assert cluster.asked[0] == (BROKER_1, LIMIT, "20000000")
    assert len(cluster.asked) == 2


def test_a_broker_that_stops_goes_on_later() -> None:
    cluster = Cluster()
    gone = error_for(ErrorCode.BROKER_NOT_AVAILABLE, "cannot reach h:1")
    with mock.patch.object(cluster, "await_directory_moves", side_effect=gone):
        result = run(cluster, "1", "t:0", "--to", "/b")
    assert result.exit_code == 1
    goes_on, error = result.stderr.splitlines()
    assert goes_on == "the broker goes on with the moves when it runs again: type the same command then"
    assert error.startswith("error: cannot reach h:1")
