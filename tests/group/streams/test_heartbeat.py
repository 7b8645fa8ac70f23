"""Heartbeats of streams groups: joining, topologies and their topics, assignment and its delays, timers, failover."""

from __future__ import annotations

import pytest

from barnabas.group import requests
from barnabas.group.streams.topic_configuration import StreamsStatus
from barnabas.protocol.errors import ErrorCode
from tests.group.streams.host import GROUP, Member, Request, StreamsHost, info, shard_of, word_count


def test_the_first_member_gets_all_tasks() -> None:
    host = StreamsHost()
    member = Member(host, "a")
    answer = member.join()
    assert (answer.error_code, answer.member_epoch, answer.status) == (0, 2, [])
    assert member.held == "0_0 0_1 1_0 1_1"
    assert (answer.heartbeat_interval_ms, answer.task_offset_interval_ms) == (5_000, 60_000)
    assert answer.acceptable_recovery_lag == 10_000
    assert host.group.state_name() == "Stable"
    again = member.beat()
    assert again.active_tasks is None, "nothing has changed"
    assert again.member_epoch == 2


def test_records_of_a_first_join_are_in_kafkas_order() -> None:
    host = StreamsHost()
    Member(host, "a").join()
    assert [record.type_id for record in host.records()] == [19, 23, 17, 21, 20, 22]


def test_a_task_moves_in_two_steps() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    assert (b.held, b.epoch) == ("", 3), "all tasks are still with a"
    asked = a.beat()
    assert (a.held, asked.member_epoch) == ("0_0 1_0", 2), "a is to give up two, and stays in its epoch"
    assert b.beat().active_tasks is None
    a.beat()
    assert a.epoch == 3
    b.beat()
    assert b.held == "0_1 1_1"
    assert host.group.state_name() == "Stable"


def test_a_member_that_gives_nothing_up_is_removed_after_its_rebalance_timeout() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    a.beat()
    for _ in range(4):
        host.loop.advance(5_000)
        a.beat(active_tasks=[Request.TaskIds(subtopology_id="0", partitions=[0, 1])], own=True)
        b.beat()
    assert list(host.group.members) == ["b"]
    b.settle()
    assert b.held == "0_0 0_1 1_0 1_1"
    assert a.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_after_its_session_timeout() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    a.settle(b)
    host.loop.advance(40_000)
    b.beat()
    host.loop.advance(5_000)
    assert list(host.group.members) == ["b"]
    b.settle()
    assert b.held == "0_0 0_1 1_0 1_1"


def test_a_removal_that_the_log_refuses_is_tried_again() -> None:
    host = StreamsHost()
    Member(host, "a").join()
    host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    host.loop.advance(45_000)
    assert list(host.group.members) == ["a"]
    host.log.refuse = None
    host.loop.advance(500)
    assert not host.group.members


def test_leaving_frees_the_tasks_and_an_empty_group_stays() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    a.settle(b)
    assert a.leave().member_epoch == -1
    b.settle()
    assert b.held == "0_0 0_1 1_0 1_1"
    b.leave()
    assert host.group.state_name() == "Empty"
    assert host.group.assignment_epoch == host.group.group_epoch


def test_fencing() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    assert host.send(Request(group_id=GROUP, member_id="a", member_epoch=2)).response.error_code == 0
    a.epoch = 9
    assert a.beat().error_code == ErrorCode.FENCED_MEMBER_EPOCH
    a.epoch = 1
    assert a.beat().error_code == ErrorCode.FENCED_MEMBER_EPOCH
    b.epoch = 2
    assert b.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_previous_epoch_is_good_enough_when_the_answer_was_lost() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    a.settle(b)
    b.leave()
    before = a.epoch
    a.beat()
    assert a.epoch > before
    a.epoch = before
    a.tasks["active"] = [Request.TaskIds(subtopology_id="0", partitions=[0])]
    assert a.beat().error_code == 0
    a.epoch = before
    assert a.beat(own=False).error_code == ErrorCode.FENCED_MEMBER_EPOCH, "it does not say what it has"


