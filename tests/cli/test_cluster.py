"""`cluster health`: what it finds, and its exit code. The screens show its tables."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

from click.testing import CliRunner

from barnabas.cli.cluster import _shortened
from barnabas.cli.session import Session
from barnabas.client.admin import ClusterDescription, LogDir, PartitionDescription, Quorum, TopicPartition
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, error_for
from tests.cli.made_up_cluster import NODE, MadeUpAdmin

LED = PartitionDescription(1, 3, [1], [1], [], [], [])


class Healthy(MadeUpAdmin):
    """One broker on which all is well."""

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("id", 1, [NODE], [])

    def describe_log_dirs(self, broker_ids: Any = None, **_: object) -> dict[int, Any]:
        return {1: [LogDir("/data", None, [], -1, -1)]}

    def describe_partitions(self, topics: Any = None) -> dict[TopicPartition, PartitionDescription]:
        return {TopicPartition("t", 0): LED}


def health(admin: MadeUpAdmin) -> tuple[int, dict[str, Any]]:
    with mock.patch.object(Session, "admin", return_value=admin):
        found = CliRunner().invoke(command_group(), ["cluster", "health", "-o", "json"], prog_name="barnabas")
    return found.exit_code, json.loads(found.stdout)


def problems(admin: MadeUpAdmin) -> list[str]:
    code, found = health(admin)
    assert (code, found["healthy"]) == (1, False)
    return [each["problem"] for each in found["problems"]]


def test_a_healthy_cluster() -> None:
    code, found = health(Healthy())
    assert code == 0
    assert found == {"healthy": True, "controller": 1, "brokers": 1, "partitions": 1, "problems": []}


def test_brokers_too_old_for_a_quorum_name_their_controller() -> None:
    class Old(Healthy):
        def describe_quorum(self) -> Quorum:
            raise error_for(ErrorCode.UNSUPPORTED_VERSION, "old")

    assert health(Old())[1]["controller"] == 1


def test_every_kind_of_problem() -> None:
    class Sick(Healthy):
        def describe_cluster(self) -> ClusterDescription:
            return ClusterDescription("id", -1, [NODE], [4, 5])

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

    assert problems(Sick()) == [
        "no controller",
        "fenced broker",
        "offline log directory",
        "broker does not answer: no response",
        "partition without a leader: eligible leader replica 2 is offline",
        "under-replicated partition",
    ]


def test_long_lists_are_shortened_for_people() -> None:
    assert _shortened(list("abcde")) == list("abcde")
    assert _shortened(list("abcdefg")) == ["a", "b", "c", "d", "e", "and 2 more"]
