"""Replicas that move between the directories of a broker, against a broker in memory."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin, TopicPartition
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code, every_version, only

Altered = messages.AlterReplicaLogDirsResponse
Described = messages.DescribeLogDirsResponse


@pytest.mark.parametrize("version", every_version(messages.AlterReplicaLogDirsRequest))
def test_moves_begin_at_their_broker(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.AlterReplicaLogDirsRequest, version)

    def alter(broker_id: int, request: Any, version: int) -> Any:
        assert broker_id == 2
        results = []
        for each in request.dirs:
            code = ErrorCode.LOG_DIR_NOT_FOUND if each.path == "/none" else ErrorCode.NONE
            for topic in each.topics:
                partitions = [
                    Altered.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partitions
                ]
                results.append(Altered.AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=partitions))
        return Altered(results=results)

    memory.handlers["AlterReplicaLogDirsRequest"] = alter
    u0 = TopicPartition("u", 0)
    found = admin.alter_replica_log_dirs(2, {T0: "/b", T1: "/none", u0: "/b"})
    assert (list(found), found[T0], found[u0]) == ([T0, T1, u0], None, None)
    assert error_code(found[T1]) is ErrorCode.LOG_DIR_NOT_FOUND
    assert len(memory.asked("AlterReplicaLogDirsRequest")) == 1


def described(**places: tuple[int, int, bool]) -> Any:
    """Return directories with replicas of t: partition, bytes, whether it is the copy."""
    return Described(
        results=[
            Described.DescribeLogDirsResult(
                log_dir=f"/{name}",
                topics=[
                    Described.DescribeLogDirsTopic(
                        name="t",
                        partitions=[
                            Described.DescribeLogDirsPartition(
                                partition_index=index, partition_size=size, is_future_key=is_future
                            )
                        ],
                    )
                ],
            )
            for name, (index, size, is_future) in places.items()
        ]
    )


def test_the_wait_ends_when_nothing_is_copied_and_says_where_the_replicas_are(
    memory: MemoryCluster, admin: Admin
) -> None:
    looks = iter(
        [
            described(a=(0, 100, False), b=(0, 10, True)),
            described(a=(0, 100, False), b=(0, 70, True)),
            described(b=(0, 100, False)),
        ]
    )
    memory.handlers["DescribeLogDirsRequest"] = lambda *_: next(looks)
    seen: list[dict[TopicPartition, int]] = []
    slept: list[float] = []
    there = admin.await_directory_moves(1, [T0, T1], looked=seen.append, sleep=slept.append)
    assert there == {T0: "/b"}, "the broker no longer has a replica of t-1"
    assert seen == [{T0: 10}, {T0: 70}]
    assert slept == [0.05, 0.1]


def test_a_broker_that_may_not_be_asked_is_an_error(memory: MemoryCluster, admin: Admin) -> None:
    refused = Described(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    memory.handlers["DescribeLogDirsRequest"] = lambda *_: refused
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        admin.await_directory_moves(1, [T0])
