"""What a streams group answers: states, commits by epoch and task, descriptions, its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.group import requests
from barnabas.group.group import OffsetCommitter
from barnabas.group.streams.group import StreamsGroup, StreamsGroupState
from barnabas.group.streams.member import MemberState, StreamsGroupMember, state_of
from barnabas.group.streams.tasks import TasksTuple, TasksTupleWithEpochs
from barnabas.group.streams.topology import StreamsTopology, topology_value
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import OffsetCommitRequest
from tests.group.streams.host import GROUP, Member, Request, StreamsHost, word_count

TOPIC_ID = bytes(16)


def group_with(**fields: Any) -> StreamsGroup:
    """A group of one member at epoch 5, with task 0_0 since epoch 3 and 1_1 about to be given up since epoch 2."""
    group = StreamsGroup(GROUP)
    group.set_topology(StreamsTopology(topology_value(word_count())))
    member = StreamsGroupMember(
        "m",
        member_epoch=5,
        previous_member_epoch=4,
        state=MemberState.UNREVOKED_TASKS,
        process_id="p",
        assigned=TasksTupleWithEpochs({"0": {0: 3}}, {"1": frozenset({0})}),
        pending_revocation=TasksTupleWithEpochs({"1": {1: 2}}),
    )
    group.update_member(replace(member, **fields))
    return group


def check(group: StreamsGroup, epoch: int, topic: str, partition: int, member_id: str = "m", **more: Any) -> ErrorCode:
    """The outcome of a commit, of the whole or of the partition."""
    given = {"is_transactional": False, "version": 9, **more}
    try:
        of_partition = group.validate_offset_commit(OffsetCommitter(member_id, None, epoch, **given))
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE if of_partition is None else of_partition(topic, TOPIC_ID, partition)


@pytest.mark.parametrize(
    ("epoch", "topic", "partition", "code"),
    [
        (5, "lines", 0, ErrorCode.NONE),
        (5, "elsewhere", 7, ErrorCode.NONE),  # At its own epoch a member may commit anything, as in Kafka.
        (6, "lines", 0, ErrorCode.STALE_MEMBER_EPOCH),
        (4, "lines", 0, ErrorCode.NONE),
        (3, "lines", 0, ErrorCode.NONE),
        (2, "lines", 0, ErrorCode.STALE_MEMBER_EPOCH),
        (4, "lines", 1, ErrorCode.STALE_MEMBER_EPOCH),
        (4, "elsewhere", 0, ErrorCode.STALE_MEMBER_EPOCH),
        (2, "r", 1, ErrorCode.NONE),  # Until it is given up.
        (1, "r", 1, ErrorCode.STALE_MEMBER_EPOCH),
        (4, "r", 0, ErrorCode.STALE_MEMBER_EPOCH),  # A standby does not commit.
    ],
)
def test_a_commit_is_as_old_as_its_task(epoch: int, topic: str, partition: int, code: ErrorCode) -> None:
    assert check(group_with(), epoch, topic, partition) is code
    assert check(group_with(), epoch, topic, partition, is_transactional=True, version=4) is code


def test_who_may_commit() -> None:
    group = group_with()
    assert check(group, 5, "lines", 0, "stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert check(group, 5, "lines", 0, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert check(group, -1, "lines", 0, "", is_transactional=True) is ErrorCode.NONE
    assert check(group, -1, "lines", 0, "") is ErrorCode.UNKNOWN_MEMBER_ID
    assert check(StreamsGroup(GROUP), -1, "lines", 0, "") is ErrorCode.NONE
    group.set_topology(None)
    assert check(group, 4, "lines", 0) is ErrorCode.STALE_MEMBER_EPOCH


def test_who_may_fetch() -> None:
    group = group_with()
    group.validate_offset_fetch(None, -1)
    group.validate_offset_fetch("m", 5)
    for member_id, epoch, code in (("m", 4, ErrorCode.STALE_MEMBER_EPOCH), ("x", 5, ErrorCode.UNKNOWN_MEMBER_ID)):
        with pytest.raises(KafkaError) as raised:
            group.validate_offset_fetch(member_id, epoch)
        assert raised.value.code is code


def test_owners_follow_the_members() -> None:
    group = group_with()
    owners = group.owners()
    assert (owners.active("0", 0), owners.active("1", 1), owners.active("0", 1)) == ("p", "p", None)
    assert owners.standby("1", 0) == {"p"}
    other = StreamsGroupMember("n", process_id="q", assigned=TasksTupleWithEpochs({}, {"1": frozenset({0})}))
    group.update_member(other)
    assert owners.standby("1", 0) == {"p", "q"}
    group.remove_member("m")
    assert (owners.active("0", 0), owners.standby("1", 0)) == (None, {"q"})
    group.remove_member("nobody")


def test_states() -> None:
    group = StreamsGroup(GROUP)
    assert group.state is StreamsGroupState.EMPTY
    group = group_with()
    assert group.state is StreamsGroupState.NOT_READY
    group.set_metadata(6, 1, 0, {})
    assert group.state is StreamsGroupState.ASSIGNING
    group.set_assignment_metadata(6, 1)
    assert group.state is StreamsGroupState.RECONCILING
    group.update_member(
        replace(group.members["m"], member_epoch=6, state=MemberState.STABLE, pending_revocation=TasksTupleWithEpochs())
    )
    assert group.state is StreamsGroupState.STABLE
    assert group.is_subscribed_to_topic("r")
    assert not group.is_subscribed_to_topic("c"), "a changelog is not consumed"
    group.remove_member("m")
    assert (group.state, group.is_subscribed_to_topic("r")) == (StreamsGroupState.EMPTY, False)


def test_a_topology_that_is_not_ready_is_described_as_it_was_told() -> None:
    host = StreamsHost({"lines": 3})
    Member(host, "a").join()
    (described,) = host.describe()
    assert described.group_state == "NotReady"
    assert described.topology.subtopologies[1].repartition_source_topics[0].partitions == 0
    host.create_topics({"r": 3, "c": 3})
    host.fail_over()
    (described,) = host.describe()
    assert described.topology.subtopologies[1].repartition_source_topics[0].partitions == 0, "until a heartbeat"


def test_a_group_goes_with_its_last_offset() -> None:
    host = StreamsHost(offsets_retention_ms=3_600_000)
    member = Member(host, "a")
    member.join()
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=4)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="lines", partitions=[partition])
    commit = OffsetCommitRequest(
        group_id=GROUP, member_id="a", generation_id_or_member_epoch=member.epoch, topics=[topic]
    )
    host.done(requests.offset_commit(host.coordinator, commit, 9))
    for _ in range(200):
        host.loop.advance(30_000)
        member.beat()
    assert GROUP in host.groups, "what is consumed does not expire"
    member.leave()
    host.loop.advance(7_200_000)
    assert GROUP not in host.groups
    assert [record.type_id for record in host.records() if record.value is None][-3:] == [20, 17, 23]
    host.fail_over()
    assert GROUP not in host.groups
    member.join()
    assert host.group.group_epoch == 2, "and begins anew"


def test_a_group_is_described_with_all_that_is_known_of_its_members() -> None:
    host = StreamsHost()
    a, b = (
        Member(
            host,
            name,
            instance_id=f"i-{name}",
            rack_id=f"rack-{name}",
            user_endpoint=Request.Endpoint(host=f"host-{name}", port=port),
            client_tags=[Request.KeyValue(key="zone", value=name)],
        )
        for name, port in (("a", 81), ("b", 82))
    )
    a.join(word_count(3))
    a.beat(
        task_offsets=[Request.TaskOffset(subtopology_id="1", partition=index, offset=7 + index) for index in (1, 0)],
        task_end_offsets=[Request.TaskOffset(subtopology_id="1", partition=0, offset=9)],
    )
    b.join(word_count(3))
    a.beat()
    (group,) = host.describe()
    assert (group.group_id, group.error_code, group.assignor_name) == (GROUP, 0, "sticky")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    first, second = group.members
    assert (first.member_id, first.instance_id, first.rack_id, first.member_epoch) == ("a", "i-a", "rack-a", 2)
    assert (second.member_id, second.instance_id, second.rack_id, second.member_epoch) == ("b", "i-b", "rack-b", 3)
    assert (first.client_id, first.client_host, first.process_id) == ("client-a", "/127.0.0.1", "process-a")
    assert (first.topology_epoch, first.user_endpoint.host, first.user_endpoint.port) == (3, "host-a", 81)
    assert [(tag.key, tag.value) for tag in first.client_tags] == [("zone", "a")]
    assert tasks(first.assignment.active_tasks) == [("0", [0]), ("1", [0])]
    assert tasks(first.target_assignment.active_tasks) == [("0", [0]), ("1", [0])]
    assert tasks(second.assignment.active_tasks) == []
    assert tasks(second.target_assignment.active_tasks) == [("0", [1]), ("1", [1])]
    assert [(one.subtopology_id, one.partition, one.offset) for one in first.task_offsets] == [("1", 0, 7), ("1", 1, 8)]
    assert [(one.subtopology_id, one.partition, one.offset) for one in first.task_end_offsets] == [("1", 0, 9)]
    assert (second.task_offsets, second.task_end_offsets) == ([], [])


def tasks(described: Any) -> list[tuple[str, list[int]]]:
    return [(one.subtopology_id, one.partitions) for one in described]


def test_a_member_without_an_endpoint_or_a_target_is_described_without_them() -> None:
    described = group_with().describe("sticky").members[0]
    assert (described.user_endpoint, described.rack_id, described.instance_id) == (None, None, None)
    assert (described.client_tags, described.task_offsets, described.task_end_offsets) == ([], [], [])
    assert tasks(described.assignment.active_tasks) == [("0", [0])]
    assert tasks(described.assignment.standby_tasks) == [("1", [0])]
    assert tasks(described.assignment.warmup_tasks) == []
    assert tasks(described.target_assignment.active_tasks) == []


def test_standby_and_warmup_tasks_are_described_each_in_their_place() -> None:
    group = group_with(
        assigned=TasksTupleWithEpochs(
            {"1": {1: 3, 0: 3}, "0": {0: 3}}, {"1": frozenset({2})}, {"0": frozenset({3}), "1": frozenset({4})}
        )
    )
    group.update_target_assignment(
        "m", TasksTuple({"0": frozenset({5})}, {"0": frozenset({6})}, {"1": frozenset({8, 7})})
    )
    described = group.describe("sticky").members[0]
    assert tasks(described.assignment.active_tasks) == [("0", [0]), ("1", [0, 1])]
    assert tasks(described.assignment.standby_tasks) == [("1", [2])]
    assert tasks(described.assignment.warmup_tasks) == [("0", [3]), ("1", [4])]
    assert tasks(described.target_assignment.active_tasks) == [("0", [5])]
    assert tasks(described.target_assignment.standby_tasks) == [("0", [6])]
    assert tasks(described.target_assignment.warmup_tasks) == [("1", [7, 8])]


def test_a_topology_that_is_ready_is_described_as_it_is_configured() -> None:
    host = StreamsHost({"lines": 3, "r": 3, "c": 3})
    member = Member(host, "a")
    member.join(word_count(4))
    member.beat()
    (described,) = host.describe()
    assert described.topology.epoch == 4
    first, second = described.topology.subtopologies
    assert (first.subtopology_id, first.source_topics, first.repartition_sink_topics) == ("0", ["lines"], ["r"])
    assert [(topic.name, topic.partitions) for topic in second.repartition_source_topics] == [("r", 3)]
    (changelog,) = second.state_changelog_topics
    assert (changelog.name, changelog.partitions, changelog.replication_factor) == ("c", 3, 0)
    assert [(config.key, config.value) for config in changelog.topic_configs] == [("cleanup.policy", "compact")]


def test_a_missing_group_is_described_with_an_error() -> None:
    (described,) = StreamsHost().describe("none")
    assert (described.group_id, described.error_code) == ("none", ErrorCode.GROUP_ID_NOT_FOUND)


def test_the_states_of_a_member_are_written_as_kafka_numbers_them() -> None:
    assert [(state.name, state.value) for state in MemberState] == [
        ("STABLE", 1),
        ("UNREVOKED_TASKS", 2),
        ("UNRELEASED_TASKS", 3),
        ("UNKNOWN", 127),
    ]
    assert [state_of(value) for value in (1, 2, 3, 0, 4, 127)] == [
        MemberState.STABLE,
        MemberState.UNREVOKED_TASKS,
        MemberState.UNRELEASED_TASKS,
        MemberState.UNKNOWN,
        MemberState.UNKNOWN,
        MemberState.UNKNOWN,
    ]
