"""A record that somebody types."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from starlette.testclient import TestClient

import barnabas
from tests.console.conftest import PATIENCE_SECONDS
from tests.console.forms import Reply, carry_out, change, lines, preview
from tests.console.reading import html


def read(broker: barnabas.Broker, done: Reply) -> Message:
    (row,) = done.rows
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
    try:
        consumer.assign([TopicPartition(row["topic"], row["partition"], row["offset"])])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        assert message.error() is None
        return message
    finally:
        consumer.close()


def test_a_record_with_everything(changed: barnabas.Broker, writer: TestClient, audit: Path) -> None:
    change(writer, "topic-create", name="typed", partitions="3")
    fields = {
        "topic": "typed",
        "key": "clé",
        "value": "first\nsecond",
        "headers": "source=shop\nempty",
        "partition": "2",
        "timestamp": "2026-11-21T10:00:00Z",
    }
    shown = preview(writer, "record-produce", **fields)
    assert shown.rows[0]["status"] == "would be produced"
    assert (shown.rows[0]["key"], "offset" in shown.rows[0]) == ("clé", False)
    for page, query in (("topic", {"name": "typed"}), ("messages", {"topic": "typed"})):
        assert 'href="/clusters/local/change/record-produce?topic=typed"' in html(writer, page, **query)
    message = read(changed, carry_out(writer, shown))
    assert (message.key(), message.value()) == ("clé".encode(), b"first\nsecond")
    assert message.headers() == [("source", b"shop"), ("empty", None)]
    assert message.timestamp()[1] == 1_795_255_200_000
    logged = audit.read_text()
    assert "second" not in logged
    assert "source=shop" not in logged
    assert lines(audit)[-1]["rows"] == [
        {"topic": "typed", "partition": 2, "offset": 0, "timestamp": 1_795_255_200_000, "status": "produced"}
    ]


def test_bytes_and_null(changed: barnabas.Broker, writer: TestClient) -> None:
    change(writer, "topic-create", name="bytes")
    fields = {"topic": "bytes", "key": "00ff", "key_as": "hex", "value": "AAH/", "value_as": "base64"}
    message = read(changed, change(writer, "record-produce", **fields))
    assert (message.key(), message.value()) == (b"\x00\xff", b"\x00\x01\xff")
    message = read(changed, change(writer, "record-produce", topic="bytes", key="k", tombstone="1"))
    assert (message.key(), message.value()) == (b"k", None)
    message = read(changed, change(writer, "record-produce", topic="bytes"))
    assert (message.key(), message.value()) == (None, b"")


def test_a_key_is_where_java_puts_it(changed: barnabas.Broker, writer: TestClient) -> None:
    change(writer, "topic-create", name="keyed", partitions="10")
    shown = preview(writer, "record-produce", topic="keyed", key="customer-42")
    assert shown.data["send"]["partition"] == str(shown.rows[0]["partition"])
    placed: list[int | None] = []
    producer = Producer({"bootstrap.servers": changed.bootstrap_servers, "partitioner": "murmur2_random"})
    producer.produce("keyed", "x", "customer-42", on_delivery=lambda error, message: placed.append(message.partition()))
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert placed == [shown.rows[0]["partition"]]


@pytest.fixture(scope="module")
def typed_badly(writer: TestClient) -> str:
    change(writer, "topic-create", name="typed-badly")
    return "typed-badly"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"value": "xyz", "value_as": "hex"}, "The value is not hex."),
        ({"key": "?", "key_as": "base64"}, "The key is not base64."),
        ({"value": "x", "tombstone": "1"}, "A record whose value is null has no value"),
        ({"headers": "=x"}, "has no name"),
        ({"partition": "9"}, "Topic typed-badly has no partition 9"),
        ({"partition": "x"}, "The partition is not a whole number: x."),
        ({"timestamp": "noon"}, "noon"),
        ({"partitioner": "<b>"}, "The partitioner must be one of"),
    ],
)
def test_what_cannot_be_written(writer: TestClient, typed_badly: str, fields: dict[str, str], sentence: str) -> None:
    refused = preview(writer, "record-produce", topic=typed_badly, **fields)
    assert refused.status in (400, 409)
    assert sentence in refused.error


def test_a_record_that_the_topic_rejects(writer: TestClient, audit: Path) -> None:
    change(writer, "topic-create", name="compacted", configs="cleanup.policy=compact")
    refused = change(writer, "record-produce", topic="compacted", value="without a key")
    assert (refused.status, "key" in refused.error) == (409, True)
    assert lines(audit)[-1]["result"] == "failed"
    change(writer, "topic-delete", name="compacted")
    assert "Topic compacted does not exist" in preview(writer, "record-produce", topic="compacted", value="x").error
