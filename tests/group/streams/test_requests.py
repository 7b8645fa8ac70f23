"""Heartbeats that no group is asked about: each with the error and the words of Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.group.streams.requests import check_heartbeat
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.group.streams.host import Request, info, word_count

TASK = [Request.TaskIds(subtopology_id="0", partitions=[0])]


def request(**fields: Any) -> Request:
    joining: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "topology": word_count(),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    return Request(**{**joining, **fields})


def with_changelog_partitions() -> Request.Topology:
    topology = word_count()
    topology.subtopologies[1].state_changelog_topics = [info("c", 3)]
    return topology


def with_regex() -> Request.Topology:
    topology = word_count()
    topology.subtopologies[0].source_topic_regex = ["a.*"]
    return topology


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"topology": with_regex()}, "Regular expressions for source topics are not supported yet."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": "  "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": " "}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": TASK}, "ActiveTasks must be empty when (re-)joining."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": TASK}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup_tasks": TASK}, "WarmupTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"member_epoch": 4}, "Topology can only be provided when (re-)joining."),
        (
            {"member_epoch": 4, "topology": None, "warmup_tasks": None},
            "If one task-type is non-null, all must be non-null.",
        ),
    ],
)
def test_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_heartbeat(request(**fields))
    assert (raised.value.code, raised.value.message) == (ErrorCode.INVALID_REQUEST, words)


def test_a_changelog_topic_may_not_name_partitions() -> None:
    with pytest.raises(KafkaError) as raised:
        check_heartbeat(request(topology=with_changelog_partitions()))
    assert raised.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert raised.value.message == "Changelog topic c must have an undefined partition count, but it is set to 3."


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"member_epoch": 3, "topology": None},
        {"member_epoch": 3, "topology": None, "active_tasks": None, "standby_tasks": None, "warmup_tasks": None},
        {"member_epoch": -1, "topology": None},
        {"member_epoch": -2, "topology": None, "instance_id": "i"},
    ],
)
def test_let_through(fields: dict[str, Any]) -> None:
    check_heartbeat(request(**fields))
