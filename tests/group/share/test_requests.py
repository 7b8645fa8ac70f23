"""ShareGroupService while the share coordinator, or the log of the group, is slow, fails, or never answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupHeartbeatRequest,
)
from barnabas.steps import start
from tests.group.share.hosting import Host

BUG = TypeError("a bug")
AlteredTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
AlteredPartition = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition
DescribedOf = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
DescribedTopic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic

Call = Callable[[Host], Coroutine[Any, Any, Any]]


def alter(host: Host) -> Coroutine[Any, Any, Any]:
    partitions = [AlteredPartition(partition_index=index, start_offset=3) for index in (0, 1)]
    return host.service.alter_offsets("g", [AlteredTopic(topic_name="q", partitions=partitions)])


def delete(host: Host) -> Coroutine[Any, Any, Any]:
    return host.service.delete_offsets("g", ["q"])


def delete_states(host: Host) -> Coroutine[Any, Any, Any]:
    return host.service.delete_states(["g"])


def describe_offsets(host: Host) -> Coroutine[Any, Any, Any]:
    return host.service.describe_offsets(DescribedOf(group_id="g", topics=None))


def describe_offsets_of_topics(host: Host) -> Coroutine[Any, Any, Any]:
    return host.service.describe_offsets(
        DescribedOf(group_id="g", topics=[DescribedTopic(topic_name="q", partitions=[0, 1])])
    )


def heartbeat(host: Host) -> Coroutine[Any, Any, Any]:
    request = ShareGroupHeartbeatRequest(group_id="new", member_id="m", member_epoch=0, subscribed_topic_names=["q"])
    return host.service.heartbeat(request, Sender("client", "/host", 1))


def describe(host: Host) -> Coroutine[Any, Any, Any]:
    return host.service.describe(["g", ""])


def with_offsets() -> Host:
    """A host whose group `g` has no members and states of both partitions."""
    host = Host()
    start(alter(host), host.loop).result()
    host.persister.begun.clear()
    return host


def waiting(host: Host, call: Call) -> asyncio.Future[Any]:
    """The call's answer, with the share coordinator not answering yet."""
    host.persister.waits = True
    answer = start(call(host), host.loop)
    host.loop.run_ready()
    assert not answer.done()
    return answer


@pytest.mark.parametrize("call", [alter, delete, delete_states, describe_offsets, describe_offsets_of_topics])
def test_a_bug_that_shows_late_reaches_the_caller(call: Call) -> None:
    host = with_offsets()
    answer = waiting(host, call)
    host.persister.bug = BUG
    host.persister.go_on()
    assert answer.exception() is BUG


@pytest.mark.parametrize("call", [describe_offsets, describe_offsets_of_topics])
def test_a_description_is_cancelled_when_its_client_leaves(call: Call) -> None:
    host = with_offsets()
    answer = waiting(host, call)
    answer.cancel()
    host.loop.run_ready()
    assert answer.cancelled()
    assert all(each.cancelled() for each in host.persister.waiting)


def test_altered_offsets_are_recorded_in_the_group_although_the_client_left() -> None:
    host = Host()
    answer = waiting(host, alter)
    answer.cancel()
    host.loop.run_ready()
    assert answer.cancelled()
    host.persister.go_on()
    assert host.group.state_partitions.initialized[host.q].partitions == {0, 1}
    assert host.group.state_partitions.initializing == {}


