"""KIP-227, after Kafka's FetchSessionTest: epochs, the partitions of a response, evictions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.replication.fetch_reader import FetchParams, PartitionLookup, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.fetch_session_cache import (
    EVICTION_MS,
    SESSION_ID_MAX,
    FetchContext,
    FetchSessionCache,
    next_epoch,
)
from barnabas.steps import step
from tests.at_once import at_once
from tests.replication.hosting import NODE, Hosting, topic_id
from tests.short_turns import set_turn


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
    asked = cache.context(
        session_id,
        epoch,
        wanted,
        forgotten,
        uses_topic_ids=uses_topic_ids,
        is_follower=is_follower,
        now_ms=now_ms,
    )
    return at_once(asked)


def data_of(wanted: FetchPartition, *, high_watermark: int = 10, records: Any = b"", error: int = 0) -> Any:
    return FetchResponse.PartitionData(
        partition_index=wanted.index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        error_code=error,
    )


def read(*results: tuple[FetchPartition, FetchResponse.PartitionData]) -> Reading:
    """A pass that has read this."""
    reading = Reading(FetchParams(12, -1, 0, 1, 1 << 20, 0), cast("PartitionLookup", None))
    reading.results += results
    return reading


def respond(context: FetchContext, reading: Reading | None, epoch: int) -> FetchResponse:
    return at_once(context.respond(reading, epoch))


def answer(context: FetchContext, epoch: int, **fields: Any) -> FetchResponse:
    return respond(context, read(*((wanted, data_of(wanted, **fields)) for wanted in context.partitions)), epoch)


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
    assert respond(context, read(), 1).session_id == session_id
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


def test_epoch_zero_with_an_unknown_id_opens_a_session(cache: FetchSessionCache) -> None:
    assert answer(ask(cache, 12345, 0, wants("t-0")), 0).session_id not in (0, 12345)
    assert ask(cache, 12345, -1, wants("t-0")).error == ErrorCode.NONE


def test_a_wrong_epoch_is_rejected_and_the_session_stays(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    assert ask(cache, session_id, 2, []).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(cache, session_id, 1, []).error == ErrorCode.NONE
    assert ask(cache, session_id, 1, []).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(cache, session_id, 2, []).error == ErrorCode.NONE


def test_an_unknown_session_makes_the_client_open_a_new_one(cache: FetchSessionCache) -> None:
    context = ask(cache, 12345, 1, [])
    response = respond(context, None, 1)
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


def test_all_that_is_asked_of_a_partition_is_altered(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    (known,) = ask(cache, session_id, 1, []).partitions
    known.sent_high_watermark = 5
    ask(cache, session_id, 2, [FetchPartition("t", ZERO_UUID, 0, 1, 2, 3, 4, 5)])
    assert (known.fetch_offset, known.max_bytes, known.current_leader_epoch) == (1, 2, 3)
    assert (known.last_fetched_epoch, known.log_start_offset) == (4, 5)
    assert known.sent_high_watermark == 5, "the client still knows it"


def test_a_new_partition_asks_for_no_epochs_and_was_told_nothing() -> None:
    (new,) = wants("t-0")
    assert (new.current_leader_epoch, new.last_fetched_epoch, new.log_start_offset) == (-1, -1, -1)
    assert (new.sent_high_watermark, new.sent_log_start_offset) == (-1, -1)


def test_topics_by_id_are_told_apart_without_names(cache: FetchSessionCache) -> None:
    wanted = [FetchPartition(None, topic_id(number), 0, 0, 1000) for number in (1, 2)]
    session_id = answer(ask(cache, 0, 0, wanted, uses_topic_ids=True), 0).session_id
    context = ask(cache, session_id, 1, [], ((topic_id(1), 0),), uses_topic_ids=True)
    assert list(context.partitions) == wanted[1:]


def test_a_session_that_forgets_everything_ends(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    context = ask(cache, session_id, 1, [], (("t", 0),))
    assert respond(context, read(), 1).session_id == 0
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
    respond(context, read((first, data_of(first, records=records)), (second, data_of(second))), 1)
    session = cache.get(session_id)
    assert session is not None
    assert [wanted.index for wanted in session.ready] == [1, 2, 0]


def test_sent_offsets_are_remembered_until_an_error(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    context = ask(cache, session_id, 1, [])
    (wanted,) = context.partitions
    assert (wanted.sent_high_watermark, wanted.sent_log_start_offset) == (10, 0)
    answer(context, 1, high_watermark=7, error=3)
    assert wanted.sent_high_watermark == -1


def test_what_a_client_must_cut_off_is_sent_again(cache: FetchSessionCache) -> None:
    context = ask(cache, open_session(cache, "t-0"), 1, [])
    (wanted,) = context.partitions
    data = data_of(wanted)
    data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=0, end_offset=3)
    respond(context, read((wanted, data)), 1)
    assert wanted.sent_high_watermark == -1


def test_an_empty_response_keeps_the_session(cache: FetchSessionCache) -> None:
    session_id = open_session(cache, "t-0")
    context = ask(cache, session_id, 1, [])
    response = context.respond_empty(1)
    assert (response.error_code, response.session_id, response.responses) == (0, session_id, [])
    ask(cache, session_id, 2, [])
    response = context.respond_empty(1)
    assert (response.error_code, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)
    response = ask(cache, 0, -1, wants("t-0")).respond_empty(-1)
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
    response = ask(cache, 99, 5, []).respond_empty(5)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_ids_are_not_given_twice() -> None:
    class Repeating(random.Random):
        def randint(self, a: int, b: int) -> int:
            assert (a, b) == (1, 2**31 - 1)
            return given.pop()

    given = [9, 8, 8, 8]
    cache = FetchSessionCache(10, Repeating())
    assert [open_session(cache, "t-0") for _ in range(2)] == [8, 9]
    assert given == []


def test_neighbouring_partitions_of_one_topic_are_grouped(cache: FetchSessionCache) -> None:
    response = answer(ask(cache, 0, -1, wants("a-0", "a-1", "b-0", "a-2")), -1)
    assert [(topic.topic, [p.partition_index for p in topic.partitions]) for topic in response.responses] == [
        ("a", [0, 1]),
        ("b", [0]),
        ("a", [2]),
    ]


class TestTurns:
    """Requests of many partitions give the loop its turns, in which other clients come."""

    NAMES = tuple(f"t-{index}" for index in range(20))

    def test_a_session_that_is_closed_while_a_request_updates_it_is_not_found(
        self, hosting: Hosting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hosting.create_topic("t", 20)
        session_id = open_session(hosting.sessions, "t-0")
        set_turn(monkeypatch, 1)
        asked: Any = step(
            hosting.sessions.context(
                session_id, 1, wants(*self.NAMES), (), uses_topic_ids=False, is_follower=False, now_ms=0
            ),
            hosting.loop,
        )
        hosting.spin()
        assert not asked.done()
        ask(hosting.sessions, session_id, -1, [])
        for _ in self.NAMES:
            hosting.spin()
        assert asked.result().error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_a_session_that_loses_its_slot_while_it_is_opened_observes_no_replica(
        self, hosting: Hosting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hosting.create_topic("t", 20)
        wanted = wants(*self.NAMES)
        context = ask(hosting.sessions, 0, 0, wanted)
        results = []
        for each in wanted:
            each.partition = hosting.replicas.partition("t", each.index)
            results.append((each, data_of(each)))
        set_turn(monkeypatch, 1)
        opening: Any = step(context.respond(read(*results), 0), hosting.loop)
        hosting.spin()
        (opened,) = hosting.sessions._sessions.values()
        assert 0 < len(opened.partitions) < len(wanted)
        ask(hosting.sessions, opened.session_id, -1, [])
        for _ in self.NAMES:
            hosting.spin()
        assert opening.result().session_id == opened.session_id, "its next request opens another one"
        assert not any(hosting.replicas.partition("t", index).observers for index in range(20))


class TestReading:
    """A session over real replicas: what it looks at, and what ends its wait."""

    params = FetchParams(12, -1, 500, 1, 1 << 20, isolation_level=0)

    def first(self, hosting: Hosting, *names: str) -> int:
        context = ask(hosting.sessions, 0, 0, wants(*names))
        fetching = hosting.replicas.fetches.fetch(self.params._replace(max_wait_ms=0), context.partitions)
        return int(respond(context, at_once(fetching), 0).session_id)

    def more(self, hosting: Hosting, session_id: int, epoch: int, *names: str, offset: int = 0, **params: Any) -> Any:
        context = ask(hosting.sessions, session_id, epoch, wants(*names, offset=offset))
        assert context.session is not None

        async def responded() -> FetchResponse:
            changes = self.params._replace(only_changes=True, **params)
            return await context.respond(await hosting.replicas.fetches.fetch(changes, (), context.session), epoch)

        return step(responded(), hosting.loop)

    def told(self, response: FetchResponse) -> list[tuple[str, int]]:
        return [(topic.topic, part.partition_index) for topic in response.responses for part in topic.partitions]

    def ready(self, hosting: Hosting, session_id: int) -> list[tuple[str | None, int]]:
        session = hosting.sessions.get(session_id)
        assert session is not None
        return [(wanted.topic, wanted.index) for wanted in session.ready]

    def test_only_partitions_with_news_are_looked_at(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        session_id = self.first(hosting, "t-0", "t-1", "t-2")
        waiting = self.more(hosting, session_id, 1)
        assert self.ready(hosting, session_id) == []
        assert not waiting.done()
        hosting.append("t", b"a", index=1)
        assert self.ready(hosting, session_id) == [("t", 1)]
        hosting.spin()
        assert self.told(waiting.result()) == [("t", 1)]
        assert self.ready(hosting, session_id) == [("t", 1)], "there may be more"
        waiting = self.more(hosting, session_id, 2, "t-1", offset=1)
        assert not waiting.done()
        hosting.advance(500)
        assert self.told(waiting.result()) == []

    def test_the_wait_is_for_enough_bytes(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        waiting = self.more(hosting, session_id, 1, min_bytes=100)
        hosting.append("t", b"a")
        hosting.spin()
        assert not waiting.done()
        hosting.append("t", b"b", index=1)
        hosting.spin()
        assert self.told(waiting.result()) == [("t", 0), ("t", 1)]

    def test_news_before_the_request_is_answered_at_once(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        self.more(hosting, session_id, 1, max_wait_ms=0)
        hosting.append("t", b"a", index=1)
        assert self.told(self.more(hosting, session_id, 2)) == [("t", 1)]

    def test_a_forgotten_partition_is_no_news(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        ask(hosting.sessions, session_id, 1, [], (("t", 0),))
        waiting = self.more(hosting, session_id, 2)
        hosting.append("t", b"a", index=0)
        hosting.spin()
        assert not waiting.done()
        assert hosting.replicas.partition("t", 0).observers == {}

    def test_a_closed_session_is_forgotten_by_the_replicas(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session_id = self.first(hosting, "t-0", "t-1")
        observers = [hosting.replicas.partition("t", index).observers for index in range(2)]
        assert [len(found or ()) for found in observers] == [1, 1]
        ask(hosting.sessions, session_id, -1, [])
        assert observers == [{}, {}]

    def test_deleted_records_are_told_with_the_next_answer(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        hosting.append("t", b"a")
        session_id = self.first(hosting, "t-0", "t-1")
        waiting = self.more(hosting, session_id, 1, "t-0", offset=1)
        partition = hosting.replicas.partition("t", 0)
        partition.log.delete_records_before(1)
        hosting.replicas.log_start_moved(partition)
        hosting.spin()
        assert not waiting.done()
        hosting.append("t", b"b", index=1)
        hosting.spin()
        assert self.told(waiting.result()) == [("t", 0), ("t", 1)]

    def test_a_session_whose_topics_are_all_unknown_waits_for_none(self, hosting: Hosting) -> None:
        session_id = self.first(hosting, "unknown-0")
        assert self.told(self.more(hosting, session_id, 1)) == [("unknown", 0)]

    def test_an_unknown_partition_does_not_end_the_wait_for_idle_ones(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        session_id = self.first(hosting, "t-0", "unknown-0")
        self.more(hosting, session_id, 1, max_wait_ms=0)
        assert isinstance(self.more(hosting, session_id, 2), asyncio.Future)

    def test_another_leader_is_news(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        session_id = self.first(hosting, "t-0")
        waiting = self.more(hosting, session_id, 1, version=10)
        hosting.change(id_, leader=2)
        hosting.spin()
        ((data,),) = ([part for topic in waiting.result().responses for part in topic.partitions],)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


class TestEviction:
    def test_two_minutes_protect_a_session(self) -> None:
        assert EVICTION_MS == 120_000  # Kafka's min.incremental.fetch.session.eviction.ms
        cache = FetchSessionCache(1, random.Random(1))
        session_id = open_session(cache, "t-0")
        ask(cache, session_id, 1, [], now_ms=5)
        assert open_session(cache, "t-0", "t-1", now_ms=EVICTION_MS) == 0
        assert open_session(cache, "t-0", "t-1", now_ms=EVICTION_MS + 1) > 0

    def test_a_session_that_has_grown_is_as_large_as_it_is_now(self) -> None:
        cache = FetchSessionCache(1, random.Random(1))
        session_id = open_session(cache, "t-0")
        ask(cache, session_id, 1, wants("t-1", "t-2"), now_ms=EVICTION_MS + 1)
        assert open_session(cache, "t-0", "t-1", now_ms=EVICTION_MS + 2) == 0
        assert open_session(cache, "t-0", "t-1", "t-2", "t-3", now_ms=EVICTION_MS + 2) > 0

    def test_without_slots_there_are_no_sessions(self) -> None:
        assert open_session(FetchSessionCache(0, random.Random(1)), "t-0") == 0

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
