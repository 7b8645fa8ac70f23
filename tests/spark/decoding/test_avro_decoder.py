"""Avro values in the reader's schema, whoever wrote them."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import fastavro
import pytest

from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import Schema
from barnabas.spark.decoding.avro_decoder import avro_decoder, avro_type, column
from barnabas.spark.decoding.avro_schemas import AvroSchema
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.row_decoder import BadValue


def order(*fields: tuple[str, Any] | tuple[str, Any, Any]) -> dict[str, Any]:
    listed = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return {"type": "record", "name": "Order", "fields": listed}


OLD = order(("id", "int"), ("note", "string"))
NEW = order(("id", "long"), ("country", "string", "??"))


def known(schemas: dict[int, Any]) -> KnownSchemas:
    return KnownSchemas("folder", {number: Schema(json.dumps(each)) for number, each in schemas.items()})


def written(schema: Any, value: Any, schema_id: int | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return (b"" if schema_id is None else struct.pack(">bi", 0, schema_id)) + out.getvalue()


def test_values_alone():
    decode = avro_decoder(AvroSchema(OLD), None)
    value = written(OLD, {"id": 1, "note": "x"})
    assert decode(value) == {"id": 1, "note": "x"}
    for bad, why in ((value[:-1], "it ends too early"), (value + b"zz", "2 bytes are left"), (b"", "ends too early")):
        with pytest.raises(BadValue, match=f"the value is not of the schema: .*{why}"):
            decode(bad)
    with pytest.raises(BadValue, match=r"the value is not of the schema: .*utf-8"):
        decode(b"\x02\x02\xff")


def test_a_value_is_resolved_from_the_schema_that_wrote_it():
    decode = avro_decoder(AvroSchema(NEW), known({1: OLD, 2: NEW}))
    assert decode(written(OLD, {"id": 1, "note": "x"}, 1)) == {"id": 1, "country": "??"}
    assert decode(written(NEW, {"id": 2**40, "country": "FR"}, 2)) == {"id": 2**40, "country": "FR"}


def test_a_value_of_an_unknown_or_unreadable_schema():
    decode = avro_decoder(AvroSchema(order(("id", "long"), ("must", "int"))), known({1: OLD}))
    with pytest.raises(BadValue, match="schema 9 is not among the schemas"):
        decode(written(OLD, {"id": 1, "note": "x"}, 9))
    with pytest.raises(BadValue, match="schema 1 cannot be read as the schema: No default value for field must"):
        decode(written(OLD, {"id": 1, "note": "x"}, 1))
    with pytest.raises(BadValue, match="has no schema id"):
        decode(written(OLD, {"id": 1, "note": "x"}))


def test_schemas_that_are_not_valid():
    with pytest.raises(ValueError, match="the schema is not a valid Avro schema: unknown type Money"):
        avro_type(AvroSchema(order(("price", "Money"))))
    with pytest.raises(ValueError, match=r"schema 7 is not a valid Avro schema: .name. is a required field"):
        avro_decoder(AvroSchema(NEW), known({7: {"type": "record"}}))
    with pytest.raises(ValueError, match="neither JSON nor the path of a file"):
        column(None, GivenSchema("orders.avsc"))  # type: ignore[arg-type]
