"""Commands that send each record once: their producer, the topic of their notes, and the library's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException, Producer

from barnabas.cli.librdkafka import LibraryConnection, connected, library_failure
from barnabas.cli.session import Session
from barnabas.client.admin import Admin, NewTopic


@contextmanager
def explained_library(subject: str) -> Iterator[None]:
    """Turn the library's errors into failures.

    Raises:
        Failure: the library raised an error.
    """
    try:
        yield
    except KafkaException as error:
        raise library_failure(error.args[0], subject) from None


def transactional_producer(session: Session | LibraryConnection, transactional_id: str) -> Producer:
    """Return the producer of a redrive or a replay."""
    settings = {"transactional.id": transactional_id, "partitioner": "murmur2_random"}
    producer: Producer = connected(Producer, session, (), {**settings, "message.max.bytes": 1_000_000_000})
    return producer


def create_state_topic(admin: Admin, name: str) -> None:
    """Create a topic that says what was sent, if it does not exist.

    Raises:
        KafkaError: it cannot be created.
    """
    wanted = NewTopic(name, 1, configs={"cleanup.policy": "compact"})
    admin.cluster.retry(lambda: admin.create_if_absent(wanted))
