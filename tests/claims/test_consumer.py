"""The consumer over confluent-kafka's: payloads, and what is wrong with them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.claims import ClaimConsumer, ClaimedMessage, ClaimProducer, PayloadError
from barnabas.claims.claim import HEADER, digest
from barnabas.embedded.broker import Broker
from tests.claims.memory_store import MemoryStore
from tests.claims.through_a_broker import PATIENCE_SECONDS, consumer_of, produced

LARGE = random.Random(1).randbytes(10 << 20)


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


def test_an_error_of_the_consumer_is_returned_as_it_is(barnabas: Broker, tmp_path: Path) -> None:
    class Broken:
        def poll(self, timeout: float) -> Any:
            raise KafkaException("no")

    with pytest.raises(KafkaException):
        ClaimConsumer(Broken(), MemoryStore()).poll(1)
