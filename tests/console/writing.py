"""Writes records for tests of the console."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from confluent_kafka import Producer

from barnabas.client.admin import Admin, NewTopic

PATIENCE_SECONDS = 60


class Given(NamedTuple):
    """A record to write."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int = 1_700_000_000_000
    headers: Sequence[tuple[str, bytes | None]] = ()


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    with Admin(bootstrap) as admin:
        assert list(admin.create_topics([NewTopic(topic, partitions, 1)])) == [topic]
        admin.cluster.await_topics([topic], lambda metadata: len(metadata.topics) == 1)


def write(bootstrap: str, topic: str, records: Iterable[Given], **settings: object) -> None:
    """Append records, each in its place; `transactional_id` and `commit` put them into a transaction."""
    commit = settings.pop("commit", True)
    transactional_id = settings.pop("transactional_id", None)
    found = {"bootstrap.servers": bootstrap, **{name.replace("_", "."): value for name, value in settings.items()}}
    if transactional_id is not None:
        found["transactional.id"] = transactional_id
    producer = Producer(found)
    if transactional_id is not None:
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
    for each in records:
        producer.produce(
            topic,
            each.value,
            key=each.key,
            partition=each.partition,
            timestamp=each.timestamp,
            headers=list(each.headers),
        )
    assert producer.flush(PATIENCE_SECONDS) == 0
    if transactional_id is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_SECONDS)


def numbered(count: int, partition: int = 0, start_ms: int = 1_700_000_000_000) -> list[Given]:
    """Return records with JSON values, one a second."""
    return [Given(b'{"n": %d}' % each, b"k%d" % (each % 5), partition, start_ms + each * 1000) for each in range(count)]
