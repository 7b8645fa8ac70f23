"""The topics that `produce` writes: each is checked before its first record, so that a mistyped one is not created.

With `--allow-auto-topic-creation` a missing topic is accepted if the brokers create topics: librdkafka would wait for it until the
timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.record_reader import Given
from barnabas.cli.session import Session
from barnabas.client.admin import Admin, TopicMetadata, result
from barnabas.client.topics import TOPIC_CREATION
from barnabas.protocol.errors import ErrorCode, KafkaError


def with_checked_topics(
    session: Session, read: Callable[[BinaryIO], Iterator[Given]], *, may_create: bool
) -> Callable[[BinaryIO], Iterator[Given]]:
    """Return a reader whose iteration raises ValueError at the first record of a topic that cannot be written.

    Args:
        may_create: accept a topic that the broker will create.
    """

    def checked(stream: BinaryIO) -> Iterator[Given]:
        known: set[str] = set()
        for record in read(stream):
            if record.topic is not None and record.topic not in known:
                _check(session, record.topic, may_create=may_create)
                known.add(record.topic)
            yield record

    return checked


def _check(session: Session, topic: str, *, may_create: bool) -> None:
    try:
        with session.admin() as admin:
            existing_topic(admin, topic, may_create=may_create)
    except Failure as failure:
        raise ValueError(failure.message) from None
    except KafkaError as error:
        is_missing = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        remedy = "; --allow-auto-topic-creation lets the broker create it" if is_missing else ""
        raise ValueError(f"{failure_of(error, f'topic {topic}').message}{remedy}") from None


def existing_topic(admin: Admin, topic: str, *, may_create: bool) -> TopicMetadata | None:
    """Return a topic that exists; None if the broker will create it.

    Raises:
        Failure: the topic does not exist, and no broker creates it.
        KafkaError: it does not exist and may not be created, or the broker does not describe it.
    """
    found = admin.describe_topics([topic])[topic]
    is_missing = isinstance(found, KafkaError) and found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not (is_missing and may_create):
        return result(found)
    if not admin.brokers_create_topics():
        raise Failure(
            f"topic {topic} does not exist, and the broker does not create topics ({TOPIC_CREATION}=false)",
            f"`barnabas topic create {topic}`",
        )
    return None
