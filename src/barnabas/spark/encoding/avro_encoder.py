"""Encodes rows as Avro by `fastavro`."""

from __future__ import annotations

import io
from typing import Any

import fastavro
from pyspark.sql.types import DataType

from barnabas.schemas.schema import AVRO
from barnabas.spark.decoding.avro_decoder import avro_type
from barnabas.spark.decoding.avro_schemas import AvroSchema, avro_schema_of, parsed_avro
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.fitting_columns import check_columns
from barnabas.spark.encoding.row_encoder import Encoder
from barnabas.spark.encoding.text_schema import TextSchema

__all__ = ["avro_encoder", "row_format"]


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


def _name(schema: AvroSchema) -> str | None:
    parsed = parsed_avro(schema, "the schema").schema
    return parsed.get("name") if isinstance(parsed, dict) else None


row_format = TextSchema(AVRO, avro_schema_of, _check_rows, _name, avro_encoder).row_format
