"""Encodes rows as Avro by `fastavro`."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import Any

import fastavro
from pyspark.sql.types import DataType

from barnabas.schemas.schema import AVRO, Reference, Schema
from barnabas.spark.decoding.avro_decoder import avro_type
from barnabas.spark.decoding.avro_schemas import AvroSchema, as_json, avro_schema_of, parsed_avro
from barnabas.spark.decoding.confluent_frame import frame
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.fitting_columns import check_columns
from barnabas.spark.encoding.row_encoder import Encoder, RowFormat
from barnabas.spark.encoding.schema_ids import SubjectNaming, schema_id

__all__ = ["avro_encoder", "row_format"]


def row_format(
    rows: DataType, given: GivenSchema, naming: SubjectNaming, references: tuple[Reference, ...], *, register: bool
) -> RowFormat:
    """Return how rows are encoded.

    Raises:
        ValueError: the schema is not valid, or cannot be had, or does not fit the rows.
    """
    prefix = b""
    if given.schema is None:
        registered = given.registered(AVRO)
        schema = avro_schema_of(given.schemas(), registered.schema)
        _check_rows(rows, schema)
        return RowFormat(frame(registered.schema_id), partial(avro_encoder, schema))
    value = given.value()
    definition = as_json(value)
    stored = Schema(_text(value, definition), AVRO, references)
    schema = avro_schema_of(given.schemas(), stored) if references else AvroSchema(definition)
    _check_rows(rows, schema)  # before it is registered
    if given.framed:
        parsed = parsed_avro(schema, "the schema").schema
        subject = naming.of(parsed.get("name") if isinstance(parsed, dict) else None)
        prefix = frame(schema_id(given.schemas(), subject, stored, register=register))
    return RowFormat(prefix, partial(avro_encoder, schema))


def _text(value: Any, definition: Any) -> str:
    """Return the schema as the caller wrote it."""
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else json.dumps(definition)


def _check_rows(rows: DataType, schema: AvroSchema) -> None:
    parsed, names = parsed_avro(schema, "the schema")
    optional = _with_defaults(parsed, names, ())
    check_columns(rows, avro_type(schema), lambda path: path in optional)


def _with_defaults(schema: Any, names: dict[str, Any], path: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return the paths of the fields that have a default, of records directly within records."""
    found: set[tuple[str, ...]] = set()
    for each in schema if isinstance(schema, list) else [schema]:
        each = names.get(each, each) if isinstance(each, str) else each
        if isinstance(each, dict) and each.get("type") == "record":
            for field in each["fields"]:
                inner = (*path, field["name"])
                found |= {inner} if "default" in field else set()
                found |= _with_defaults(field["type"], names, inner)
        elif isinstance(each, dict) and each.get("type") in ("array", "map"):
            step = "[]" if each["type"] == "array" else "values"
            found |= _with_defaults(each["items" if step == "[]" else "values"], names, (*path, step))
    return found


def avro_encoder(schema: AvroSchema) -> Encoder:
    """Return the encoder of rows.

    Raises:
        ValueError: the schema is not a valid Avro schema.
    """
    parsed = parsed_avro(schema, "the schema").schema

    def encode(row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, parsed, row, strict_allow_default=True)
        except Exception as error:  # of the library's parts: struct, decimal, its own
            raise BadValue(f"the row is not of the schema: {error}") from None
        return out.getvalue()

    return encode
