"""Confluent's serializers for Python, with their own client of the registry; records go through the broker."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.schema_registry_client import ConfigCompatibilityLevel, Schema, ServerConfig
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

import barnabas

PATIENCE_SECONDS = 60
AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}'
JSON = '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'


@pytest.fixture(scope="module")
def client(broker: barnabas.Broker) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": broker.schema_registry_url})


def through(broker: barnabas.Broker, topic: str, value: bytes) -> bytes:
    """Send a value through the broker."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value)
    assert producer.flush(PATIENCE_SECONDS) == 0
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while (message := consumer.poll(PATIENCE_SECONDS)) is None or message.error():
        pass
    consumer.close()
    return bytes(message.value())


def compiled_order() -> Any:
    """Return the class of a message, as a compiler makes it."""
    file = FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    field = file.message_type.add(name="Order").field.add(name="id", number=1)
    field.type, field.label = field.TYPE_INT64, field.LABEL_OPTIONAL
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_a_record_of_each_type(broker: barnabas.Broker, client: SchemaRegistryClient, kind: str) -> None:
    topic = f"confluent-{kind}"
    context = SerializationContext(topic, MessageField.VALUE)
    serialize: Any
    deserialize: Any
    order: Any = {"id": 7, "note": None} if kind == "avro" else {"id": 7}
    if kind == "avro":
        serialize, deserialize = AvroSerializer(client, AVRO), AvroDeserializer(client)
    elif kind == "json":
        serialize, deserialize = JSONSerializer(JSON, client), JSONDeserializer(JSON, schema_registry_client=client)
    else:
        message_class = compiled_order()
        order = message_class(id=7)
        serialize = ProtobufSerializer(message_class, client)
        deserialize = ProtobufDeserializer(message_class, {}, client)
    written = serialize(order, context)
    assert deserialize(through(broker, topic, written), context) == order
    found = client.get_latest_version(f"{topic}-value")
    assert int.from_bytes(written[1:5]) == found.schema_id


def test_the_clients_calls(client: SchemaRegistryClient) -> None:
    subject = "confluent/calls"
    first = Schema(AVRO.replace("Order", "Called"), "AVRO")
    found = client.register_schema(subject, first)
    assert client.lookup_schema(subject, first).schema_id == client.get_version(subject, 1).schema_id == found
    assert client.get_versions(subject) == [1]
    assert subject in client.get_subjects()
    assert client.get_schema(found).schema_str == first.schema_str
    assert client.get_schema_versions(found)[0].version == 1
    assert client.test_compatibility(subject, Schema('"int"', "AVRO")) is False
    with pytest.raises(SchemaRegistryError) as error:
        client.register_schema(subject, Schema('"int"', "AVRO"))
    assert error.value.http_status_code == 409
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert client.get_config(subject).compatibility_level == "NONE"
    client.update_mode(subject, "READONLY")
    assert client.get_mode(subject) == "READONLY"
    client.delete_mode(subject)
    assert client.delete_subject(subject) == client.delete_subject(subject, permanent=True) == [1]


def test_protobuf_is_stored_as_text(client: SchemaRegistryClient) -> None:
    """Clients for other languages can read what Python has registered."""
    compiled = base64.b64encode(Timestamp.DESCRIPTOR.file.serialized_pb).decode()
    found = client.register_schema("confluent-text", Schema(compiled, "PROTOBUF"))
    text = client.get_schema(found).schema_str
    assert "message Timestamp {\n  int64 seconds = 1;" in text
    assert client.register_schema("confluent-text-2", Schema(text, "PROTOBUF")) == found
