"""`consume -f decoded`: the records of internal topics as JSON, with the fields of Kafka's record types (`decoding.internal_topics`).

A record that this release does not know, and every record of another topic, is printed as `json` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message

from barnabas.cli.record_format import Shown, json_line, json_object
from barnabas.client.library_message import fields_of
from barnabas.decoding.internal_topics import INTERNAL_TOPICS, key_of, value_of
from barnabas.spark.decoding.bad_value import BadValue


def are_decoded(topics: Sequence[str]) -> bool:
    """Return whether all topics have records with fields."""
    return INTERNAL_TOPICS.issuperset(topics)


def decoded_lines(messages: Sequence[Message]) -> bytes:
    """Return messages as lines of JSON, with fields where the topic's records are known."""
    return b"".join(json_line(_object(Shown(*fields_of(message)))) for message in messages)


def _object(shown: Shown) -> dict[str, object]:
    if shown.topic not in INTERNAL_TOPICS or shown.key is None:
        return json_object(shown)
    try:
        key = key_of(shown.topic, shown.key)
        value = None if shown.value is None else value_of(shown.topic, shown.key, shown.value)
    except BadValue:
        return json_object(shown)
    whole = json_object(shown._replace(key=None, value=None))
    return {**whole, "key": key, "value": value}
