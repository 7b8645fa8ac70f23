"""The producer over confluent-kafka's, and a kill between the store and the topic."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from barnabas.claims import ClaimProducer, StoreError, open_store
from barnabas.claims.claim import HEADER, digest
from barnabas.claims.sweep import SHORTEST_GRACE_MS, sweep
from barnabas.claims.topic_records import topic_records
from barnabas.client.admin import Admin
from barnabas.embedded.broker import Broker
from tests.claims.memory_store import MemoryStore
from tests.claims.through_a_broker import PATIENCE_SECONDS, consumer_of


class Told:
    """A producer that notes what it is given."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def produce(self, *arguments: Any, **options: Any) -> None:
        self.sent.append((*arguments, options))


def test_a_store_that_fails_sends_nothing(tmp_path: Path) -> None:
    class Full(MemoryStore):
        def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
            raise StoreError("full")

    told = Told()
    producer = ClaimProducer(told, Full(), threshold=3, cluster="c")
    with pytest.raises(StoreError, match="full"):
        producer.produce("t", "large")
    with pytest.raises(ValueError, match="the header __claim marks a claim"):
        producer.produce("t", "s", headers={HEADER: b"1"})
    with pytest.raises(ValueError, match="cannot be a part of a payload's path"):
        ClaimProducer(told, Full(), threshold=3, cluster="../c").produce("t", "large")
    producer.produce("t", "s", "k", partition=3)
    assert told.sent == [("t", "s", "k", {"partition": 3})]


def test_a_key_never_goes_to_the_store_and_options_pass() -> None:
    told, store = Told(), MemoryStore()
    ClaimProducer(told, store, threshold=3, cluster="c").produce("t", "large", "long key", partition=1, timestamp=5)
    ((topic, value, key, options),) = told.sent
    assert (topic, key, options) == ("t", "long key", {"headers": [(HEADER, b"1")], "partition": 1, "timestamp": 5})
    assert list(store.files) == [f"c/t/{digest(b'large')}"]
    assert digest(b"large").encode() in value


def test_a_kill_between_store_and_send_leaves_a_payload_and_no_record(barnabas: Broker, tmp_path: Path) -> None:
    barnabas.create_topic("killed", partitions=1)
    program = """
import os, signal, sys
from confluent_kafka import Producer
from barnabas.claims import ClaimProducer
class Deadly:
    def __init__(self, producer):
        self.list_topics = producer.list_topics
    def produce(self, *arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)
producer = ClaimProducer(Deadly(Producer({"bootstrap.servers": sys.argv[1]})), sys.argv[2])
producer.produce("killed", b"x" * 1_000_000)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, barnabas.bootstrap_servers, str(tmp_path)], timeout=PATIENCE_SECONDS
    )
    assert done.returncode == -signal.SIGKILL
    consumer = consumer_of(barnabas, "killed")
    low, high = consumer.get_watermark_offsets(TopicPartition("killed", 0))
    consumer.close()
    assert (low, high) == (0, 0)
    store, prefix = open_store(str(tmp_path)), f"{barnabas.cluster_id}/killed"
    (payload,) = store.list(prefix)
    assert payload.size == 1_000_000
    with Admin(barnabas.bootstrap_servers) as admin:
        for later_ms, deleted in ((SHORTEST_GRACE_MS, 0), (SHORTEST_GRACE_MS + 1, 1)):
            found = sweep(
                store, [prefix], lambda: topic_records(admin, ["killed"]), now_ms=payload.modified_ms + later_ms,
                grace_ms=SHORTEST_GRACE_MS, elapsed_ms=lambda: 0, without_claims=True,
            )  # fmt: skip
            assert (found.payloads, found.deleted) == (1, deleted)
    assert store.stat(payload.path) is None


def test_a_full_queue_may_be_tried_again() -> None:
    class Full(Told):
        def produce(self, *arguments: Any, **options: Any) -> None:
            if not self.sent:
                self.sent.append(arguments)
                raise BufferError("Local: Queue full")
            super().produce(*arguments, **options)

    store, told = MemoryStore(), Full()
    producer = ClaimProducer(told, store, threshold=1, cluster="c")
    with pytest.raises(BufferError):
        producer.produce("t", "large")
    producer.produce("t", "large")
    assert told.sent[0][1] == told.sent[1][1]
    assert len(store.files) == 1
