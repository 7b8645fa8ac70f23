"""KIP-227, after Kafka's FetchSessionTest: epochs, the partitions of a response, evictions."""

from __future__ import annotations

import random
from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.replication.fetch_reader import FetchPartition, FetchRead
from barnabas.replication.fetch_session import EVICTION_MS, SESSION_ID_MAX, FetchContext, FetchSessionCache, next_epoch
from tests.replication.hosting import topic_id


def wants(*names: str, offset: int = 0, by_id: int = 0) -> list[FetchPartition]:
    """`"t-0"` for each partition."""
    made = []
    for name in names:
        topic, _, index = name.rpartition("-")
        made.append(FetchPartition(topic, topic_id(by_id) if by_id else ZERO_UUID, int(index), offset, 1000))
    return made


def ask(
    cache: FetchSessionCache,
    session_id: int,
    epoch: int,
    wanted: list[FetchPartition],
    forgotten: tuple[Hashable, ...] = (),
    *,
    now_ms: int = 0,
    is_follower: bool = False,
    uses_topic_ids: bool = False,
) -> FetchContext:
    return cache.context(
        session_id,
        epoch,
        wanted,
        forgotten,
        uses_topic_ids=uses_topic_ids,
        is_follower=is_follower,
        now_ms=now_ms,
    )


def data_of(wanted: FetchPartition, *, high_watermark: int = 10, records: Any = b"", error: int = 0) -> Any:
    return FetchResponse.PartitionData(
        partition_index=wanted.index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        error_code=error,
    )


def answer(context: FetchContext, epoch: int, **fields: Any) -> FetchResponse:
    results = [(wanted, data_of(wanted, **fields)) for wanted in context.partitions]
    return context.respond(FetchRead(results, 0, False, []), epoch)


def open_session(cache: FetchSessionCache, *names: str, **options: Any) -> int:
    return answer(ask(cache, 0, 0, wants(*names), **options), 0).session_id


@pytest.fixture
def cache() -> FetchSessionCache:
    return FetchSessionCache(10, random.Random(1))


def test_epochs_wrap_past_zero() -> None:
    assert [next_epoch(0), next_epoch(1), next_epoch(SESSION_ID_MAX), next_epoch(-1)] == [1, 2, 1, -1]


def test_requests_without_a_session_open_none(cache: FetchSessionCache) -> None:
    context = ask(cache, 0, -1, wants("t-0"))
    assert context.session is None
    assert answer(context, -1).session_id == 0
    assert len(cache) == 0


