"""The subject of a topic's keys or values, as Confluent's strategies name it.

| strategy | subject | the versions of a subject are |
|---|---|---|
| `TopicName` | `orders-value`, `orders-key` | what one topic has |
| `RecordName` | `shop.Order` | one record type, in any topic |
| `TopicRecordName` | `orders-shop.Order` | one record type, in one topic |

The record's name is the full name in Avro and Protobuf, and the `title` in JSON Schema.
"""

from __future__ import annotations

from barnabas.schemas.errors import SchemaError
from barnabas.words.nearest import did_you_mean

__all__ = ["STRATEGIES", "subject_name"]

STRATEGIES = ("TopicName", "RecordName", "TopicRecordName")
_PARTS = ("key", "value")


def subject_name(strategy: str, topic: str | None, part: str, record: str | None) -> str:
    """Return the name of a subject.

    Args:
        strategy: one of STRATEGIES.
        topic: the topic; `RecordName` needs none.
        part: key or value.
        record: the name of the record; None if the schema has none.

    Raises:
        SchemaError: the strategy or the part is unknown, or the strategy needs a name that is missing.
    """
    if strategy not in STRATEGIES:
        raise SchemaError(
            f"strategy '{strategy}' is not one of {', '.join(STRATEGIES)}{did_you_mean(strategy, STRATEGIES)}"
        )
    if part not in _PARTS:
        raise SchemaError(f"part '{part}' is not one of {', '.join(_PARTS)}")
    if topic is None and strategy != "RecordName":
        raise SchemaError(f"the strategy {strategy} needs topic=, or give subject=")
    if strategy == "TopicName":
        return f"{topic}-{part}"
    if record is None:
        raise SchemaError(f"the strategy {strategy} needs a schema with a name, or give subject=")
    return record if strategy == "RecordName" else f"{topic}-{record}"
