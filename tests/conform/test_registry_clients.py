"""Clients of many languages on `barnabas registry`: each registers the schema and produces, and each decodes what all have produced.

kafka-python has no client of a registry: `fastavro` encodes, and an ordinary request registers.
"""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from kafka import KafkaConsumer, KafkaProducer

import barnabas
from barnabas.spark import decode, start
from tests.conform.card import toolchains
from tests.registry.asking import Asking
from tests.spark.session import SPARK, spark

__all__ = ["spark"]

pytestmark = [pytest.mark.conform, pytest.mark.timeout(1200)]

TOPIC = "orders"
SUBJECT = "orders-value"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
TEXT = json.dumps(SCHEMA)
JSON_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}
PARSED = fastavro.parse_schema(SCHEMA)
PATIENCE_SECONDS = 90
ORDERS = [
    {"id": 0, "note": "franz-go"},
    {"id": 1, "note": "javascript"},
    {"id": 2, "note": "kafka-python"},
    {"id": 3, "note": "confluent-kafka"},
    {"id": 4, "note": None},
]


def program(command: list[str], *words: str, kind: str = "AVRO") -> list[Any]:
    """Run a driver, and return the orders that it prints."""
    done = subprocess.run(
        [*command, *words],
        env=os.environ | {"KIND": kind},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_driver(build: Callable[[], list[str]]) -> list[str]:
    try:
        return build()
    except toolchains.Unavailable as reason:
        pytest.skip(str(reason))


def own_command(broker: barnabas.Broker, *words: str, given: str = "") -> str:
    """Run `barnabas`, with the registry."""
    command = [sys.executable, "-m", "barnabas", *words, "-r", broker.schema_registry_url]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def produce_by_kafka_python(broker: barnabas.Broker) -> None:
    schema_id = Asking(broker.schema_registry_url).register(SUBJECT, SCHEMA)

    def framed(order: Any) -> bytes:
        out = io.BytesIO(struct.pack(">bi", 0, schema_id))
        out.seek(5)
        fastavro.schemaless_writer(out, PARSED, order)
        return out.getvalue()

    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send(TOPIC, framed(ORDERS[2])).get(PATIENCE_SECONDS)
    producer.close()


def produce_by_confluent(broker: barnabas.Broker) -> None:
    serialize = AvroSerializer(SchemaRegistryClient({"url": broker.schema_registry_url}), TEXT)
    value = serialize(ORDERS[3], SerializationContext(TOPIC, MessageField.VALUE))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(TOPIC, value)
    assert producer.flush(PATIENCE_SECONDS) == 0


@pytest.fixture(scope="module")
def go() -> list[str]:
    return of_driver(toolchains.registry_go)


@pytest.fixture(scope="module")
def node() -> list[str]:
    return of_driver(lambda: toolchains.node_driver("registry_node"))


@pytest.fixture(scope="module")
def broker(go: list[str], node: list[str]) -> Iterator[barnabas.Broker]:
    """A broker whose topic has the order of each client."""
    with barnabas.Broker(registry=True) as broker:
        broker.create_topic(TOPIC)
        where = (broker.bootstrap_servers, broker.schema_registry_url, TOPIC)
        program(go, "produce", *where, TEXT, "0")
        program(node, "produce", *where, TEXT, "1")
        produce_by_kafka_python(broker)
        produce_by_confluent(broker)
        line = json.dumps(ORDERS[4]) + "\n"
        own_command(broker, "produce", TOPIC, "-s", "avro", "-b", broker.bootstrap_servers, given=line)
        yield broker


def test_all_registered_one_schema(broker: barnabas.Broker) -> None:
    found = json.loads(own_command(broker, "schemas", "list", "orders", "-o", "json"))
    assert found == [{"subject": SUBJECT, "type": "AVRO", "versions": [1], "latest_id": 1, "compatibility": "BACKWARD"}]


def test_franz_go(broker: barnabas.Broker, go: list[str]) -> None:
    where = (broker.bootstrap_servers, broker.schema_registry_url, TOPIC)
    assert program(go, "consume", *where, str(len(ORDERS))) == ORDERS


def test_javascript(broker: barnabas.Broker, node: list[str]) -> None:
    where = (broker.bootstrap_servers, broker.schema_registry_url, TOPIC)
    assert program(node, "consume", *where, str(len(ORDERS))) == ORDERS


def test_kafka_python(broker: barnabas.Broker) -> None:
    registry = Asking(broker.schema_registry_url)

    def decoded(value: bytes) -> Any:
        schema = registry.get(f"/schemas/ids/{struct.unpack_from('>bi', value)[1]}")["schema"]
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(json.loads(schema)), None)

    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_SECONDS * 1000,
    )
    assert [decoded(next(consumer).value) for _ in ORDERS] == ORDERS
    consumer.close()


def test_the_command_line(broker: barnabas.Broker) -> None:
    printed = own_command(broker, "consume", TOPIC, "-e", "-s", "avro", "-b", broker.bootstrap_servers)
    assert [json.loads(line) for line in printed.splitlines()] == ORDERS


def test_json_schemas(broker: barnabas.Broker, node: list[str]) -> None:
    topic, order = "json-orders", {"id": 7, "note": "javascript"}
    broker.create_topic(topic)
    where = (broker.bootstrap_servers, broker.schema_registry_url, topic)
    program(node, "produce", *where, json.dumps(JSON_SCHEMA), "7", kind="JSON")
    words = (topic, "-s", "json", "-b", broker.bootstrap_servers)
    own_command(broker, "produce", *words, given='{"id": 8}\n')
    assert program(node, "consume", *where, "2", kind="JSON") == [order, {"id": 8}]
    printed = own_command(broker, "consume", "-e", *words)
    assert [json.loads(line) for line in printed.splitlines()] == [order, {"id": 8}]


class TestSpark:
    pytestmark = SPARK

    def test_a_query(self, broker: barnabas.Broker, spark: Any, tmp_path: Any) -> None:
        reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap_servers)
        rows = reader.options(subscribe=TOPIC, startingOffsets="earliest").load()
        rows = decode(
            rows,
            "value",
            "avro",
            framing="confluent",
            schemas=broker.schema_registry_url,
            subject=SUBJECT,
            into="order",
        )
        found: list[Any] = []
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = start(writer.trigger(availableNow=True).foreachBatch(lambda batch, _: found.extend(batch.collect())))
        query.awaitTermination()
        assert query.exception() is None
        found.sort(key=lambda row: row.offset)
        assert [row.order.asDict() for row in found] == ORDERS
