"""Requests about groups of every type: many partitions, many groups."""

from __future__ import annotations

from typing import Any

from barnabas.group import requests
from barnabas.group.pieces import PIECE
from barnabas.group.requests import SMALLEST_RECORD_BYTES
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest
from barnabas.steps import start
from tests.group.test_group_coordinator import Hosted

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = OffsetCommitRequest.OffsetCommitRequestPartition


def commit(host: Hosted, partitions: int) -> Any:
    given = [Partition(partition_index=i, committed_offset=1, committed_metadata="") for i in range(partitions)]
    answer = start(
        requests.long_offset_commit(
            host.coordinator, OffsetCommitRequest(topics=[Topic(name="t", partitions=given)]), 9
        ),
        host.loop,
    )
    host.loop.run_ready()
    return answer.result()


def test_a_commit_that_no_batch_could_hold_is_rejected_before_it_is_built() -> None:
    host = Hosted(1)
    most = host.coordinator.config.max_batch_bytes // SMALLEST_RECORD_BYTES
    (topic,) = commit(host, most + 1).topics
    assert {partition.error_code for partition in topic.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert [partition.partition_index for partition in topic.partitions] == list(range(most + 1))
    assert not host.log.batches.get(0), "nothing is written"


def test_the_smallest_record_is_not_smaller() -> None:
    host = Hosted(1)
    commit(host, PIECE)
    assert len(host.log.batches[0][0]) >= PIECE * SMALLEST_RECORD_BYTES


def test_ten_thousand_groups_are_deleted_in_turns() -> None:
    host = Hosted()
    names = [f"g{index}" for index in range(10_000)]
    host.commit(names[7])
    answer = start(requests.delete_groups(host.coordinator, names), host.loop)
    assert not answer.done(), "the loop has a turn"
    host.loop.run_ready()
    assert [name for name, one in zip(names, answer.result(), strict=True) if not one.error_code] == [names[7]]
