"""The records that a sweep reads, and sweeps beside a producer that never stops."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.claims import ClaimProducer
from barnabas.claims.audit import audit
from barnabas.claims.folder_store import FolderStore
from barnabas.claims.payloads import store_payload
from barnabas.claims.sweep import SHORTEST_GRACE_MS, sweep
from barnabas.claims.topic_records import topic_records, with_uncertain_ends
from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.partition_records import records_between
from barnabas.embedded.broker import Broker

PATIENCE_SECONDS = 60


def send(broker: Broker, topic: str, values: list[bytes], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.flush(PATIENCE_SECONDS)


def test_records_of_open_and_aborted_transactions_are_read(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=2)
    send(barnabas, "orders", [b"a"])
    producers = []
    for value in (b"aborted", b"open"):
        producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers, "transactional.id": value.decode()})
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        producer.produce("orders", value, partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0
        if value == b"aborted":
            producer.abort_transaction(PATIENCE_SECONDS)
        producers.append(producer)
    with Admin(barnabas.bootstrap_servers) as admin:
        found = list(topic_records(admin, ["orders"]))
    producers[-1].abort_transaction(PATIENCE_SECONDS)
    assert [value for *_, value in found] == [b"a", b"aborted", b"open"]
    assert [each[:3] for each in found] == [("orders", 0, 0), ("orders", 0, 1), ("orders", 0, 3)]


def test_retention_that_deletes_the_beginning_meanwhile(barnabas: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    barnabas.create_topic("orders", partitions=1)
    send(barnabas, "orders", [b"a", b"b", b"c"])
    with Admin(barnabas.bootstrap_servers) as admin:
        where = TopicPartition("orders", 0)

        def late(cluster: Any, partition: TopicPartition, begin: int, end: int) -> Any:
            if begin == 0:
                admin.delete_records({where: 2})
            return records_between(cluster, partition, begin, end)

        monkeypatch.setattr("barnabas.claims.topic_records.records_between", late)
        assert [value for *_, value in topic_records(admin, ["orders"])] == [b"c"]


class Described:
    """The answers of a cluster whose second replica is out of sync."""

    def __init__(self, min_isr: str) -> None:
        self._min_isr = min_isr

    def describe_topics(self, names: list[str]) -> Any:
        from barnabas.client.admin import PartitionMetadata, TopicMetadata

        partitions = [PartitionMetadata(0, 1, 0, [1, 2], [1], []), PartitionMetadata(1, 1, 0, [1, 2], [1, 2], [])]
        return {name: TopicMetadata(name, b"", False, partitions) for name in names}  # type: ignore[arg-type]

    def describe_configs(self, resources: list[Any], names: list[str]) -> Any:
        class Entry:
            name = names[0]
            value = self._min_isr

        return {each: [Entry] for each in resources}


@pytest.mark.parametrize(("min_isr", "wanted"), [("1", []), ("2", [TopicPartition("orders", 0)])])
def test_partitions_whose_end_no_reader_sees(min_isr: str, wanted: list[TopicPartition]) -> None:
    assert with_uncertain_ends(Described(min_isr), ["orders"]) == wanted  # type: ignore[arg-type]


@pytest.mark.slow
def test_sweeps_beside_a_producer_of_payloads_that_were_orphans(barnabas: Broker, tmp_path: Path) -> None:
    """Each content was stored long ago and never sent; a producer sends it while sweeps delete it."""
    barnabas.create_topic("videos", partitions=1)
    store, prefix = FolderStore(tmp_path), f"{barnabas.cluster_id}/videos"
    contents = [b"%d" % number * 100 for number in range(60)]
    for content in contents:
        path = tmp_path / store_payload(store, prefix, content).path
        os.utime(path, (1, 1))
    producer = ClaimProducer(
        Producer({"bootstrap.servers": barnabas.bootstrap_servers, "linger.ms": 0}), store, threshold=1
    )
    ended = threading.Event()

    def produce() -> None:
        for content in reversed(contents):
            producer.produce("videos", content)
            producer.poll(0)
        producer.flush(PATIENCE_SECONDS)
        ended.set()

    thread = threading.Thread(target=produce)
    thread.start()
    deleted: Counter[str] = Counter()
    with Admin(barnabas.bootstrap_servers) as admin:
        while True:
            was_last = ended.is_set()
            found = sweep(
                store, [prefix], lambda: topic_records(admin, ["videos"]), now_ms=time.time_ns() // 1_000_000,
                grace_ms=SHORTEST_GRACE_MS, elapsed_ms=lambda: 0, without_claims=True,
            )  # fmt: skip
            deleted.update(deleted=found.deleted, spared=found.spared)
            if was_last:
                break
        thread.join(PATIENCE_SECONDS)
        whole = audit(store, topic_records(admin, ["videos"]))
    assert (whole.claims, whole.wrong) == (len(contents), 0)
    assert deleted["deleted"] > 0
