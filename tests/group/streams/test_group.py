"""What a streams group answers: states, commits by epoch and task, descriptions, its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.group import requests
from barnabas.group.group import OffsetCommitter
from barnabas.group.streams.group import StreamsGroup, StreamsGroupState
from barnabas.group.streams.member import MemberState, StreamsGroupMember
from barnabas.group.streams.tasks import TasksTupleWithEpochs
from barnabas.group.streams.topology import StreamsTopology, topology_value
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import OffsetCommitRequest
from tests.group.streams.host import GROUP, Member, StreamsHost, word_count

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
