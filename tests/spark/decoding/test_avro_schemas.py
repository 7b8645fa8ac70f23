"""Avro schemas whose types are in other schemas."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import SchemaNotFound
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import Reference, Schema
from barnabas.spark.decoding.avro_schemas import AvroSchema, as_json, avro_schema_of, parsed_avro

MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "int"}]}'
PAID = '{"type": "record", "name": "Paid", "fields": [{"name": "due", "type": "Money"}]}'


def test_types_of_other_schemas():
    known = KnownSchemas("folder", {1: Schema(MONEY)}, {"money": {1: 1}})
    schema = avro_schema_of(known, Schema(PAID, references=(Reference("Money", "money", 1),)))
    assert set(parsed_avro(schema, "the schema").names) == {"Money", "Paid"}
    with pytest.raises(SchemaNotFound, match="no subject cash"):
        avro_schema_of(known, Schema(PAID, references=(Reference("Money", "cash", 1),)))
    with pytest.raises(ValueError, match="schema 7 is not a valid Avro schema: unknown type Money"):
        parsed_avro(AvroSchema(as_json(PAID)), "schema 7")