def test_missing_internal_topics_are_named_and_awaited() -> None:
    host = StreamsHost({"lines": 3})
    a = Member(host, "a")
    a.join()
    assert a.statuses == [StreamsStatus.MISSING_INTERNAL_TOPICS]
    assert a.to_create == ["c", "r"]
    assert (a.held, host.group.state_name()) == ("", "NotReady")
    host.create_topics({"r": 3})
    a.beat()
    assert (a.statuses, a.to_create) == ([StreamsStatus.MISSING_INTERNAL_TOPICS], ["c"])
    host.create_topics({"c": 3})
    a.beat()
    assert (a.statuses, a.held) == ([], "0_0 0_1 0_2 1_0 1_1 1_2")


def test_missing_source_topics_keep_the_group_waiting() -> None:
    host = StreamsHost({})
    a = Member(host, "a")
    a.join()
    assert a.statuses == [StreamsStatus.MISSING_SOURCE_TOPICS]
    assert a.last is not None
    assert a.last.status is not None
    assert a.last.status[0].status_detail == "Source topics lines are missing."
    host.create_topics({"lines": 1, "r": 1, "c": 1})
    a.beat()
    assert (a.statuses, a.held) == ([], "0_0 1_0")


def test_a_source_topic_that_is_deleted_takes_the_tasks_away() -> None:
    host = StreamsHost()
    a = Member(host, "a")
    a.join()
    host.delete_topic("lines")
    a.beat()
    assert a.statuses == [StreamsStatus.MISSING_SOURCE_TOPICS]
    a.beat()
    assert (a.held, host.group.state_name()) == ("", "NotReady")


def test_more_partitions_of_a_source_do_not_fit_the_internal_topics() -> None:
    host = StreamsHost()
    a = Member(host, "a")
    a.join()
    host.create_topics({"lines": 4})
    a.beat()
    assert a.statuses == [StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS]
    host.create_topics({"r": 4, "c": 4})
    a.settle()
    assert a.held == "0_0 0_1 0_2 0_3 1_0 1_1 1_2 1_3"


def test_a_stale_topology_and_one_that_differs() -> None:
    host = StreamsHost()
    a, b, c = Member(host, "a"), Member(host, "b"), Member(host, "c")
    a.join(word_count(epoch=1))
    b.join(word_count(epoch=0))
    assert b.statuses == [StreamsStatus.STALE_TOPOLOGY]
    other = word_count(epoch=1)
    other.subtopologies[0].source_topics = ["lines", "more"]
    refused = c.join(other)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Topology updates are not supported yet.",
    )


def test_the_first_assignment_waits_for_more_members() -> None:
    host = StreamsHost()
    host.settings["streams.initial.rebalance.delay.ms"] = "3000"
    a, b = Member(host, "a"), Member(host, "b")
    answer = a.join()
    assert (answer.member_epoch, a.statuses) == (1, [StreamsStatus.ASSIGNMENT_DELAYED])
    host.loop.advance(1_000)
    b.join()
    assert b.statuses == [StreamsStatus.ASSIGNMENT_DELAYED]
    host.loop.advance(2_000)
    a.beat()
    b.beat()
    assert (a.held, b.held) == ("0_0 1_0", "0_1 1_1")


def test_two_assignments_are_an_interval_apart() -> None:
    host = StreamsHost()
    host.settings["streams.assignment.interval.ms"] = "10000"
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    assert b.statuses == [StreamsStatus.ASSIGNMENT_DELAYED]
    assert host.group.state_name() == "Assigning"
    host.loop.advance(10_000)
    a.settle(b)
    assert (a.held, b.held) == ("0_0 1_0", "0_1 1_1")


def test_standbys_follow_a_setting_as_it_changes() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    a.settle(b)
    host.settings["streams.num.standby.replicas"] = "1"
    a.settle(b)
    assert (a.held, b.held) == ("0_0 1_0 | 1_1", "0_1 1_1 | 1_0")
    assert host.group.assignment_configs == {"num.standby.replicas": "1"}


def test_two_threads_of_one_process_share_no_copies() -> None:
    host = StreamsHost()
    host.settings["streams.num.standby.replicas"] = "1"
    a, b = Member(host, "a", "p"), Member(host, "b", "p")
    a.join()
    b.join()
    a.settle(b)
    assert (a.held, b.held) == ("0_0 1_0", "0_1 1_1")


