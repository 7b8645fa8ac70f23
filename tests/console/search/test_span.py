"""Which offsets a search wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer

import barnabas
from barnabas.client.admin import Admin, PartitionMetadata, TopicMetadata, TopicPartition
from barnabas.client.partitioner import partition_for
from barnabas.console.search.query import BadQuery, Query
from barnabas.console.search.span import PARTITIONS_MAX, PartitionSpan, chosen_partitions, spans_of_query, topic_of
from barnabas.protocol.primitives import ZERO_UUID
from tests.console.writing import PATIENCE_SECONDS, Given, create, numbered, write

OLDEST = Query("spans", order="oldest")


@pytest.fixture(scope="module")
def admin(records_broker: barnabas.Broker) -> Iterator[Admin]:
    create(records_broker.bootstrap_servers, "spans", 2)
    write(records_broker.bootstrap_servers, "spans", [*numbered(20), *numbered(10, 1)])
    with Admin(records_broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition("spans", 0): 4})
        yield admin


@pytest.mark.parametrize(
    ("offset", "wanted"),
    [
        ("", [(4, 20), (0, 10)]),
        ("start:end", [(4, 20), (0, 10)]),
        ("-3", [(17, 20), (7, 10)]),
        ("+2:-1", [(6, 19), (2, 9)]),
        ("2:7", [(2, 7), (2, 7)]),
        ("15", [(15, 20), (10, 10)]),
        ("15:18", [(15, 18), (10, 10)]),
        ("@1700000005000:@1700000008000", [(5, 8), (5, 8)]),
        ("s@1700000005000 e@1700000008000", [(5, 8), (5, 8)]),
    ],
)
def test_the_grammar_of_offsets(admin: Admin, offset: str, wanted: list[tuple[int, int]]) -> None:
    for order in ("oldest", "newest"):
        spans = spans_of_query(admin, replace(OLDEST, offset=offset, order=order), 0, [0, 1])
        assert [(each.begin, each.end) for each in spans] == wanted
        assert [each.position for each in spans] == [each.begin if order == "oldest" else each.end for each in spans]


def test_a_first_time_skips_what_is_too_early(admin: Admin) -> None:
    spans = spans_of_query(admin, replace(OLDEST, since="0001700000009000"), 0, [0, 1])
    assert [each.begin for each in spans] == [9, 9]


def test_what_an_open_transaction_holds_back(records_broker: barnabas.Broker) -> None:
    bootstrap = records_broker.bootstrap_servers
    create(bootstrap, "spans-held")
    write(bootstrap, "spans-held", numbered(3))
    held = Producer({"bootstrap.servers": bootstrap, "transactional.id": "spans"})
    held.init_transactions(PATIENCE_SECONDS)
    held.begin_transaction()
    held.produce("spans-held", b"open")
    assert held.flush(PATIENCE_SECONDS) == 0
    with Admin(bootstrap) as admin:
        (committed,) = spans_of_query(admin, Query("spans-held"), 0, [0])
        (uncommitted,) = spans_of_query(admin, Query("spans-held", isolation_level="read_uncommitted"), 0, [0])
    held.abort_transaction(PATIENCE_SECONDS)
    assert (committed.begin, committed.end, committed.held_back) == (0, 3, 1)
    assert (uncommitted.begin, uncommitted.end, uncommitted.stable_end, uncommitted.held_back) == (0, 4, 3, 0)


def test_following_begins_where_it_is_said(admin: Admin) -> None:
    spans = spans_of_query(admin, OLDEST, 0, [0, 1], {0: 18})
    assert [(each.begin, each.end) for each in spans] == [(18, 20), (0, 10)]


def test_a_partition_without_a_leader_is_unknown(admin: Admin) -> None:
    spans = spans_of_query(admin, OLDEST, 0, [0, 7])
    assert [each.is_known for each in spans] == [True, False]


def test_the_partition_of_a_key(admin: Admin) -> None:
    topic = topic_of(admin, "spans")
    for key in ("k1", "k2", "k3"):
        query = replace(OLDEST, key=key, partitioner="murmur2_random")
        assert chosen_partitions(query, topic) == [partition_for(key.encode(), 2)]
    wrong = next(each for each in (0, 1) if each != partition_for(b"k1", 2))
    with pytest.raises(BadQuery, match="is not among the chosen ones"):
        chosen_partitions(replace(OLDEST, key="k1", partitioner="murmur2", partitions=(wrong,)), topic)
    assert chosen_partitions(replace(OLDEST, key="k1"), topic) == [0, 1]


def test_what_cannot_be_chosen(admin: Admin) -> None:
    with pytest.raises(BadQuery, match="has no partition 2: it has 2"):
        chosen_partitions(replace(OLDEST, partitions=(0, 2)), topic_of(admin, "spans"))
    many = [PartitionMetadata(each, 0, 0, [0], [0], []) for each in range(PARTITIONS_MAX + 1)]
    with pytest.raises(BadQuery, match="choose some"):
        chosen_partitions(OLDEST, TopicMetadata("spans", ZERO_UUID, False, many))


def test_how_much_is_accounted_for() -> None:
    span = PartitionSpan(0, 10, 20, 20, 0, 13)
    assert (span.wanted, span.passed(newest_first=False), span.passed(newest_first=True)) == (10, 3, 7)


def test_a_record_of_a_topic_that_is_empty(records_broker: barnabas.Broker) -> None:
    create(records_broker.bootstrap_servers, "spans-empty")
    with Admin(records_broker.bootstrap_servers) as admin:
        for offset in ("", "-5", "@1700000005000", "3:9"):
            (span,) = spans_of_query(admin, Query("spans-empty", offset=offset), 0, [0])
            assert (span.begin, span.end) == (0, 0)
    write(records_broker.bootstrap_servers, "spans-empty", [Given(b"x")])
