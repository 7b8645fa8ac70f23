"""The wrappers over confluent-kafka: large values through a broker with its default limits."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.claims import ClaimConsumer, ClaimedMessage, ClaimProducer, PayloadError, StoreError, open_store
from barnabas.claims.claim import HEADER, digest
from barnabas.embedded.broker import Broker
from tests.claims.memory_store import MemoryStore

PATIENCE_SECONDS = 60
LARGE = random.Random(1).randbytes(10 << 20)


def consumer_of(broker: Broker, topic: str, store: Any = None) -> Any:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": f"readers-of-{topic}",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**settings, "enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer if store is None else ClaimConsumer(consumer, store)


def produced(broker: Broker, topic: str, store: Any, values: list[Any], **options: Any) -> None:
    broker.create_topic(topic, partitions=1)
    producer = ClaimProducer(Producer({"bootstrap.servers": broker.bootstrap_servers}), store)
    errors: list[Any] = []
    for value in values:
        producer.produce(topic, value, "key", on_delivery=lambda error, _: errors.append(error), **options)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert errors == [None] * len(values)


def test_ten_mebibytes_through_a_broker_that_takes_one(barnabas: Broker, tmp_path: Path) -> None:
    produced(barnabas, "videos", str(tmp_path), [LARGE, b"small", None, LARGE[:-1]], headers=[("h", b"x")])
    plain = consumer_of(barnabas, "videos")
    raw = [plain.poll(PATIENCE_SECONDS) for _ in range(4)]
    plain.close()
    assert [len(each.value() or b"") < 400 for each in raw] == [True] * 4
    assert raw[0].headers() == [("h", b"x"), (HEADER, b"1")]
    assert raw[1].headers() == [("h", b"x")]
    consumer = consumer_of(barnabas, "videos", str(tmp_path))
    found = consumer.consume(4, PATIENCE_SECONDS)
    assert [each.value() for each in found] == [LARGE, b"small", None, LARGE[:-1]]
    assert [each.key() for each in found] == [b"key"] * 4
    assert [each.headers() for each in found] == [[("h", b"x")]] * 4
    assert isinstance(found[0], ClaimedMessage)
    assert (len(found[0]), found[0].offset(), found[0].error()) == (len(LARGE), 0, None)
    assert found[0].claim().sha256 == digest(LARGE)
    (committed,) = consumer.commit(message=found[3], asynchronous=False)
    assert committed.offset == 4
    consumer.close()


def test_a_lost_payload_names_its_record_and_the_next_ones_are_read(barnabas: Broker) -> None:
    store = MemoryStore()
    broker_cluster = ["one" * 400_000, "two" * 400_000]
    produced(barnabas, "lost", store, broker_cluster)
    consumer = consumer_of(barnabas, "lost", store)
    first, second = (consumer.poll(PATIENCE_SECONDS) for _ in range(2))
    store.delete(first.claim().path)
    with pytest.raises(
        PayloadError, match=r"the payload of lost-0@0 is gone: memory://store/[\w-]+/lost/[0-9a-f]{64}$"
    ):
        first.value()
    assert second.value() == b"two" * 400_000
    consumer.close()


def test_an_aborted_transaction_is_not_read(barnabas: Broker) -> None:
    store = MemoryStore()
    barnabas.create_topic("aborted", partitions=1)
    settings = {"bootstrap.servers": barnabas.bootstrap_servers, "transactional.id": "large"}
    producer = ClaimProducer(Producer(settings), store, threshold=1)
    producer.init_transactions(PATIENCE_SECONDS)
    for value, end in (("no", producer.abort_transaction), ("yes", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("aborted", value)
        producer.flush(PATIENCE_SECONDS)
        end(PATIENCE_SECONDS)
    consumer = consumer_of(barnabas, "aborted", store)
    assert consumer.poll(PATIENCE_SECONDS).value() == b"yes"
    consumer.close()


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


def test_a_claim_that_leads_out_of_the_store_is_one_sentence(barnabas: Broker, tmp_path: Path) -> None:
    barnabas.create_topic("forged", partitions=1)
    producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers})
    sha = digest(b"root")
    value = f'{{"claim": 1, "path": "../../{sha}", "size": 4, "sha256": "{sha}"}}'
    producer.produce("forged", value, headers=[(HEADER, b"1")])
    producer.produce("forged", None, headers=[(HEADER, b"1")])
    producer.flush(PATIENCE_SECONDS)
    consumer = consumer_of(barnabas, "forged", str(tmp_path))
    forged, tombstone = consumer.consume(2, PATIENCE_SECONDS)
    with pytest.raises(
        PayloadError, match=r"^the claim of forged-0@0 is not valid: '\.\./\.\./\w+' is not a payload's path"
    ):
        forged.value()
    assert tombstone.value() is None
    consumer.close()


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
    (payload,) = [each for cluster in tmp_path.iterdir() for each in open_store(str(tmp_path)).list(cluster.name)]
    assert payload.size == 1_000_000


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


def test_an_error_of_the_consumer_is_returned_as_it_is(barnabas: Broker, tmp_path: Path) -> None:
    class Broken:
        def poll(self, timeout: float) -> Any:
            raise KafkaException("no")

    with pytest.raises(KafkaException):
        ClaimConsumer(Broken(), MemoryStore()).poll(1)
