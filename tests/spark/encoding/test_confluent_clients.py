"""Confluent's serializers and deserializers at the other end: what they write is decoded here, and they read what is encoded here."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from barnabas.schemas.pull import pull
from barnabas.schemas.schema import Reference
from barnabas.schemas.source import source_of
from barnabas.spark.decoding import avro_decoder, protobuf_decoder
from barnabas.spark.decoding.avro_schemas import AvroSchema
from barnabas.spark.decoding.descriptor_sets import find_message
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.json_checks import json_check
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding import avro_encoder, json_encoder, protobuf_encoder
from barnabas.spark.encoding.row_encoder import encode_array
from barnabas.spark.encoding.schema_ids import SubjectNaming
from tests.schemas.registry_server import RegistryServer, running_registry
from tests.spark.messages import F, descriptor_set, message

VALUE = SerializationContext("orders", MessageField.VALUE)
THEIRS = {"subject.name.strategy": topic_subject_name_strategy}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running_registry() as registry:
        yield registry


@pytest.fixture
def client(server: RegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": server.url})


def encoded(
    module: Any, rows: StructType, row: dict[str, Any], server: RegistryServer, schema: Any = None, **more: Any
) -> bytes:
    """Encode one row as `encode` does with a registry; without a schema by that of the subject."""
    naming = SubjectNaming(topic="orders", strategy=more.pop("strategy", "TopicName"))
    register = more.pop("register", schema is not None)
    references = more.pop("references", ())
    subject = None if schema else "orders-value"
    given = GivenSchema(schema, True, source=source_of(server.url), subject=subject, **more)
    found = module.row_format(rows, given, naming, references, register=register)
    (result,) = encode_array(
        pa.array([row], to_arrow_type(rows, timezone="UTC")), found.prefix, found.make()
    ).to_pylist()
    assert result["error"] is None
    return bytes(result["encoded"])


def struct(**fields: types.DataType) -> StructType:
    return StructType([types.StructField(name, kind) for name, kind in fields.items()])


ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "country", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "lines", "type": {"type": "array", "items": "string"}},
    ],
}
ROWS = struct(
    id=types.LongType(),
    country=types.StringType(),
    price=types.DecimalType(9, 2),
    at=types.TimestampType(),
    tags=types.MapType(types.StringType(), types.IntegerType()),
    lines=types.ArrayType(types.StringType()),
)
ROW: dict[str, Any] = {
    "id": 2**40,
    "country": "FR",
    "price": Decimal("12.30"),
    "at": datetime.datetime(2026, 11, 24, 12, tzinfo=datetime.UTC),
    "tags": {"a": 1},
    "lines": ["x", "y"],
}
ARROW_ROW = {**ROW, "tags": [("a", 1)]}
MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "int"}]}
PAID = {
    "type": "record",
    "name": "shop.Paid",
    "fields": [{"name": "due", "type": "shop.Money"}, {"name": "paid", "type": "shop.Money"}],
}
PAID_ROWS = struct(due=struct(cents=types.IntegerType()), paid=struct(cents=types.IntegerType()))
PAID_ROW = {"due": {"cents": 5}, "paid": {"cents": 3}}


class TestAvro:
    def test_theirs_is_decoded(self, server, client):
        write = AvroSerializer(client, json.dumps(ORDER), conf=THEIRS)
        decode = avro_decoder.avro_decoder(AvroSchema(ORDER), source_of(server.url))
        assert decode(write(ROW, VALUE)) == ARROW_ROW

    @pytest.mark.parametrize("register", [True, False])
    def test_ours_is_what_they_write_and_read(self, server, client, register):
        if not register:
            server.add("orders-value", ORDER)
        ours = encoded(avro_encoder, ROWS, ARROW_ROW, server, ORDER, register=register)
        assert ours == AvroSerializer(client, json.dumps(ORDER), conf=THEIRS)(ROW, VALUE)
        assert ours == encoded(avro_encoder, ROWS, ARROW_ROW, server)
        assert AvroDeserializer(client, conf=THEIRS)(ours, VALUE) == ROW
        assert server.subjects == {"orders-value": {1: 1}}

    @pytest.mark.parametrize(
        ("strategy", "theirs"),
        [("RecordName", record_subject_name_strategy), ("TopicRecordName", topic_record_subject_name_strategy)],
    )
    def test_subjects_are_theirs(self, server, client, strategy, theirs):
        ours = encoded(avro_encoder, ROWS, ARROW_ROW, server, ORDER, strategy=strategy)
        conf = {"subject.name.strategy": theirs, "auto.register.schemas": False}
        assert AvroSerializer(client, json.dumps(ORDER), conf=conf)(ROW, VALUE) == ours

    def test_references_both_ways(self, server, client, tmp_path):
        server.add("money", MONEY)
        theirs = [SchemaReference("shop.Money", "money", 1)]
        write = AvroSerializer(client, Schema(json.dumps(PAID), "AVRO", theirs), conf=THEIRS)
        value = write(PAID_ROW, VALUE)
        references = (Reference("shop.Money", "money", 1),)
        assert encoded(avro_encoder, PAID_ROWS, PAID_ROW, server, PAID, references=references) == value
        assert encoded(avro_encoder, PAID_ROWS, PAID_ROW, server) == value
        pull(server.url, tmp_path)
        server.requests.clear()
        # The reader has the types in one schema, and a folder has the writer's.
        whole = json.loads(json.dumps(PAID).replace('"type": "shop.Money"', f'"type": {json.dumps(MONEY)}', 1))
        assert avro_decoder.avro_decoder(AvroSchema(whole), source_of(tmp_path))(value) == PAID_ROW
        assert server.requests == []

    def test_what_they_wrote_with_an_older_schema(self, server, client):
        value = AvroSerializer(client, json.dumps(ORDER), conf=THEIRS)(ROW, VALUE)
        newer = {
            **ORDER,
            "fields": [{"name": "id", "type": "double"}, {"name": "vip", "type": "boolean", "default": False}],
        }
        assert avro_decoder.avro_decoder(AvroSchema(newer), source_of(server.url))(value) == {
            "id": 2.0**40,
            "vip": False,
        }


JSON_ORDER: dict[str, Any] = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "country": {"type": "string"}, "price": {"type": "number", "minimum": 0}},
    "required": ["id"],
    "additionalProperties": False,
}
JSON_ROWS = struct(id=types.LongType(), country=types.StringType(), price=types.DoubleType())


class TestJson:
    def test_theirs_is_decoded(self, server, client):
        value = JSONSerializer(json.dumps(JSON_ORDER), client, conf=THEIRS)({"id": 1, "price": 2.5}, VALUE)
        check = json_check(source_of(server.url))
        assert check(value) is None
        assert json.loads(value[5:]) == {"id": 1, "price": 2.5}
        assert (
            check(value.replace(b"2.5", b"-25"))
            == "the value is not of schema 1: price: -25 is less than the minimum of 0"
        )
        assert check(value[:5] + b"{") == "the value is not JSON (schema 1)"
        assert check(b"\0\0\0\0\x09{}") == f"{server.url} does not have schema 9 (40403: Schema 9 not found)"

    def test_ours_is_read_by_them(self, server, client):
        ours = encoded(json_encoder, JSON_ROWS, {"id": 7, "country": None, "price": 1.5}, server, JSON_ORDER)
        assert ours[5:] == b'{"id":7,"price":1.5}'
        assert JSONDeserializer(json.dumps(JSON_ORDER), conf=THEIRS, schema_registry_client=client)(ours, VALUE) == {
            "id": 7,
            "price": 1.5,
        }
        assert encoded(json_encoder, JSON_ROWS, {"id": 7, "country": None, "price": 1.5}, server) == ours

    def test_references_both_ways(self, server, client):
        server.add("money", {"$id": "http://example.com/money.json", "type": "integer", "minimum": 1}, "JSON")
        schema = {"title": "Paid", "type": "object", "properties": {"due": {"$ref": "http://example.com/money.json"}}}
        theirs = Schema(json.dumps(schema), "JSON", [SchemaReference("http://example.com/money.json", "money", 1)])
        value = JSONSerializer(theirs, client, conf=THEIRS)({"due": 5}, VALUE)
        check = json_check(source_of(server.url))
        assert check(value) is None
        assert check(value.replace(b"5", b"0")) == "the value is not of schema 2: due: 0 is less than the minimum of 1"
        assert encoded(json_encoder, struct(due=types.IntegerType()), {"due": 5}, server)[:5] == value[:5]


MESSAGE = message(
    "Order",
    id=(1, F.TYPE_INT64),
    country=(2, F.TYPE_STRING, "optional"),
    count=(3, F.TYPE_UINT64),
    lines=(4, F.TYPE_STRING, "repeated"),
    at=(5, ".google.protobuf.Timestamp"),
    item=(6, ".shop.Order.Item"),
)
MESSAGE.nested_type.append(message("Item", sku=(1, F.TYPE_STRING)))
SET = descriptor_set(
    message("Customer", name=(1, F.TYPE_STRING)), MESSAGE, dependencies=("google/protobuf/timestamp.proto",)
)
PROTO_ROW: dict[str, Any] = {
    "id": 2**40,
    "country": "FR",
    "count": Decimal(2**64 - 1),
    "lines": ["x"],
    "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=datetime.UTC),
    "item": {"sku": ""},
}
THEIRS_PROTOBUF = {**THEIRS, "use.deprecated.format": False}


def theirs(descriptors: bytes, name: str) -> Any:
    return GetMessageClass(find_message(descriptors, name))


def filled(made: Any) -> Any:
    made.id, made.country, made.count = 2**40, "FR", 2**64 - 1
    made.lines.append("x")
    made.at.FromDatetime(PROTO_ROW["at"])
    made.item.SetInParent()
    return made


class TestProtobuf:
    @pytest.mark.parametrize("register", [True, False])
    def test_both_ways(self, server, client, register, tmp_path):
        kind = theirs(SET, "shop.Order")
        if not register:
            ProtobufSerializer(kind, client, THEIRS_PROTOBUF)(kind(), VALUE)
        rows = protobuf_decoder.protobuf_type(SET, "shop.Order")
        ours = encoded(protobuf_encoder, rows, PROTO_ROW, server, SET, message="shop.Order", register=register)
        value = ProtobufSerializer(kind, client, THEIRS_PROTOBUF)(filled(kind()), VALUE)
        assert ours == value
        assert ours[5:7] == b"\x02\x02"  # the second message of the file
        assert encoded(protobuf_encoder, rows, PROTO_ROW, server, message="shop.Order") == ours
        assert ProtobufDeserializer(kind, THEIRS_PROTOBUF, client)(ours, VALUE) == filled(kind())
        pull(server.url, tmp_path)
        for source in (source_of(server.url), source_of(tmp_path)):
            decode = protobuf_decoder.protobuf_decoder(SET, "shop.Order", framed=True, source=source)
            assert decode(value) == PROTO_ROW
        other = protobuf_decoder.protobuf_decoder(SET, None, framed=True, source=source_of(server.url))
        with pytest.raises(BadValue, match=r"the value is message shop\.Order, not shop\.Customer \(schema 1\)"):
            other(value)

    def test_a_message_that_has_moved_in_its_file(self, server, client):
        value = ProtobufSerializer(kind := theirs(SET, "shop.Order"), client, THEIRS_PROTOBUF)(filled(kind()), VALUE)
        moved = descriptor_set(MESSAGE, dependencies=("google/protobuf/timestamp.proto",))
        decode = protobuf_decoder.protobuf_decoder(moved, None, framed=True, source=source_of(server.url))
        assert decode(value) == PROTO_ROW

    def test_imports_both_ways(self, server, client, tmp_path):
        money = FileDescriptorProto(name="money.proto", package="shop", syntax="proto3")
        money.message_type.append(message("Money", cents=(1, F.TYPE_INT32)))
        paid = FileDescriptorProto(name="paid.proto", package="shop", syntax="proto3", dependency=["money.proto"])
        paid.message_type.append(message("Paid", due=(1, ".shop.Money")))
        descriptors = FileDescriptorSet(file=[money, paid]).SerializeToString()
        rows = protobuf_decoder.protobuf_type(descriptors, None)
        ours = encoded(protobuf_encoder, rows, {"due": {"cents": 5}}, server, descriptors)
        kind = theirs(descriptors, "shop.Paid")
        made = kind()
        made.due.cents = 5
        conf = {**THEIRS_PROTOBUF, "auto.register.schemas": False}
        assert ProtobufSerializer(kind, client, conf)(made, VALUE) == ours
        assert set(server.subjects) == {"money.proto", "orders-value"}
        assert encoded(protobuf_encoder, rows, {"due": {"cents": 5}}, server) == ours
        pull(server.url, tmp_path)
        decode = protobuf_decoder.protobuf_decoder(descriptors, None, framed=True, source=source_of(tmp_path))
        assert decode(ours) == {"due": {"cents": 5}}
