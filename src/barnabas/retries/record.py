"""A record as the user's function gets it, and a record that is to be produced."""

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
