"""Share sessions: their epochs, what an answer mentions, and how they end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.sessions import ShareSession, ShareSessionCache, TopicPartitionId

P0, P1, P2 = (TopicPartitionId(b"t" * 16, index) for index in range(3))


def opened(cache: ShareSessionCache, member: str = "m", group: str = "g", connection: str = "c") -> ShareSession:
    return cache.open(group, member, [(P0, "t"), (P1, None)], connection)


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call()
    return refused.value.code


class Watched(ShareSessionCache):
    """A cache that notes what it tells."""

    def __init__(self) -> None:
        super().__init__(10)
        self.told: list[tuple[str, ...]] = []
        self.on_member_gone = lambda group, member: self.told.append((group, member))
        self.on_group_empty = lambda group: self.told.append((group,))


def test_a_session_begins_at_epoch_1_and_goes_on() -> None:
    cache = ShareSessionCache(10)
    session = opened(cache)
    assert (session.epoch, list(session.partitions)) == (1, [P0, P1])
    assert [shared.topic for shared in session.partitions.values()] == ["t", None]
    assert cache.advance("g", "m", 1) is session
    assert session.epoch == 2
    assert cache.advance("g", "m", 2).epoch == 3
    assert code_of(lambda: cache.advance("g", "m", 2)) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert code_of(lambda: cache.advance("g", "m", 4)) is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_the_last_request_may_come_at_any_epoch() -> None:
    cache = ShareSessionCache(10)
    session = opened(cache)
    assert cache.advance("g", "m", -1) is session
    assert session.epoch == 1


def test_members_of_other_groups_have_no_session_here() -> None:
    cache = ShareSessionCache(10)
    opened(cache)
    assert cache.get("g", "other") is None
    assert code_of(lambda: cache.advance("other", "m", 1)) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_slots_are_limited_and_a_member_may_begin_again() -> None:
    cache = ShareSessionCache(2)
    opened(cache, "a")
    first = opened(cache, "b")
    assert code_of(lambda: opened(cache, "c")) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert opened(cache, "b") is not first
    assert len(cache) == 2
    assert cache.remove("g", "a") is not None
    assert cache.remove("g", "a") is None
    opened(cache, "c")


def test_a_new_partition_is_mentioned_once() -> None:
    session = opened(ShareSessionCache(10))
    session.add(P2, "t", must_answer=True)
    assert [session.note_answered(at, has_records=False, has_error=False) for at in (P0, P2)] == [False, True]
    assert not session.note_answered(P2, has_records=False, has_error=False)
    session.add(P2, "t", must_answer=True)
    assert not session.note_answered(P2, has_records=False, has_error=False), "it is known"


def test_after_an_error_a_partition_is_mentioned_once_more() -> None:
    session = opened(ShareSessionCache(10))
    answers = [session.note_answered(P0, has_records=False, has_error=failed) for failed in (True, False, False)]
    assert answers == [True, True, False]


def test_after_records_the_others_go_first() -> None:
    session = opened(ShareSessionCache(10))
    assert session.note_answered(P0, has_records=True, has_error=False)
    assert list(session.partitions) == [P1, P0]
    assert not session.note_answered(P1, has_records=False, has_error=False)
    assert list(session.partitions) == [P1, P0]
    assert session.note_answered(P2, has_records=False, has_error=False), "a stranger is always mentioned"


def test_a_closed_connection_ends_its_session() -> None:
    cache = Watched()
    opened(cache, "a", connection="1")
    opened(cache, "b", connection="2")
    cache.connection_closed("1")
    assert cache.told == [("g", "a")]
    assert cache.get("g", "a") is None
    cache.connection_closed("1")
    cache.connection_closed("unknown")
    assert cache.told == [("g", "a")]
    cache.connection_closed("2")
    assert cache.told == [("g", "a"), ("g", "b"), ("g",)]
    assert len(cache) == 0


def test_the_connection_of_a_session_that_has_ended_tells_only_of_the_group() -> None:
    cache = Watched()
    opened(cache)
    cache.remove("g", "m")
    assert cache.told == []
    cache.connection_closed("c")
    assert cache.told == [("g",)]


def test_the_old_connection_of_a_member_ends_nothing() -> None:
    cache = Watched()
    opened(cache, connection="old")
    session = opened(cache, connection="new")
    cache.connection_closed("old")
    assert cache.told == []
    assert cache.get("g", "m") is session


def test_groups_are_empty_one_by_one() -> None:
    cache = Watched()
    opened(cache, group="g", connection="1")
    opened(cache, group="h", connection="2")
    cache.connection_closed("1")
    assert cache.told == [("g", "m"), ("g",)]