def test_a_shutdown_request_reaches_every_member_until_the_group_is_empty() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    b.beat(shutdown_application=True)
    a.beat()
    assert a.statuses == [StreamsStatus.SHUTDOWN_APPLICATION]
    a.leave()
    b.leave()
    a.join()
    assert a.statuses == []


def test_endpoints_are_told_when_they_change() -> None:
    host = StreamsHost()
    a = Member(host, "a", user_endpoint=Request.Endpoint(host="h", port=1))
    b = Member(host, "b")
    a.join()
    b.join()
    a.settle(b)
    answer = b.beat(endpoint_information_epoch=0)
    assert answer.partitions_by_user_endpoint is not None
    (endpoint,) = answer.partitions_by_user_endpoint
    assert (endpoint.user_endpoint.host, endpoint.user_endpoint.port) == ("h", 1)
    assert [(t.topic, t.partitions) for t in endpoint.active_partitions] == [("lines", [0]), ("r", [0])]
    assert b.beat(endpoint_information_epoch=answer.endpoint_information_epoch).partitions_by_user_endpoint is None


def test_missing_client_tags_are_told_from_version_1() -> None:
    host = StreamsHost()
    host.settings["streams.rack.aware.assignment.tags"] = "zone,cluster"
    a = Member(host, "a", client_tags=[Request.KeyValue(key="zone", value="z1")])
    a.join()
    assert a.statuses == [StreamsStatus.MISSING_CLIENT_TAGS]
    assert a.last is not None
    assert a.last.status is not None
    assert "[cluster]" in a.last.status[0].status_detail
    answer = host.send(Request(group_id=GROUP, member_id="a", member_epoch=a.epoch), version=0).response
    assert answer.status == []


def test_a_group_is_full() -> None:
    host = StreamsHost(group_streams_max_size=1)
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    assert b.join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert a.join().error_code == 0


def a_static_and_a_dynamic_member(host: StreamsHost) -> tuple[Member, Member]:
    """Two members that have settled; the first has the instance id `one`."""
    a, b = Member(host, "a", instance_id="one"), Member(host, "b")
    a.join()
    b.join()
    a.settle(b)
    return a, b


def test_a_static_member_returns_to_its_tasks() -> None:
    host = StreamsHost()
    a, b = a_static_and_a_dynamic_member(host)
    had, epoch = a.held, host.group.group_epoch
    assert Member(host, "x", instance_id="one").join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert a.leave(-2).member_epoch == -2
    successor = Member(host, "a2", a.process_id, instance_id="one")
    successor.join()
    assert (successor.held, host.group.group_epoch) == (had, epoch), "nobody else noticed"
    assert b.beat().active_tasks is None
    assert a.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
    nobody = Member(host, "y", instance_id="two")
    nobody.epoch = 3
    assert nobody.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_whose_join_got_no_response_joins_again() -> None:
    host = StreamsHost()
    a, _ = a_static_and_a_dynamic_member(host)
    had, epoch = a.held, host.group.group_epoch
    again = Member(host, "a", a.process_id, instance_id="one")
    assert again.join().error_code == 0, "it is not in its own way"
    assert (again.held, host.group.group_epoch) == (had, epoch)


def test_everything_is_there_after_a_failover() -> None:
    host = StreamsHost()
    host.settings["streams.num.standby.replicas"] = "1"
    a = Member(host, "a", user_endpoint=Request.Endpoint(host="h", port=1), instance_id="one")
    b = Member(host, "b", client_tags=[Request.KeyValue(key="zone", value="z")])
    a.join()
    b.join()
    a.settle(b)
    before = host.describe()[0]
    host.fail_over()
    a.settle(b)
    assert (a.held, b.held) == ("0_0 1_0 | 1_1", "0_1 1_1 | 1_0")
    assert host.describe()[0] == before
    host.fail_over()
    host.loop.advance(45_000)
    assert not host.group.members, "loaded members have a session, too"


def test_a_member_that_was_giving_up_tasks_is_still_watched_after_a_failover() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    a.beat()
    host.fail_over()
    for _ in range(4):
        host.loop.advance(5_000)
        b.beat()
        host.send(Request(group_id=GROUP, member_id="a", member_epoch=2))
    assert list(host.group.members) == ["b"]


