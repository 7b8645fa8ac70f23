"""Share sessions: epochs, partitions, slots, and connections that close."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.sessions import ShareSession, ShareSessionCache, TopicPartitionId

TOPIC = b"t" * 16
MAX_EPOCH = 2**31 - 1


def id_of(index: int) -> TopicPartitionId:
    return TopicPartitionId(TOPIC, index)


class Sessions:
    """A cache with two slots, and what it has reported."""

    def __init__(self) -> None:
        self.cache = ShareSessionCache(2)
        self.reports: list[tuple[str, ...]] = []
        self.cache.on_member_gone = lambda group, member: self.reports.append(("member", group, member))
        self.cache.on_group_empty = lambda group: self.reports.append(("group", group))

    def open(self, member: str = "m", connection: str = "c", group: str = "g", *indexes: int) -> ShareSession:
        return self.cache.open(group, member, [(id_of(index), "q") for index in indexes], connection)

    def code(self, epoch: int, member: str = "m") -> ErrorCode:
        try:
            self.cache.advance("g", member, epoch)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE


def test_a_session_expects_one_epoch_after_the_other() -> None:
    sessions = Sessions()
    assert sessions.code(1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    session = sessions.open()
    assert session.epoch == 1
    assert sessions.code(2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.code(1) is ErrorCode.NONE
    assert sessions.code(1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.code(2) is ErrorCode.NONE
    assert session.epoch == 3


def test_the_epoch_after_the_largest_is_1() -> None:
    sessions = Sessions()
    session = sessions.open()
    session.epoch = MAX_EPOCH
    assert sessions.code(MAX_EPOCH) is ErrorCode.NONE
    assert session.epoch == 1


def test_the_last_request_is_accepted_at_any_epoch_and_changes_none() -> None:
    sessions = Sessions()
    session = sessions.open()
    assert sessions.code(-1) is ErrorCode.NONE
    assert session.epoch == 1


def test_a_session_beyond_the_slots_is_rejected_and_a_members_own_session_is_replaced() -> None:
    sessions = Sessions()
    first = sessions.open("a", "c1")
    sessions.open("b", "c2")
    with pytest.raises(KafkaError) as raised:
        sessions.open("c", "c3")
    assert raised.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.open("a", "c1") is not first
    assert len(sessions.cache) == 2
    assert sessions.cache.remove("g", "b") is not None
    sessions.open("c", "c3")
    assert len(sessions.cache) == 2


def test_a_removed_session_is_gone() -> None:
    sessions = Sessions()
    session = sessions.open()
    assert sessions.cache.get("g", "m") is session
    assert sessions.cache.remove("g", "m") is session
    assert sessions.cache.get("g", "m") is None
    assert sessions.cache.remove("g", "m") is None


def test_a_closed_connection_ends_its_session_and_then_its_group() -> None:
    sessions = Sessions()
    sessions.open("a", "c1")
    sessions.open("b", "c2")
    sessions.cache.connection_closed("unknown")
    assert sessions.reports == []
    sessions.cache.connection_closed("c1")
    assert sessions.reports == [("member", "g", "a")]
    assert sessions.cache.get("g", "a") is None
    sessions.cache.connection_closed("c1")
    sessions.cache.connection_closed("c2")
    assert sessions.reports == [("member", "g", "a"), ("member", "g", "b"), ("group", "g")]


def test_groups_are_empty_one_by_one() -> None:
    sessions = Sessions()
    sessions.open("a", "c1", "g")
    sessions.open("a", "c2", "h")
    sessions.cache.connection_closed("c2")
    assert sessions.reports == [("member", "h", "a"), ("group", "h")]
    assert sessions.cache.get("g", "a") is not None


def test_a_session_that_was_opened_again_elsewhere_outlives_its_first_connection() -> None:
    sessions = Sessions()
    sessions.open("a", "c1")
    again = sessions.open("a", "c2")
    sessions.cache.connection_closed("c1")
    assert sessions.reports == []
    assert sessions.cache.get("g", "a") is again


def test_a_group_is_empty_once_its_last_session_has_ended_and_its_connection_closes() -> None:
    sessions = Sessions()
    sessions.open("a", "c1")
    sessions.cache.remove("g", "a")
    assert sessions.reports == []
    sessions.cache.connection_closed("c1")
    assert sessions.reports == [("group", "g")]


def test_partitions_of_an_opened_session_are_answered_only_with_news() -> None:
    session = Sessions().open("m", "c", "g", 0)
    assert not session.note_answered(id_of(0), has_records=False, has_error=False)
    assert session.note_answered(id_of(0), has_records=True, has_error=False)
    assert session.note_answered(id_of(0), has_records=False, has_error=True)
    assert session.note_answered(id_of(0), has_records=False, has_error=False), "the error is over"
    assert not session.note_answered(id_of(0), has_records=False, has_error=False)


def test_a_partition_that_is_added_is_answered_once_and_keeps_its_place() -> None:
    session = Sessions().open("m", "c", "g", 0)
    session.add(id_of(1), "q", must_answer=True)
    session.add(id_of(0), "other", must_answer=True)
    assert session.partitions[id_of(0)].topic == "q"
    assert not session.note_answered(id_of(0), has_records=False, has_error=False)
    assert session.note_answered(id_of(1), has_records=False, has_error=False)
    assert not session.note_answered(id_of(1), has_records=False, has_error=False)


def test_a_partition_with_records_moves_to_the_end() -> None:
    session = Sessions().open("m", "c", "g", 0, 1, 2)
    session.note_answered(id_of(0), has_records=True, has_error=False)
    session.note_answered(id_of(1), has_records=False, has_error=True)
    assert list(session.partitions) == [id_of(1), id_of(2), id_of(0)]


def test_a_partition_that_was_forgotten_meanwhile_is_answered() -> None:
    session = Sessions().open("m", "c", "g", 0)
    assert session.note_answered(id_of(7), has_records=False, has_error=False)
    assert list(session.partitions) == [id_of(0)]
