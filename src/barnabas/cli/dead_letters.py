"""Dead-letter topics as the commands of `barnabas dlq` find and read them, and the filter for their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.cli import record_filter
from barnabas.cli.librdkafka import LibraryConnection, connected
from barnabas.cli.sending_once import explained_library
from barnabas.cli.session import Session
from barnabas.client.admin import Admin, TopicMetadata, result
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.headers import FailureHeaders
from barnabas.retries.redrive import DeadLetter, DeadLetterReader, DeadLetterTopic
from barnabas.retries.redriven import STATE_TOPIC

Chosen = Callable[[DeadLetter], bool]

_SUFFIXES = (".dlq", "-dlq", ".dlt", "-dlt")
_PREFIX = "dlq."
"""Kafka's `errors.deadletterqueue.topic.name.prefix`."""


def is_dead_letter_name(topic: str) -> bool:
    """Return whether a topic has a name as dead-letter topics have: `orders.dlq`, `orders-dlq`, `orders-dlt`, `dlq.orders`."""
    lower = topic.lower()
    return lower.endswith(_SUFFIXES) or lower.startswith(_PREFIX)


def find_topics(admin: Admin, named: Iterable[str]) -> list[DeadLetterTopic]:
    """Return the topics that are named, or every topic with a dead-letter topic's name.

    Raises:
        KafkaError: a named topic does not exist.
    """
    names = list(dict.fromkeys(named))
    if names:
        found = [result(outcome) for outcome in admin.describe_topics(names).values()]
    else:
        found = [each for each in admin.list_topics() if is_dead_letter_name(each.name)]
    return [_topic(each) for each in found]


def _topic(found: TopicMetadata) -> DeadLetterTopic:
    return DeadLetterTopic(found.name, found.topic_id.hex(), len(found.partitions))


@contextmanager
def opened(session: Session | LibraryConnection, admin: Admin) -> Iterator[DeadLetterReader]:
    """Open a reader of dead letters and always close it.

    Raises:
        Failure: a setting is not valid, or a broker rejects a request.
    """
    described = admin.describe_topics([STATE_TOPIC])[STATE_TOPIC]
    # No offset is committed, but the library requires a group id.
    consumer: Consumer = connected(Consumer, session, (), {**READER_SETTINGS, "group.id": "barnabas-dlq"})
    try:
        with explained_library("the dead letters cannot be read"):
            has_state = isinstance(described, TopicMetadata)
            yield DeadLetterReader(consumer, connected(AdminClient, session, (), {}), has_state=has_state)
    finally:
        consumer.close()


def error_text(failure: FailureHeaders) -> str | None:
    """Return a failure's error for people: its class and its text, as far as they are known."""
    return ": ".join(filter(None, (failure.error, failure.message))) or None


def error_name(failure: FailureHeaders) -> str:
    """Return the name under which a failure is counted: its class, or its text if it has none."""
    return failure.error or failure.message or "unknown"


def _is_error(each: DeadLetter, text: str) -> bool:
    return text in (error_name(each.failure), error_name(each.failure).rpartition(".")[2])


_FILTERS: dict[str, Callable[[DeadLetter, str], bool]] = {
    "error": _is_error,
    "message": lambda each, text: text in (each.failure.message or ""),
    "topic": lambda each, text: text == each.failure.topic,
    "group": lambda each, text: text == each.failure.group,
    "key": lambda each, text: text.encode() == each.record.key,
    "partition": lambda each, text: text == str(each.record.partition),
    "offset": lambda each, text: text == str(each.record.offset),
}


FILTER_HELP = f"Only dead letters with this {', '.join(list(_FILTERS)[:-1])} or {list(_FILTERS)[-1]}; repeat."


def parse_filter(texts: tuple[str, ...]) -> Chosen:
    """Return whether a dead letter passes all filters; errors are those of `record_filter.parse_filter`."""
    return record_filter.parse_filter(texts, _FILTERS)