def test_a_refused_append_changes_nothing() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    host.create_topics({"lines": 4, "r": 4, "c": 4})
    assert b.join().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert a.beat().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.describe()[0].group_epoch == 2
    assert list(host.group.members) == ["a"]
    host.log.refuse = None
    a.settle()
    assert a.held == "0_0 0_1 0_2 0_3 1_0 1_1 1_2 1_3"


def test_a_classic_group_gives_way_only_when_it_is_empty() -> None:
    host = StreamsHost()
    from barnabas.protocol.messages import OffsetCommitRequest

    commit = OffsetCommitRequest(
        group_id=GROUP,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name="lines",
                partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=4)],
            )
        ],
    )
    host.done(requests.offset_commit(host.coordinator, commit, 8))
    a = Member(host, "a")
    assert a.join().error_code == 0
    host.fail_over()
    assert host.group.has_member("a")


def test_a_heartbeat_without_a_group() -> None:
    host = StreamsHost()
    answer = host.send(Request(group_id=GROUP, member_id="a", member_epoch=3)).response
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == f"Streams group {GROUP} not found."


def test_tasks_that_the_topology_does_not_have() -> None:
    host = StreamsHost()
    a = Member(host, "a")
    a.join()
    a.tasks["active"] = [Request.TaskIds(subtopology_id="7", partitions=[0])]
    assert a.beat().error_message == "Subtopology 7 does not exist in the topology."
    a.tasks["active"] = [Request.TaskIds(subtopology_id="0", partitions=[5])]
    answer = a.beat()
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "Number of tasks for this subtopology: 2" in (answer.error_message or "")


def test_task_offsets_are_described_and_named_once() -> None:
    host = StreamsHost()
    a = Member(host, "a")
    a.join()
    offset = Request.TaskOffset(subtopology_id="1", partition=0, offset=7)
    a.beat(task_offsets=[offset], task_end_offsets=[])
    (member,) = host.describe()[0].members
    assert [(o.subtopology_id, o.partition, o.offset) for o in member.task_offsets] == [("1", 0, 7)]
    assert a.beat(task_offsets=[offset, offset]).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("partitions", [1, 5])
def test_a_fixed_repartition_topic_decides(partitions: int) -> None:
    host = StreamsHost({"lines": 2})
    topology = word_count()
    topology.subtopologies[1].repartition_source_topics = [info("r", partitions)]
    a = Member(host, "a")
    a.join(topology)
    assert a.to_create == ["c", "r"]
    host.create_topics({"r": partitions, "c": partitions})
    a.settle()
    assert len(a.held.split()) == 2 + partitions


def test_a_member_that_has_not_got_its_last_answer_is_told_again() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    had = dict(a.tasks)
    a.beat()
    a.tasks = had  # It says that it has them all, so the answer that took two away was lost.
    again = a.beat()
    assert again.active_tasks is not None
    assert a.held == "0_0 1_0"
    a.settle(b)
    assert b.held == "0_1 1_1"


def test_a_stable_member_that_names_its_epoch_is_told_nothing() -> None:
    host = StreamsHost()
    a = Member(host, "a")
    a.join()
    a.settle()
    a.tasks = {}  # It says that it has none, in the epoch whose answer gave it all.
    assert a.beat().active_tasks is None


def test_why_tasks_moved() -> None:
    host = StreamsHost()
    a, b = Member(host, "a"), Member(host, "b")
    a.join()
    b.join()
    host.loop.advance(1_500)
    a.settle(b)
    b.leave()
    a.settle()
    first, second, third = shard_of(host).environment.history.of(GROUP)
    assert (first.cause, first.epoch, first.members) == (
        "member a joined, topics changed, the topology's topics are there",
        2,
        1,
    )
    assert (second.cause, second.member_id, second.client_id) == ("member b joined", "b", "client-b")
    assert second.moved == (("0", 1, "a", "b"), ("1", 1, "a", "b"))
    assert (second.ended_ms, second.members) == (host.loop.now_ms, 2)
    assert (third.cause, third.moved) == ("member b was removed: it left", (("0", 1, "", "a"), ("1", 1, "", "a")))
