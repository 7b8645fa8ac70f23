"""Altering and deleting offsets of share groups: what each topic's answer says, and what the group keeps."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AlterShareGroupOffsetsRequest
from barnabas.steps import start
from tests.group.share.hosting import Host

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
Topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
Partition = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition


def alter(host: Host, group_id: str = "g", **topics: dict[int, int]) -> Any:
    """Alter offsets, given by topic and partition."""
    named = [
        Topic(topic_name=name, partitions=[Partition(partition_index=i, start_offset=at) for i, at in offsets.items()])
        for name, offsets in topics.items()
    ]
    answer = start(host.service.alter_offsets(group_id, named), host.loop)
    host.loop.run_ready()
    return answer.result()


def delete(host: Host, *topics: str, group_id: str = "g") -> Any:
    answer = start(host.service.delete_offsets(group_id, topics), host.loop)
    host.loop.run_ready()
    return answer.result()


def delete_states(host: Host) -> dict[str, ErrorCode]:
    answer = start(host.service.delete_states(["g"]), host.loop)
    host.loop.run_ready()
    return answer.result()


def id_of(host: Host, name: str) -> bytes:
    return bytes(host.metadata.image.topics.by_name[name].topic_id)


def written(host: Host) -> int:
    return len(host.log.batches.get(0, []))


def initialized(host: Host) -> dict[str, frozenset[int]]:
    return {topic.name: topic.partitions for topic in host.group.state_partitions.initialized.values()}


def outcomes(response: Any) -> list[tuple[str, bytes, int, str | None]]:
    """Name, id, error and message of each topic of a deletion."""
    return [(one.topic_name, bytes(one.topic_id), one.error_code, one.error_message) for one in response.responses]


def test_each_topic_of_a_deletion_has_its_own_outcome() -> None:
    host = Host(q=2, r=1, never=1)
    alter(host, q={0: 3, 1: 4}, r={0: 5})
    assert outcomes(delete(host, "missing", "never", "q")) == [
        ("q", id_of(host, "q"), 0, None),
        ("missing", bytes(16), UNKNOWN, UNKNOWN.default_message),
        ("never", bytes(16), UNKNOWN, "There is no offset information to delete."),
    ]
    assert host.persister.deleted == [(id_of(host, "q"), 0), (id_of(host, "q"), 1)]
    assert initialized(host) == {"r": {0}}, "the offsets of other topics stay"
    assert host.group.state_partitions.deleting == {}


def test_only_the_partitions_with_offsets_are_deleted() -> None:
    host = Host(q=4)
    alter(host, q={3: 1, 1: 1})
    delete(host, "q")
    assert host.persister.deleted == [(host.q, 1), (host.q, 3)]


def test_a_deletion_that_failed_can_be_repeated() -> None:
    host = Host(q=3)
    alter(host, q={0: 1})
    host.persister.fails = {0}
    delete(host, "q")
    assert host.group.state_partitions.deleting == {host.q: "q"}
    assert initialized(host) == {}
    host.persister.fails, host.persister.deleted = set(), []
    assert outcomes(delete(host, "q")) == [("q", host.q, 0, None)]
    assert host.persister.deleted == [(host.q, 0), (host.q, 1), (host.q, 2)]
    assert host.group.state_partitions.deleting == {}


def test_a_finished_deletion_leaves_another_that_failed() -> None:
    host = Host(q=2, r=1)
    alter(host, q={1: 1}, r={0: 1})
    host.persister.fails = {1}
    assert [error for _, _, error, _ in outcomes(delete(host, "q", "r"))] == [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0]
    assert host.group.state_partitions.deleting == {host.q: "q"}


def test_a_deletion_of_nothing_writes_nothing() -> None:
    host = Host(q=1, never=1)
    alter(host, q={0: 1})
    before = written(host)
    delete(host, "never", "missing")
    assert delete(host).responses == []
    assert written(host) == before


def test_a_deletion_that_fails_everywhere_is_written_only_once() -> None:
    host = Host(q=1)
    alter(host, q={0: 1})
    before = written(host)
    host.persister.fails = {0}
    delete(host, "q")
    assert written(host) == before + 1


def test_a_deletion_keeps_partitions_that_are_being_initialized() -> None:
    host = Host(q=1, r=1)
    alter(host, q={0: 1})
    host.persister.waits = True
    alter_r = start(
        host.service.alter_offsets(
            "g", [Topic(topic_name="r", partitions=[Partition(partition_index=0, start_offset=1)])]
        ),
        host.loop,
    )
    host.loop.run_ready()
    host.persister.waits = False
    delete(host, "q")
    assert [topic.name for topic in host.group.state_partitions.initializing.values()] == ["r"]
    host.persister.go_on()
    assert alter_r.result().error_code == 0
    assert initialized(host) == {"r": {0}}


@pytest.mark.parametrize(
    ("group_id", "code"),
    [("", ErrorCode.INVALID_GROUP_ID), ("none", ErrorCode.GROUP_ID_NOT_FOUND), ("g", ErrorCode.NON_EMPTY_GROUP)],
)
def test_a_deletion_needs_an_empty_share_group(group_id: str, code: ErrorCode) -> None:
    host = Host()
    host.join("m")
    response = delete(host, "q", group_id=group_id)
    assert (response.error_code, response.responses) == (code, [])
    assert response.error_message
    assert host.persister.deleted == []
    assert initialized(host) == {"q": {0, 1}}


@pytest.mark.parametrize(("group_id", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("g", ErrorCode.NON_EMPTY_GROUP)])
def test_an_alteration_needs_an_empty_group(group_id: str, code: ErrorCode) -> None:
    host = Host()
    host.join("m")
    host.persister.begun.clear()
    response = alter(host, group_id, q={0: 9})
    assert (response.error_code, response.error_message) == (code, code.default_message)
    assert host.persister.begun == []


def test_altered_partitions_start_at_the_given_offsets_in_the_epoch_of_the_group() -> None:
    host = Host(q=2, r=1)
    host.join("m")
    host.heartbeat("m", -1)
    host.persister.begun.clear()
    epoch = host.group.group_epoch
    response = alter(host, q={1: 7, 0: 8}, r={0: 9})
    assert [(topic.topic_name, bytes(topic.topic_id)) for topic in response.responses] == [
        ("q", host.q),
        ("r", id_of(host, "r")),
    ]
    assert sorted(host.persister.begun) == sorted(
        [("g", host.q, 1, epoch, 7), ("g", host.q, 0, epoch, 8), ("g", id_of(host, "r"), 0, epoch, 9)]
    )
    assert initialized(host) == {"q": {0, 1}, "r": {0}}


def test_partitions_that_do_not_exist_are_not_altered() -> None:
    host = Host(q=1)
    response = alter(host, missing={0: 1}, q={0: 1, 1: 1})
    assert [
        (topic.topic_name, bytes(topic.topic_id), part.partition_index, part.error_code, part.error_message)
        for topic in response.responses
        for part in topic.partitions
    ] == [
        ("missing", bytes(16), 0, UNKNOWN, UNKNOWN.default_message),
        ("q", host.q, 0, 0, None),
        ("q", host.q, 1, UNKNOWN, UNKNOWN.default_message),
    ]
    assert initialized(host) == {"q": {0}}


def test_an_alteration_of_missing_topics_makes_no_group() -> None:
    host = Host()
    alter(host, missing={0: 1})
    assert written(host) == 0


def test_a_topic_being_deleted_is_altered_and_no_longer_deleted() -> None:
    host = Host(q=1)
    alter(host, q={0: 1})
    host.persister.fails = {0}
    delete(host, "q")
    host.persister.fails = set()
    alter(host, q={0: 2})
    assert initialized(host) == {"q": {0}}
    assert host.group.state_partitions.deleting == {}


def test_all_states_of_a_group_are_deleted_also_those_on_their_way() -> None:
    host = Host(q=3, r=1, s=2, never=1)
    alter(host, q={0: 1}, r={0: 1}, s={1: 1})
    host.persister.fails = {1}
    delete(host, "s")
    host.persister.fails, host.persister.deleted = set(), []
    host.persister.waits = True
    start(
        host.service.alter_offsets(
            "g", [Topic(topic_name="q", partitions=[Partition(partition_index=2, start_offset=1)])]
        ),
        host.loop,
    )
    host.loop.run_ready()
    host.persister.waits = False
    assert delete_states(host) == {}
    q, r, s = (id_of(host, name) for name in "qrs")
    assert sorted(host.persister.deleted) == [(q, 0), (q, 2), (r, 0), (s, 0), (s, 1)]
    assert host.group.state_partitions.deleting == {q: "q", r: "r", s: "s"}
    assert (host.group.state_partitions.initialized, host.group.state_partitions.initializing) == ({}, {})


def test_a_group_without_states_deletes_none_and_writes_nothing() -> None:
    host = Host(q=1)
    alter(host, q={0: 1})
    delete(host, "q")
    host.persister.deleted = []
    before = written(host)
    assert delete_states(host) == {}
    assert (written(host), host.persister.deleted) == (before, [])
