"""The offsets of a group in every version of each request."""

from typing import Any

import pytest

from barnabas.client.admin import Admin, CommittedOffset
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code, every_version, only


@pytest.mark.parametrize("version", every_version(messages.OffsetFetchRequest, 2))
@pytest.mark.parametrize("partitions", [None, [T0, T1]])
def test_list_group_offsets(memory: MemoryCluster, admin: Admin, version: int, partitions: Any) -> None:
    only(memory, messages.OffsetFetchRequest, version)
    response = messages.OffsetFetchResponse

    def fetch(broker_id: int, request: Any, version: int) -> Any:
        assert broker_id == 2
        topics = request.groups[0].topics if version >= 8 else request.topics
        assert (topics is None) == (partitions is None)
        if version >= 8:
            committed = [
                response.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m"),
                response.OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
            ]
            topic = response.OffsetFetchResponseTopics(name="t", partitions=committed)
            return response(groups=[response.OffsetFetchResponseGroup(group_id="g", topics=[topic])])
        old = [
            response.OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="m"),
            response.OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
        ]
        return response(topics=[response.OffsetFetchResponseTopic(name="t", partitions=old)])

    memory.handlers["OffsetFetchRequest"] = fetch
    found = admin.list_group_offsets("g", partitions, require_stable=True)
    assert found == {T0: CommittedOffset(5, "m", -1)}
    assert admin.list_group_offsets("g", []) == {}


@pytest.mark.parametrize("version", every_version(messages.OffsetCommitRequest))
def test_alter_group_offsets(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.OffsetCommitRequest, version)
    response = messages.OffsetCommitResponse

    def commit(broker_id: int, request: Any, version: int) -> Any:
        assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == ("g", "", -1)
        return response(
            topics=[
                response.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        response.OffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=0 if each.committed_offset == 4 else 25
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    memory.handlers["OffsetCommitRequest"] = commit
    outcome = admin.alter_group_offsets("g", {T0: CommittedOffset(4), T1: CommittedOffset(9, "why")})
    assert outcome[T0] is None
    assert error_code(outcome[T1]) == ErrorCode.UNKNOWN_MEMBER_ID


def test_delete_group_offsets(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.OffsetDeleteResponse
    memory.handlers["OffsetDeleteRequest"] = lambda broker_id, request, version: response(
        topics=[
            response.OffsetDeleteResponseTopic(
                name="t",
                partitions=[
                    response.OffsetDeleteResponsePartition(partition_index=0),
                    response.OffsetDeleteResponsePartition(partition_index=1, error_code=86),
                ],
            )
        ]
    )
    outcome = admin.delete_group_offsets("g", [T0, T1])
    assert outcome[T0] is None
    assert error_code(outcome[T1]) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_list_share_group_offsets_leaves_out_what_the_group_has_not_read(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DescribeShareGroupOffsetsResponse
    partition = response.DescribeShareGroupOffsetsResponsePartition
    memory.handlers["DescribeShareGroupOffsetsRequest"] = lambda broker_id, request, version: response(
        groups=[
            response.DescribeShareGroupOffsetsResponseGroup(
                group_id="g",
                topics=[
                    response.DescribeShareGroupOffsetsResponseTopic(
                        topic_name="t",
                        partitions=[
                            partition(partition_index=0, start_offset=5, lag=-1),
                            partition(partition_index=1, start_offset=7, lag=2),
                            partition(partition_index=2, start_offset=-1),
                            partition(partition_index=3, start_offset=9, error_code=3),
                        ],
                    )
                ],
            )
        ]
    )
    assert admin.list_share_group_offsets("g") == {T0: (5, None), T1: (7, 2)}