def test_a_partition_that_cannot_be_altered_has_an_error_and_is_not_initialized() -> None:
    host = Host()
    answer = waiting(host, alter)
    host.persister.fails = {1}
    host.persister.go_on()
    (topic,) = answer.result().responses
    assert [partition.error_code for partition in topic.partitions] == [0, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert topic.partitions[1].error_message
    assert host.group.state_partitions.initialized[host.q].partitions == {0}
    assert host.group.state_partitions.initializing == {}


def test_deleted_offsets_are_recorded_in_the_group_although_the_client_left() -> None:
    host = with_offsets()
    waiting(host, delete).cancel()
    host.loop.run_ready()
    assert list(host.group.state_partitions.deleting) == [host.q]
    host.persister.go_on()
    assert host.group.state_partitions.deleting == {}
    assert host.group.state_partitions.initialized == {}


def test_a_topic_whose_states_cannot_be_deleted_has_an_error_and_stays_recorded() -> None:
    host = with_offsets()
    answer = waiting(host, delete)
    host.persister.fails = {1}
    host.persister.go_on()
    (topic,) = answer.result().responses
    assert (topic.topic_name, topic.error_code) == ("q", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert topic.error_message == ErrorCode.COORDINATOR_NOT_AVAILABLE.default_message
    assert list(host.group.state_partitions.deleting) == [host.q]


def test_the_states_of_a_group_are_deleted_although_the_client_left() -> None:
    host = with_offsets()
    waiting(host, delete_states).cancel()
    host.loop.run_ready()
    assert not any(each.done() for each in host.persister.waiting)
    host.persister.go_on()
    assert host.persister.deleted == [(host.q, 0), (host.q, 1)]


def test_late_failures_to_delete_states_are_returned_by_group() -> None:
    host = with_offsets()
    answer = waiting(host, delete_states)
    host.persister.fails = {0}
    host.persister.go_on()
    assert answer.result() == {"g": ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_a_heartbeat_does_not_wait_for_the_share_coordinator() -> None:
    host = Host()
    host.persister.waits = True
    answer = start(heartbeat(host), host.loop).result()
    assert answer.error_code == 0
    assert len(host.persister.waiting) == 2


def test_a_bug_in_an_initialization_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    host.persister.waits = True
    start(heartbeat(host), host.loop).result()
    host.persister.bug = BUG
    host.persister.go_on()
    assert "a bug" in caplog.text


def test_a_heartbeat_whose_client_leaves_still_initializes_what_it_recorded() -> None:
    host = Host()
    host.log.hold_commits = True
    answer = start(heartbeat(host), host.loop)
    answer.cancel()
    host.loop.run_ready()
    assert answer.cancelled()
    assert host.persister.begun == []
    host.log.release()
    host.loop.run_ready()
    assert len(host.persister.begun) == 2


@pytest.mark.parametrize("call", [heartbeat, alter, delete, describe_offsets])
def test_a_lost_append_is_an_error_in_the_response(call: Call) -> None:
    host = with_offsets()
    host.log.hold_commits = True
    held = start(alter(host), host.loop)  # A read waits for what was appended before it.
    answer = start(call(host), host.loop)
    host.loop.run_ready()
    assert not answer.done()
    host.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.loop.run_ready()
    assert answer.result().error_code == ErrorCode.NOT_COORDINATOR
    assert held.result().error_code == ErrorCode.NOT_COORDINATOR


def test_a_lost_append_is_an_error_of_each_group_described() -> None:
    host = with_offsets()
    host.log.hold_commits = True
    start(alter(host), host.loop)
    answer = start(describe(host), host.loop)
    host.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.loop.run_ready()
    assert [(group.group_id, group.error_code) for group in answer.result()] == [
        ("g", ErrorCode.NOT_COORDINATOR),
        ("", ErrorCode.INVALID_GROUP_ID),
    ]


def test_a_group_description_is_cancelled_when_its_client_leaves() -> None:
    host = with_offsets()
    host.log.hold_commits = True
    start(alter(host), host.loop)
    answer = start(describe(host), host.loop)
    answer.cancel()
    host.loop.run_ready()
    assert answer.cancelled()


def test_an_outcome_that_cannot_be_recorded_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    host = with_offsets()
    answer = waiting(host, alter)
    host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    host.persister.go_on()
    assert [partition.error_code for partition in answer.result().responses[0].partitions] == [0, 0]
    assert "was not recorded" in caplog.text
    assert host.group.state_partitions.initializing[host.q].partitions == {0, 1}
