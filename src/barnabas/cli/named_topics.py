"""The topics that records name themselves: `produce` checks each before its first record, so that a mistyped one is not created."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, TypeVar

from barnabas.cli.session import Session
from barnabas.printable import printable
from barnabas.protocol.errors import ErrorCode, KafkaError


class _Record(Protocol):
    @property
    def topic(self) -> str | None: ...


R = TypeVar("R", bound=_Record)


def with_existing_topics(
    session: Session, read: Callable[[BinaryIO], Iterator[R]]
) -> Callable[[BinaryIO], Iterator[R]]:
    """Return a reader whose iteration raises ValueError at the first record of a topic that does not exist."""

    def checked(stream: BinaryIO) -> Iterator[R]:
        existing: set[str] = set()
        for record in read(stream):
            if record.topic is not None and record.topic not in existing:
                _check(session, record.topic)
                existing.add(record.topic)
            yield record

    return checked


def _check(session: Session, topic: str) -> None:
    with session.admin() as admin:
        found = admin.describe_topics([topic])[topic]
    if isinstance(found, KafkaError):
        if found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ValueError(
                f"topic {printable(topic)} does not exist; --allow-auto-topic-creation lets the broker create it"
            )
        raise ValueError(f"topic {printable(topic)}: {found.message}")
