"""The cache of fetch sessions (KIP-227), after Kafka's FetchSessionTest: epochs, the partitions of a response, evictions."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.fetch_session_cache import (
    EVICTION_MS,
    SESSION_ID_MAX,
    FetchSessionCache,
    next_epoch,
)
from barnabas.steps import step
from tests.replication.asking import answer, ask, data_of, open_session, read, respond, wants
from tests.replication.hosting import Hosting, topic_id
from tests.short_turns import set_turn


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
