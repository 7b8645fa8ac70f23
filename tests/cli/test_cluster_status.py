"""`cluster status`: what it counts and finds, and its exit code. The screens show its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from barnabas.cli.cluster_status import _sorted_out
from barnabas.cli.session import Session
from barnabas.client.admin import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    Node,
    PartitionDescription,
    Quorum,
    QuorumReplica,
    Reassignment,
    TopicPartition,
)
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, error_for
from tests.cli.made_up_cluster import NODE, NOW_MS, MadeUpAdmin

T0 = TopicPartition("t", 0)
LED = PartitionDescription(1, 3, [1], [1], [], [], [])


class Healthy(MadeUpAdmin):
    """One broker on which all is well."""

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("id", 1, [NODE], [])

    def describe_quorum(self) -> Quorum:
        return Quorum(1, 7, 10, [QuorumReplica(1, 10, True, None, NOW_MS, NOW_MS), QuorumReplica(2, 10, False)])

    def describe_log_dirs(self, broker_ids: Any = None, **_: object) -> dict[int, Any]:
        return {1: [LogDir("/data", None, [], -1, -1)]}

    def describe_partitions(self, topics: Any = None) -> dict[TopicPartition, PartitionDescription]:
        return {TopicPartition("t", 0): LED}


def status(admin: MadeUpAdmin, word: str = "status") -> tuple[int, dict[str, Any]]:
    with mock.patch.object(Session, "admin", return_value=admin):
        found = CliRunner().invoke(command_group(), ["cluster", word, "-o", "json"], prog_name="barnabas")
    return found.exit_code, json.loads(found.stdout)


def problems(admin: MadeUpAdmin) -> list[str]:
    code, found = status(admin)
    assert (code, found["healthy"]) == (1, False)
    return [each["problem"] for each in found["problems"]]


def test_a_healthy_cluster() -> None:
    code, found = status(Healthy())
    assert code == 0
    assert found == {
        "healthy": True,
        "controller": 1,
        "voters": 1,
        "brokers": 1,
        "fenced": 0,
        "partitions": 1,
        "offline": 0,
        "under_min_isr": 0,
        "under_replicated": 0,
        "not_preferred_leader": 0,
        "moving": 0,
        "problems": [],
    }


def test_its_old_name_is_health() -> None:
    assert status(Healthy(), "health") == status(Healthy())


def test_brokers_too_old_for_a_quorum_name_their_controller() -> None:
    class Old(Healthy):
        def describe_quorum(self) -> Quorum:
            raise error_for(ErrorCode.UNSUPPORTED_VERSION, "old")

    assert status(Old())[1]["controller"] == 1


def test_a_throttle_that_stays_when_no_replica_moves() -> None:
    class Throttled(Healthy):
        moves: dict[TopicPartition, Reassignment] = {}
        source = ConfigSource.DYNAMIC_BROKER_CONFIG

        def list_reassignments(self, *_: object) -> dict[TopicPartition, Reassignment]:
            return self.moves

        def describe_configs(self, resources: Iterable[ConfigResource], **_: object) -> dict[ConfigResource, Any]:
            rate = "leader.replication.throttled.rate"
            return {each: [ConfigEntry(rate, "20", self.source, False, False, "long", [], None)] for each in resources}

    admin = Throttled()
    assert problems(admin) == ["replication is throttled, and no replica is being moved"]
    admin.source = ConfigSource.DEFAULT_CONFIG
    assert status(admin)[0] == 0
    admin.source, admin.moves = ConfigSource.DYNAMIC_BROKER_CONFIG, {T0: Reassignment([1, 2], [2], [])}
    assert status(admin)[0] == 0, "it is wanted"


def test_every_kind_of_problem() -> None:
    class Sick(Healthy):
        def describe_cluster(self) -> ClusterDescription:
            return ClusterDescription("id", -1, [NODE], [Node(4, "h", 4), Node(5, "h", 5)])

        def describe_quorum(self) -> Quorum:
            return Quorum(-1, 3, 10, [])

        def describe_log_dirs(self, broker_ids: Any = None, **_: object) -> dict[int, Any]:
            failed = LogDir("/bad", error_for(ErrorCode.KAFKA_STORAGE_ERROR), [], -1, -1)
            return {1: [failed], 2: error_for(ErrorCode.REQUEST_TIMED_OUT, "no response")}

        def describe_partitions(self, topics: Any = None) -> dict[TopicPartition, PartitionDescription]:
            return {
                TopicPartition("t", 0): LED._replace(replicas=[1, 2]),
                TopicPartition("t", 1): PartitionDescription(-1, 4, [2], [], [2], [], [2]),
            }

        def describe_configs(self, resources: Iterable[ConfigResource], **_: object) -> dict[ConfigResource, Any]:
            entry = ConfigEntry("min.insync.replicas", "2", ConfigSource.DEFAULT_CONFIG, False, False, "int", [], None)
            return {each: [entry] for each in resources}

    assert problems(Sick()) == [
        "no controller",
        "fenced broker",
        "offline log directory",
        "broker does not answer: no response",
        "partition without a leader: eligible leader replica 2 is offline",
        "partition that rejects acks=all: fewer replicas in sync than min.insync.replicas",
        "under-replicated partition",
    ]


def test_a_controller_that_does_not_read_is_silent() -> None:
    class Silent(Healthy):
        def describe_quorum(self) -> Quorum:
            quorum = super().describe_quorum()
            late = [QuorumReplica(each, 9, True, None, NOW_MS - ago, -1) for each, ago in ((7, 10_000), (8, 10_001))]
            return quorum._replace(replicas=quorum.replicas + late)

    code, found = status(Silent())
    assert (code, [each["where"] for each in found["problems"]]) == (1, [["controller 8"]])


def test_what_moves_or_is_led_by_another_replica_is_no_problem() -> None:
    class Moving(Healthy):
        def describe_partitions(self, topics: Any = None) -> dict[TopicPartition, PartitionDescription]:
            return {T0: LED._replace(replicas=[2, 1, 3], isr=[1, 2])}

        def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
            return {T0: Reassignment([2, 1, 3], [3], [1])}

    code, found = status(Moving())
    assert (code, found["moving"], found["not_preferred_leader"], found["under_replicated"]) == (0, 1, 1, 0)


@pytest.mark.parametrize(
    ("isr", "min_isr", "under"), [([1, 2], 3, True), ([1, 2], 2, False), ([1], 2, True), ([1, 2, 3], 5, False)]
)
def test_no_more_replicas_than_there_are_must_be_in_sync(isr: list[int], min_isr: int, under: bool) -> None:
    found = _sorted_out({T0: LED._replace(replicas=[1, 2, 3], isr=isr)}, {}, {"t": min_isr})
    assert found.under_min_isr == ([T0] if under else [])


def test_brokers_too_old_to_list_what_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    def old(*_: object, **__: object) -> Any:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION, "old")

    monkeypatch.setattr(Healthy, "list_reassignments", old)
    assert status(Healthy())[1]["moving"] == 0


def test_settings_that_may_not_be_seen_are_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object, resources: Iterable[ConfigResource], **__: object) -> dict[ConfigResource, Any]:
        return {each: error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED) for each in resources}

    monkeypatch.setattr(Healthy, "describe_configs", refused)
    assert status(Healthy())[0] == 0
