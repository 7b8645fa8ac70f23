"""When a query was last seen at work: by its records, its transactions and its rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.partition_records import append_batch
from barnabas.client.producer import EncodedRecords, Producer
from barnabas.client.transactions import TransactionDescription
from barnabas.records.builder import build_batch, encode_record
from barnabas.spark.sink import signs_of_life
from barnabas.spark.sink.decision_scan import claim_key, done_key
from barnabas.spark.sink.decision_topic import PARTITION, create_decision_topic
from barnabas.spark.sink.signs_of_life import last_signs

pytestmark = pytest.mark.slow

NOW_MS = 1_795_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        running.create_topic("rows")
        yield running


@pytest.fixture
def cluster(broker: barnabas.Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers) as found:
        yield found


def open_transaction(
    start_ms: int | None, producer_id: int = 4711, partitions: tuple[TopicPartition, ...] = ()
) -> TransactionDescription:
    return TransactionDescription("id", "Ongoing", producer_id, 0, 60_000, start_ms, [*partitions], 0)


def test_without_a_topic_of_decisions(cluster: Cluster) -> None:
    assert last_signs(cluster, {}, NOW_MS) == {}
    mine = [open_transaction(5_000), open_transaction(7_000), open_transaction(None)]
    assert last_signs(cluster, {"young/q": mine}, NOW_MS) == {"young/q": 7_000}


@pytest.mark.parametrize("look_back", [(100, 5_000), (1, 2)])
def test_its_records(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, look_back: tuple[int, int]) -> None:
    create_decision_topic(cluster, 10_000)
    keys = [b"decided/q", claim_key("claimed/q"), done_key("done/q"), b"decided/q/other", b"nobody's"]
    for number, key in enumerate(keys):
        append_batch(cluster, PARTITION, build_batch([(10_000 + number, key, b"", ())]))
    monkeypatch.setattr(signs_of_life, "LOOK_BACK", look_back)
    names = ("decided/q", "claimed/q", "done/q", "other/q")
    found = last_signs(cluster, {name: [open_transaction(5_000)] for name in names}, NOW_MS)
    assert found == {"decided/q": 10_000, "claimed/q": 10_001, "done/q": 10_002, "other/q": 5_000}


@pytest.mark.parametrize(("timestamp", "seen_ms"), [(12_000, 12_000), (NOW_MS + 3_600_000, 5_000)])
def test_its_newest_rows(cluster: Cluster, timestamp: int, seen_ms: int) -> None:
    """A row may lie in the future: its time says nothing."""
    rows = TopicPartition("rows", 0)
    producer = Producer(cluster, transactional_id=f"rows/q/0123456789ab/{timestamp}")
    producer.begin()
    producer.send(rows, EncodedRecords(encode_record(0, 0, None, b"row"), 1, timestamp, timestamp))
    producer.flush()
    mine = open_transaction(5_000, producer.transaction.producer_id, (rows,))
    assert last_signs(cluster, {"rows/q": [mine]}, NOW_MS) == {"rows/q": seen_ms}
    producer.abort()
