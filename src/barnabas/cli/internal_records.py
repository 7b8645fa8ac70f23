"""`consume -f decoded`: the records of internal topics as JSON, with the fields of Kafka's record types (`decoding.internal_topics`)."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message

from barnabas.cli.decoded_record import decoded_object
from barnabas.cli.record_format import Shown, json_line
from barnabas.client.library_message import fields_of
from barnabas.decoding.internal_topics import INTERNAL_TOPICS


def are_decoded(topics: Sequence[str]) -> bool:
    """Return whether all topics have records with fields."""
    return INTERNAL_TOPICS.issuperset(topics)


def decoded_lines(messages: Sequence[Message]) -> bytes:
    """Return messages as lines of JSON, with fields where the topic's records are known."""
    return b"".join(json_line(decoded_object(Shown(*fields_of(message)))) for message in messages)
