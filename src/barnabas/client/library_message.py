"""A consumed message of librdkafka as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import Message


def fields_of(
    message: Message,
) -> tuple[str, int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """Return topic, partition, offset, timestamp in milliseconds (-1 if it has none), key, value and headers."""
    kind, timestamp = message.timestamp()
    headers: Any = message.headers()
    return (
        str(message.topic()),
        int(message.partition() or 0),
        int(message.offset() or 0),
        timestamp if kind else -1,
        _bytes(message.key()),
        _bytes(message.value()),
        tuple((name, _bytes(value)) for name, value in headers) if headers else (),
    )


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
