"""Fetches that wait for enough bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.replication.fetch_reader import FetchParams, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting
from tests.replication.test_fetch_reader import append_transaction, end_transaction
from tests.short_turns import set_turn


def fetch(
    hosting: Hosting, offset: int = 0, *topics: str, min_bytes: int = 1, wait_ms: int = 500, version: int = 17
) -> Any:
    """A Fetch of one partition of each topic; the answer is how many bytes were read, and the error codes."""
    params = FetchParams(version, -1, wait_ms, min_bytes, 1 << 20, isolation_level=0)
    wanted = [FetchPartition(topic, ZERO_UUID, 0, offset, 1 << 20) for topic in topics or ("t",)]
    return step(answered(hosting, params, wanted), hosting.loop)


async def answered(hosting: Hosting, params: FetchParams, wanted: list[FetchPartition]) -> tuple[int, list[int]]:
    return answer(await hosting.replicas.fetches.fetch(params, wanted))


def answer(read: Reading) -> tuple[int, list[int]]:
    return read.bytes_read, [data.error_code for _, data in read.results]


def append(hosting: Hosting, topic: str = "t") -> None:
    hosting.append(topic, b"x" * 100)


def test_enough_is_answered_at_once(hosting: Hosting) -> None:
    hosting.create_topic("t")
    append(hosting)
    read, codes = fetch(hosting)
    assert (read > 0, codes) == (True, [0])
    assert fetch(hosting, min_bytes=read) == (read, [0])
    assert isinstance(fetch(hosting, min_bytes=read + 1), asyncio.Future)


def test_who_does_not_want_to_wait_is_answered_at_once(hosting: Hosting) -> None:
    hosting.create_topic("t")
    assert fetch(hosting, wait_ms=0) == (0, [0])
    assert isinstance(fetch(hosting, wait_ms=1), asyncio.Future)


def test_an_error_is_answered_at_once(hosting: Hosting) -> None:
    hosting.create_topic("t")
    assert fetch(hosting, 0, "t", "unknown") is not None
    assert fetch(hosting, 5) == (0, [ErrorCode.OFFSET_OUT_OF_RANGE])


def test_an_append_ends_the_wait_in_the_next_turn(hosting: Hosting) -> None:
    hosting.create_topic("t")
    hosting.create_topic("other")
    waiting = fetch(hosting, 0, "t", "other")
    append(hosting, "other")
    assert not waiting.done()
    hosting.spin()
    read, codes = waiting.result()
    assert (read > 0, codes) == (True, [0, 0])
    assert hosting.replicas.delayed_fetches.watched == 0


def test_an_append_ends_the_wait_of_a_fetch_that_takes_many_turns(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turn(monkeypatch, 1)
    hosting.create_topic("t")
    waiting = fetch(hosting, 0, "unknown", "t")
    hosting.spin()
    assert not waiting.done()
    append(hosting)
    hosting.spin()
    read, codes = waiting.result()
    assert (read > 0, codes) == (True, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0])
    assert hosting.replicas.delayed_fetches.watched == 0


def test_appends_add_up_to_the_wanted_bytes(hosting: Hosting) -> None:
    hosting.create_topic("t")
    append(hosting)
    size, _ = fetch(hosting)
    waiting = fetch(hosting, min_bytes=3 * size)
    reads = hosting.replicas.topics["t"].traffic.fetches
    append(hosting)
    hosting.spin()
    assert not waiting.done()
    assert hosting.replicas.topics["t"].traffic.fetches == reads, "nothing is read before there is enough"
    append(hosting)
    hosting.spin()
    assert waiting.result() == (3 * size, [0])


def test_appends_elsewhere_do_not_count(hosting: Hosting) -> None:
    hosting.create_topic("t")
    hosting.create_topic("other")
    waiting = fetch(hosting)
    append(hosting, "other")
    hosting.spin()
    assert not waiting.done()


def test_records_that_are_not_committed_do_not_count(hosting: Hosting) -> None:
    hosting.create_topic("t", replicas=(NODE, 2))
    waiting = fetch(hosting, min_bytes=100)
    append(hosting)
    hosting.spin()
    assert not waiting.done()
    partition = hosting.replicas.partition("t", 0)
    assert partition.update_follower(2, 1)
    hosting.replicas.high_watermark_moved(partition)
    hosting.spin()
    assert waiting.result()[0] > 0


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction_shows_all_of_it(hosting: Hosting, commit: bool) -> None:
    hosting.create_topic("t")
    append_transaction(hosting, commit=None)
    append(hosting)
    params = FetchParams(17, -1, 500, 150, 1 << 20, isolation_level=1)
    waiting: Any = step(answered(hosting, params, [FetchPartition("t", ZERO_UUID, 0, 0, 1 << 20)]), hosting.loop)
    hosting.spin()
    assert not waiting.done()
    end_transaction(hosting, commit=commit)
    hosting.spin()
    assert waiting.result()[0] > 150


def test_the_time_runs_out_and_what_is_there_is_the_answer(hosting: Hosting) -> None:
    hosting.create_topic("t")
    append(hosting)
    size, _ = fetch(hosting)
    waiting = fetch(hosting, min_bytes=10 * size)
    hosting.advance(499)
    assert not waiting.done()
    hosting.advance(1)
    assert waiting.result() == (size, [0])


def test_a_deleted_partition_ends_the_wait(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t")
    waiting = fetch(hosting)
    hosting.delete_topic(id_)
    hosting.spin()
    assert waiting.result() == (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])


def test_a_leader_that_steps_down_ends_the_wait(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    waiting = fetch(hosting, version=10)
    hosting.change(id_, leader=2)
    hosting.spin()
    assert waiting.result() == (0, [ErrorCode.NOT_LEADER_OR_FOLLOWER])


def test_a_failure_reaches_the_answer(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    hosting.create_topic("t")
    waiting = fetch(hosting)

    def read(self: Reading, wanted: FetchPartition) -> bool:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Reading, "read", read)
    append(hosting)
    hosting.spin()
    assert str(waiting.exception()) == "a bug"
    assert hosting.replicas.delayed_fetches.watched == 0
