"""The headers of a record in a retry topic or a dead-letter topic: where it came from, and why it failed.

The names are those of Kafka's dead letters for share groups (KIP-1191), and more of their kind. All values are text.

| header                                | value                                                            |
|---------------------------------------|------------------------------------------------------------------|
| `__dlq.errors.topic`                  | the source topic                                                 |
| `__dlq.errors.partition`              | its partition                                                    |
| `__dlq.errors.offset`                 | the record's offset there                                        |
| `__dlq.errors.timestamp`              | the record's timestamp there, epoch milliseconds                 |
| `__dlq.errors.group`                  | the group whose member failed                                    |
| `__dlq.errors.delivery.count`         | how often the record was tried                                   |
| `__dlq.errors.exception.class.name`   | the class of the last error, such as `ValueError`                |
| `__dlq.errors.message`                | the text of the last error                                       |
| `__dlq.errors.first.failure`          | when the record failed first, epoch milliseconds                 |
| `__dlq.errors.last.failure`           | when it failed last                                              |
| `__dlq.errors.due`                    | only in retry topics: when to try again                          |

Kafka Connect (`__connect.errors.…`) and Spring (`kafka_dlt-…`) write other names, and Spring writes numbers as big-endian bytes;
`read_failure` reads these too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from barnabas.retries.record import Headers

PREFIX = "__dlq.errors."
REDRIVEN_FROM = "__dlq.redriven.from"
"""On a redriven record: the dead letter's topic, partition and offset, `orders.dlq-0@17`."""
_PREFIXES = (PREFIX, "__connect.errors.", "kafka_dlt-")
_LONGEST_TEXT = 1000
"""An error's text is cut after this many characters, so that it does not make the record too large."""


@dataclass(frozen=True, slots=True)
class FailureHeaders:
    """The values in the headers of a failed record; None where a header is missing."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    group: str | None = None
    attempts: int | None = None
    error: str | None = None
    message: str | None = None
    first_failure_ms: int | None = None
    last_failure_ms: int | None = None
    due_ms: int | None = None


_NAMES = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp_ms": "timestamp",
    "group": "group",
    "attempts": "delivery.count",
    "error": "exception.class.name",
    "message": "message",
    "first_failure_ms": "first.failure",
    "last_failure_ms": "last.failure",
    "due_ms": "due",
}
_NUMBERS = {"partition", "offset", "timestamp_ms", "attempts", "first_failure_ms", "last_failure_ms", "due_ms"}


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _number(value: bytes) -> int | None:
    text = _text(value)
    return int(text) if text.removeprefix("-").isdecimal() else None


def _big_endian(value: bytes) -> int | None:
    return int.from_bytes(value, "big", signed=True) if len(value) in (4, 8) else None


_Reader = Callable[[bytes], str | int | None]
_READERS: dict[str, tuple[str, _Reader]] = {
    # Where several programs wrote, the last line of this table that is there counts.
    "kafka_dlt-original-topic": ("topic", _text),
    "kafka_dlt-original-partition": ("partition", _big_endian),
    "kafka_dlt-original-offset": ("offset", _big_endian),
    "kafka_dlt-original-timestamp": ("timestamp_ms", _big_endian),
    "kafka_dlt-original-consumer-group": ("group", _text),
    "kafka_dlt-exception-fqcn": ("error", _text),
    "kafka_dlt-exception-cause-fqcn": ("error", _text),
    "kafka_dlt-exception-message": ("message", _text),
    "__connect.errors.topic": ("topic", _text),
    "__connect.errors.partition": ("partition", _number),
    "__connect.errors.offset": ("offset", _number),
    "__connect.errors.connector.name": ("group", _text),
    "__connect.errors.exception.class.name": ("error", _text),
    "__connect.errors.exception.message": ("message", _text),
    **{PREFIX + name: (field, _number if field in _NUMBERS else _text) for field, name in _NAMES.items()},
}


def read_failure(headers: Iterable[tuple[str, bytes | None]]) -> FailureHeaders | None:
    """Return what the headers say of a failure, or None if they say nothing."""
    given = {name: value for name, value in headers if value is not None}
    found: dict[str, str | int | None] = {}
    for name, (field, read) in _READERS.items():
        if name in given:
            found[field] = read(given[name])
    return FailureHeaders(**found) if found else None  # type: ignore[arg-type]


def write_failure(failure: FailureHeaders) -> Headers:
    """Return the headers of a failed record."""
    named = ((PREFIX + _NAMES[each.name], getattr(failure, each.name)) for each in fields(failure))
    return tuple(
        (name, str(value)[:_LONGEST_TEXT].encode(errors="replace")) for name, value in named if value is not None
    )


def without_failure(headers: Headers) -> Headers:
    """Return a record's own headers."""
    return tuple(each for each in headers if not each[0].startswith(_PREFIXES))
