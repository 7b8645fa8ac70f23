"""Subjects as Confluent's strategies name them."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import (
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.serialization import SerializationContext

from barnabas.schemas.errors import SchemaError
from barnabas.schemas.subject_names import subject_name


@pytest.mark.parametrize("part", ["key", "value"])
def test_names_are_those_of_confluents_client(part):
    context = SerializationContext("orders", part)
    for strategy, theirs in (
        ("TopicName", topic_subject_name_strategy),
        ("RecordName", record_subject_name_strategy),
        ("TopicRecordName", topic_record_subject_name_strategy),
    ):
        assert subject_name(strategy, "orders", part, "shop.Order") == theirs(context, "shop.Order")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("topicname", "t", "key", "r"), "strategy 'topicname' is not one of .*did you mean TopicName?"),
        (("TopicName", "t", "val", "r"), "part 'val' is not one of key, value"),
        (("TopicName", None, "key", "r"), "needs topic="),
        (("RecordName", None, "key", None), "needs a schema with a name"),
    ],
)
def test_names_that_cannot_be_made(arguments, error):
    with pytest.raises(SchemaError, match=error):
        subject_name(*arguments)
