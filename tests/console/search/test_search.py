"""The records of all partitions in order, page after page, and what stops a search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

import barnabas
from barnabas.client.admin import Admin, NewTopic, TopicPartition
from barnabas.client.errors import ClientError
from barnabas.console.search.cursor import Cursor
from barnabas.console.search.query import BadQuery, Query
from barnabas.console.search.search import Limits, Outcome, Stop, run
from barnabas.console.search.verdict import verdict_of
from barnabas.decoding.decoder import Decoder
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.console.writing import create, numbered, write

PATIENT = Limits(60)
QUERY = Query("searched", order="oldest", limit=500)


@pytest.fixture(scope="module")
def admin(records_broker: barnabas.Broker) -> Iterator[Admin]:
    create(records_broker.bootstrap_servers, "searched", 2)
    write(records_broker.bootstrap_servers, "searched", numbered(300), linger_ms=0, batch_num_messages=40)
    write(records_broker.bootstrap_servers, "searched", numbered(200, 1, 1_700_000_000_500))
    write(
        records_broker.bootstrap_servers,
        "searched",
        numbered(5, 1, 1_700_001_000_000),
        transactional_id="ta",
        commit=False,
    )
    write(records_broker.bootstrap_servers, "searched", numbered(5, 1, 1_700_002_000_000), transactional_id="tc")
    with Admin(records_broker.bootstrap_servers) as admin:
        yield admin


def search(admin: Admin, query: Query, cursor: Cursor | None = None, limits: Limits = PATIENT) -> Outcome:
    return run(admin, query, Decoder(), 0, cursor, limits=limits)


def places(outcome: Outcome) -> list[tuple[int, int]]:
    return [(each.partition, each.record.offset) for each in outcome.found]


def test_records_are_merged_by_time(admin: Admin) -> None:
    oldest = search(admin, QUERY)
    assert places(oldest)[:4] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    times = [each.record.timestamp for each in oldest.found]
    assert times == sorted(times)
    newest = search(admin, replace(QUERY, order="newest"))
    assert [each.record.timestamp for each in newest.found][:3] == [
        1_700_002_004_000,
        1_700_002_003_000,
        1_700_002_002_000,
    ]
    assert verdict_of(search(admin, QUERY, oldest.cursor)).is_complete


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_pages_are_the_whole(admin: Admin, order: str) -> None:
    query = replace(QUERY, order=order, limit=37)
    cursor: Cursor | None = None
    found: list[tuple[int, int]] = []
    while True:
        outcome = search(admin, query, cursor)
        assert outcome.found_before == len(found)
        found += places(outcome)
        if outcome.cursor is None:
            break
        assert outcome.stop is Stop.LIMIT
        cursor = Cursor.of(outcome.cursor.text())
    assert len(found) == len(set(found)) == 505
    verdict = verdict_of(outcome)
    assert (verdict.is_complete, verdict.wanted, verdict.records, verdict.control) == (True, 512, 510, 2)
    assert outcome.hidden == 5


def test_transactions_on_demand(admin: Admin) -> None:
    query = replace(QUERY, isolation_level="read_uncommitted", control=True, partitions=(1,), offset="200:")
    query = replace(query, offset="200:end")
    found = search(admin, query).found
    assert [each.state.value for each in found] == ["aborted"] * 5 + ["committed"] * 7
    assert [each.batch.is_control for each in found] == [False] * 5 + [True] + [False] * 5 + [True]
    assert all(each.batch.has_producer and each.batch.is_transactional for each in found)


def test_time_and_bytes_stop_a_search_that_goes_on(admin: Admin) -> None:
    for limits, stop in ((Limits(seconds=0), Stop.TIME), (Limits(seconds=60, bytes=1), Stop.BYTES)):
        outcome = search(admin, replace(QUERY, filter="offset < 0"), limits=limits)
        assert (outcome.stop, verdict_of(outcome).is_complete) == (stop, False)
        assert outcome.cursor is not None
        rest = search(admin, replace(QUERY, filter="offset < 0"), outcome.cursor)
        assert (rest.found, verdict_of(rest).is_complete) == ([], True)


def test_a_key_is_read_from_its_partition_alone(admin: Admin) -> None:
    outcome = search(admin, replace(QUERY, key="k3", partitioner="murmur2_random"))
    assert len(outcome.spans) == 1
    assert {each.record.key for each in outcome.found} <= {b"k3"}


def test_a_topic_that_is_deleted_and_created_again(records_broker: barnabas.Broker) -> None:
    create(records_broker.bootstrap_servers, "reborn")
    write(records_broker.bootstrap_servers, "reborn", numbered(20))
    query = Query("reborn", limit=5)
    with Admin(records_broker.bootstrap_servers) as admin:
        first = search(admin, query)
        assert first.cursor is not None
        admin.delete_topics(["reborn"])
        admin.cluster.await_change(lambda: "reborn" not in {each.name for each in admin.list_topics()})
        with pytest.raises(KafkaError) as found:
            search(admin, query, first.cursor)
        assert found.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        admin.create_topics([NewTopic("reborn", 1, 1)])
        admin.cluster.await_topics(["reborn"], lambda metadata: len(metadata.topics) == 1)
        write(records_broker.bootstrap_servers, "reborn", numbered(3))
        again = search(admin, query, first.cursor)
    assert (again.is_deleted, again.found, again.cursor) == (True, [], None)
    assert "was deleted" in " ".join(verdict_of(again).sentences)


def test_records_that_are_removed_meanwhile_are_missed_aloud(records_broker: barnabas.Broker) -> None:
    create(records_broker.bootstrap_servers, "trimmed")
    write(records_broker.bootstrap_servers, "trimmed", numbered(100))
    query = Query("trimmed", limit=10)
    with Admin(records_broker.bootstrap_servers) as admin:
        first = search(admin, query)
        admin.delete_records({TopicPartition("trimmed", 0): 40})
        rest = search(admin, replace(query, limit=500), first.cursor)
    assert places(rest) == [(0, each) for each in range(89, 39, -1)]
    verdict = verdict_of(rest)
    assert (verdict.is_complete, verdict.removed, verdict.read) == (False, 40, 100)


def test_a_broker_that_is_gone_is_said(admin: Admin) -> None:
    with pytest.raises(ClientError):
        search(Admin("127.0.0.1:1", timeout_ms=500), QUERY)


def test_a_filter_that_only_a_record_shows_to_be_wrong(admin: Admin) -> None:
    with pytest.raises(BadQuery, match="not true or false"):
        search(admin, replace(QUERY, filter="value.n", value_as="json"))


def test_a_record_of_100_mb_is_found_in_time(records_broker: barnabas.Broker) -> None:
    """The broker takes batches of one megabyte by default; this one is as large as it may be, and compressed 100 to 1."""
    create(records_broker.bootstrap_servers, "large")
    write(
        records_broker.bootstrap_servers, "large", [numbered(1)[0]._replace(value=bytes(20_000_000))], message_max_bytes=50_000_000,
        compression_type="zstd",
    )  # fmt: skip
    with Admin(records_broker.bootstrap_servers) as admin:
        began_s = time.monotonic()
        outcome = search(admin, Query("large", filter="value.n == 1", value_as="json"))
        assert time.monotonic() - began_s < 10
    assert (outcome.found, sum(outcome.unjudged.values())) == ([], 1)
    assert "20.0 MB are more than the 262 kB" in " ".join(verdict_of(outcome).sentences)