def test_a_session_opens_continues_and_closes(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0", "t-1")
    assert session_id > 0
    context = ask(cache, session_id, 1, [])
    assert context.session is not None
    assert [wanted.index for wanted in context.partitions] == [0, 1]
    assert context.respond(FetchRead([], 0, False, []), 1).session_id == session_id
    context = ask(cache, session_id, -1, wants("t-0"))
    assert context.session is None
    assert len(cache) == 0


def test_epoch_zero_with_an_id_replaces_the_session(cache: FetchSessionCache) -> None:
    first = open_session(cache, "t-0")
    context = ask(cache, first, 0, wants("t-0"))
    second = answer(context, 0).session_id
    assert second not in (0, first)
    assert len(cache) == 1
    assert ask(cache, first, 1, []).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_wrong_epoch_is_rejected_and_the_session_stays(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    assert ask(cache, session_id, 2, []).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(cache, session_id, 1, []).error == ErrorCode.NONE
    assert ask(cache, session_id, 1, []).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(cache, session_id, 2, []).error == ErrorCode.NONE


def test_an_unknown_session_makes_the_client_open_a_new_one(cache: FetchSessionCache) -> None:
    context = ask(cache, 12345, 1, [])
    response = context.respond(None, 1)
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert response.responses == []


def test_a_session_uses_names_or_ids_never_both(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    assert ask(cache, session_id, 1, [], uses_topic_ids=True).error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    context = ask(cache, 0, 0, wants("t-0", by_id=5), uses_topic_ids=True)
    by_id = answer(context, 0).session_id
    assert ask(cache, by_id, 1, []).error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert ask(cache, by_id, 1, [], uses_topic_ids=True).error == ErrorCode.NONE


def test_a_request_adds_changes_and_drops_partitions(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0", "t-1")
    context = ask(cache, session_id, 1, [*wants("t-1", offset=7), *wants("u-0")], (("t", 0), ("never", 3)))
    assert [(w.topic, w.index, w.fetch_offset) for w in context.partitions] == [("t", 1, 7), ("u", 0, 0)]


def test_a_session_that_forgets_everything_ends(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    context = ask(cache, session_id, 1, [], (("t", 0),))
    assert context.respond(FetchRead([], 0, False, []), 1).session_id == 0
    assert len(cache) == 0


def test_a_waiting_request_is_rejected_if_another_one_continued_the_session(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    slow = ask(cache, session_id, 1, [])
    ask(cache, session_id, 2, [])
    response = answer(slow, 1)
    assert (response.error_code, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)


def test_partitions_with_records_move_to_the_end(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0", "t-1", "t-2")
    context = ask(cache, session_id, 1, [])
    first, second, _ = context.partitions
    records = SimpleNamespace(size=5)
    read = FetchRead([(first, data_of(first, records=records)), (second, data_of(second))], 5, False, [])
    context.respond(read, 1)
    session = cache.get(session_id)
    assert session is not None
    assert [wanted.index for wanted in session.ready] == [1, 2, 0]


def test_sent_offsets_are_remembered_until_an_error(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    context = ask(cache, session_id, 1, [])
    (wanted,) = context.partitions
    assert (wanted.sent_high_watermark, wanted.sent_log_start_offset) == (10, 0)
    answer(context, 1, high_watermark=-1, error=3)
    assert wanted.sent_high_watermark == -1


def test_neighbouring_partitions_of_one_topic_are_grouped(cache: FetchSessionCache) -> None:
    response = answer(ask(cache, 0, -1, wants("a-0", "a-1", "b-0", "a-2")), -1)
    assert [(topic.topic, [p.partition_index for p in topic.partitions]) for topic in response.responses] == [
        ("a", [0, 1]),
        ("b", [0]),
        ("a", [2]),
    ]


class TestEviction:
    def test_a_full_cache_gives_no_session(self) -> None:
        cache = FetchSessionCache(2, random.Random(1))
        for _ in range(2):
            assert open_session(cache, "t-0")
        assert open_session(cache, "t-0", now_ms=EVICTION_MS) == 0
        assert len(cache) == 2

    def test_a_new_session_replaces_the_least_recently_used_one(self) -> None:
        cache = FetchSessionCache(2, random.Random(1))
        first = open_session(cache, "t-0", "t-1")
        second = open_session(cache, "t-0")
        ask(cache, first, 1, [], now_ms=10)
        assert open_session(cache, "t-0", now_ms=EVICTION_MS + 5) > 0
        assert cache.get(second) is None
        assert cache.get(first) is not None

    def test_a_larger_session_replaces_an_old_smaller_one(self) -> None:
        cache = FetchSessionCache(2, random.Random(1))
        small = open_session(cache, "t-0")
        large = open_session(cache, "t-0", "t-1", "t-2")
        late = EVICTION_MS + 1
        ask(cache, small, 1, [], now_ms=late)
        ask(cache, large, 1, [], now_ms=late)
        assert open_session(cache, "t-0", now_ms=late) == 0, "one of the same size does not"
        assert open_session(cache, "t-0", "t-1", now_ms=late) > 0
        assert cache.get(small) is None
        assert cache.get(large) is not None

    def test_a_follower_replaces_a_consumers_session_at_once(self) -> None:
        cache = FetchSessionCache(1, random.Random(1))
        consumer = open_session(cache, "t-0", "t-1")
        follower = open_session(cache, "t-0", is_follower=True)
        assert follower > 0
        assert cache.get(consumer) is None
        assert open_session(cache, "t-0", "t-1", "t-2", now_ms=EVICTION_MS) == 0, "and keeps it"

    def test_ten_thousand_clients_share_a_thousand_slots(self) -> None:
        cache = FetchSessionCache(1000, random.Random(1))
        opened = [open_session(cache, "t-0", now_ms=n) for n in range(2000)]
        assert sum(session_id > 0 for session_id in opened) == 1000
        assert len(cache) == 1000
