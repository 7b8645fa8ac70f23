"""Checks the columns of a DataFrame that is written, with the sentences of Spark's own Kafka sink.

Source: org.apache.spark.sql.kafka010.KafkaWriter.validateQuery.
"""

from __future__ import annotations

from collections.abc import Mapping

_TEXT = ("string", "binary")
_HEADERS = ("array<struct<key:string,value:binary>>",)
_ACCEPTED = {
    "value": _TEXT,
    "key": _TEXT,
    "headers": _HEADERS,
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp", "timestamp_ntz"),
}


def check_schema(columns: Mapping[str, str], topic: str | None) -> None:
    """Check the columns that the sink writes.

    Args:
        columns: type by name, as `simpleString` writes types.
        topic: the option.

    Raises:
        ValueError: a column is missing or has another type; the message is for the user.
    """
    found = {name.lower(): kind for name, kind in columns.items()}
    if topic is None and "topic" not in found:
        raise ValueError(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in found:
        raise ValueError("Required attribute 'value' not found.")
    for name, accepted in _ACCEPTED.items():
        kind = found.get(name)
        if (
            kind is None
            or kind == "void"
            or kind in accepted
            or (kind.startswith(("varchar(", "char(")) and "string" in accepted)
        ):
            continue
        shown = " or ".join(accepted[:1] if name == "headers" else accepted)
        raise ValueError(f"{name} attribute type must be {shown}, not {kind}. Cast the column")
