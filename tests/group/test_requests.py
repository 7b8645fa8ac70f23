"""Requests about groups of every type: many partitions, many groups."""

from __future__ import annotations

from typing import Any

from barnabas.group import requests
from barnabas.group.requests import SMALLEST_RECORD_BYTES
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from barnabas.steps import start
from barnabas.turns import ELEMENT, TURN
from tests.group.test_group_coordinator import Hosted

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = OffsetCommitRequest.OffsetCommitRequestPartition


def commit(host: Hosted, partitions: int) -> Any:
    given = [Partition(partition_index=i, committed_offset=1, committed_metadata="") for i in range(partitions)]
    answer = start(
        requests.offset_commit(host.coordinator, OffsetCommitRequest(topics=[Topic(name="t", partitions=given)]), 9),
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
    commit(host, partitions := TURN // ELEMENT - 1)
    assert len(host.log.batches[0][0]) >= partitions * SMALLEST_RECORD_BYTES


def test_ten_thousand_groups_are_deleted_in_turns() -> None:
    host = Hosted()
    names = [f"g{index}" for index in range(10_000)]
    host.commit(names[7])
    answer = start(requests.delete_groups(host.coordinator, names), host.loop)
    assert not answer.done(), "the loop has a turn"
    host.loop.run_ready()
    assert [name for name, one in zip(names, answer.result(), strict=True) if not one.error_code] == [names[7]]


def test_a_failed_commit_names_each_partition_with_its_error() -> None:
    host = Hosted(1)
    host.coordinator.on_resigned(0)
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            Topic(name=name, topic_id=id_of * 16, partitions=[Partition(partition_index=index) for index in indexes])
            for name, id_of, indexes in (("t", b"1", (4, 2)), ("u", b"2", (0,)))
        ],
    )
    response = host.ask(requests.offset_commit(host.coordinator, request, 9))
    assert [
        (topic.name, bytes(topic.topic_id), one.partition_index, one.error_code)
        for topic in response.topics
        for one in topic.partitions
    ] == [
        ("t", b"1" * 16, 4, ErrorCode.NOT_COORDINATOR),
        ("t", b"1" * 16, 2, ErrorCode.NOT_COORDINATOR),
        ("u", b"2" * 16, 0, ErrorCode.NOT_COORDINATOR),
    ]


def test_a_failed_fetch_names_the_group_and_an_error_that_old_consumers_retry() -> None:
    host = Hosted(1)
    host.commit("g")
    host.coordinator.on_resigned(0)
    request = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    fetched = host.ask(requests.offset_fetch(host.coordinator, request, False))
    assert (fetched.group_id, fetched.error_code, fetched.topics) == ("g", ErrorCode.NOT_COORDINATOR, [])


def test_offsets_of_a_group_without_a_name_or_a_missing_group_are_not_deleted() -> None:
    host = Hosted()
    for group_id, code in (("", ErrorCode.INVALID_GROUP_ID), ("none", ErrorCode.GROUP_ID_NOT_FOUND)):
        request = OffsetDeleteRequest(group_id=group_id)
        assert host.ask(requests.offset_delete(host.coordinator, request)).error_code == code


def test_a_group_of_a_partition_that_is_led_elsewhere_is_not_deleted() -> None:
    host = Hosted(1)
    host.commit("g")
    host.coordinator.on_resigned(0)
    (one,) = host.ask(requests.delete_groups(host.coordinator, ["g"]))
    assert (one.group_id, one.error_code) == ("g", ErrorCode.NOT_COORDINATOR)
