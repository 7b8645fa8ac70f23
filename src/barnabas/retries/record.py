"""A record as the user's function gets it, a record that is to be produced, and a record that shall wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the source topic; in a retry too it has its place and time in the source topic.

    Attributes:
        timestamp_ms: -1 if the record has none.
        headers: without those that describe failures.
        attempt: 1 the first time, 2 in the first retry.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Output:
    """A record to produce.

    Attributes:
        partition: None leaves it to the partitioner, which is that of the Java client.
        timestamp_ms: None is the time when it is produced.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Later(Exception):
    """Raised by the function: this record shall come again at a time, and this is no attempt.

    Args:
        due_ms: when, in milliseconds since the epoch. The record comes then, or later by the policy's shortest delay at most.
    """

    def __init__(self, due_ms: int) -> None:
        super().__init__(due_ms)
        self.due_ms = due_ms
