"""Schemas that no value can be read as, compared with what fastavro does."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_one

from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import Schema
from barnabas.spark.decoding.avro_decoder import column
from barnabas.spark.decoding.avro_resolution import unreadable
from barnabas.spark.decoding.avro_schemas import AvroSchema, parsed_avro
from barnabas.spark.decoding.given_schema import GivenSchema


def record(*fields: tuple[str, Any] | tuple[str, Any, Any]) -> dict[str, Any]:
    listed = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return {"type": "record", "name": "Order", "fields": listed}


LOOP = record(("next", ["null", "Order"]))
CASES = [
    (record(("a", "int")), record(("a", "long"), ("b", "int", 1)), None),
    (record(("a", "long")), record(("a", "int")), "field a is written as long and read as int"),
    (record(("a", "int")), record(("b", "int")), "it has no field b, which has no default"),
    (record(("a", ["null", "int"])), record(("a", "int")), None),
    (record(("a", ["null", "int"])), record(("a", "string")), "field a is written as null and read as string"),
    (record(("a", "int")), record(("a", ["null", "string", "long"])), None),
    (
        record(("a", {"type": "array", "items": "int"})),
        record(("a", {"type": "array", "items": "string"})),
        "field a's items is written",
    ),
    (record(("a", {"type": "map", "values": "int"})), record(("a", {"type": "map", "values": "float"})), None),
    (
        record(("a", {"type": "fixed", "name": "F", "size": 2})),
        record(("a", {"type": "fixed", "name": "F", "size": 3})),
        "2 bytes",
    ),
    (record(("a", "string")), record(("a", "bytes")), None),
    (LOOP, LOOP, None),
]


@pytest.mark.parametrize(("writer", "reader", "error"), CASES)
def test_resolution(writer, reader, error):
    written, read = (parsed_avro(AvroSchema(each), "the schema") for each in (writer, reader))
    found = unreadable(written, read)
    assert (found or "").startswith(error or "") if error != "2 bytes" else error in (found or "")
    assert (found is None) == (error is None)
    if error is not None:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, written.schema, generate_one(written.schema))
        with pytest.raises(Exception):  # noqa: B017 — which one depends on the value
            fastavro.schemaless_reader(io.BytesIO(out.getvalue()), written.schema, read.schema)


def test_the_newest_schema_of_a_subject_must_be_readable():
    known = KnownSchemas("folder", {1: Schema('{"type": "record", "name": "Order", "fields": []}')}, {"orders": {1: 1}})
    given = GivenSchema(record(("must", "int")), True, source=known, subject="orders")
    with pytest.raises(
        ValueError, match=r"version 1 of subject orders \(schema 1\) cannot be read as the schema: it has no field must"
    ):
        column(None, given)  # type: ignore[arg-type]
