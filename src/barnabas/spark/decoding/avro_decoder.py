"""Decodes Avro: values alone in the reader's schema, or behind a schema id in the schema that wrote them.

A value is resolved from its writer's schema into the reader's, by Avro's rules: a field that the writer did not have
gets its default, a field that the reader does not have is skipped, and numbers are widened. So the column keeps one
type, whichever version of the schema wrote a record.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, UnknownType, parse_schema
from pyspark.sql import Column
from pyspark.sql.types import DataType

from barnabas.spark.decoding.avro_types import converter, spark_type
from barnabas.spark.decoding.confluent_frame import split_frame
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.row_decoder import BadValue, DecodedColumn, Decoder, decoded_column

__all__ = ["avro_decoder", "avro_type", "column"]


def column(value: Column, given: GivenSchema) -> DecodedColumn:
    """Return how a column of bytes is decoded.

    Raises:
        ValueError: a schema is not valid.
    """
    schema, writers = _json(given.value()), given.writers()
    kind = avro_type(schema)
    make = partial(avro_decoder, schema, writers)
    make()  # so that an error of a schema is raised here, and not on an executor
    return decoded_column(value, kind, make)


def avro_type(schema: Any) -> DataType:
    """Return Spark's type of a schema.

    Raises:
        ValueError: the schema is not a valid Avro schema, or Spark has no type for it.
    """
    parsed, names = _parsed(schema, "the schema")
    return spark_type(parsed, names)


def avro_decoder(schema: Any, writers: Mapping[int, Any] | None) -> Decoder:
    """Return the decoder of values.

    Args:
        schema: the reader's schema.
        writers: the schemas by id; None if values have no id.

    Raises:
        ValueError: a schema is not a valid Avro schema.
    """
    reader, names = _parsed(schema, "the schema")
    convert = converter(reader, names) or (lambda value: value)
    parsed = {number: _parsed(each, f"schema {number}")[0] for number, each in (writers or {}).items()}

    def decode(value: bytes) -> Any:
        if writers is None:
            return convert(_read(value, reader, None))
        schema_id, rest = split_frame(value)
        if schema_id not in parsed:
            raise BadValue(f"schema {schema_id} is not among the schemas")
        try:
            return convert(_read(rest, parsed[schema_id], reader))
        except SchemaResolutionError as error:
            reason = str(error).partition("{")[0].strip().rstrip(":")
            raise BadValue(f"schema {schema_id} cannot be read as the schema: {reason}") from None

    return decode


def _read(value: bytes, writer: Any, reader: Any) -> Any:
    stream = io.BytesIO(value)
    try:
        found = fastavro.schemaless_reader(stream, writer, reader)
    except SchemaResolutionError:
        raise
    except (EOFError, IndexError):
        raise BadValue("the value is not of the schema: it ends too early") from None
    except Exception as error:  # of the library's parts: struct, decimal, datetime, codecs
        raise BadValue(f"the value is not of the schema: {error}") from None
    if rest := len(value) - stream.tell():
        raise BadValue(f"the value is not of the schema: {rest} bytes are left")
    return found


def _parsed(schema: Any, what: str) -> tuple[Any, dict[str, Any]]:
    names: dict[str, Any] = {}
    try:
        return parse_schema(schema, names), names
    except UnknownType as error:
        raise ValueError(f"{what} is not a valid Avro schema: unknown type {error.name}") from None
    except SchemaParseException as error:
        raise ValueError(f"{what} is not a valid Avro schema: {error}") from None


def _json(schema: Any) -> Any:
    if not isinstance(schema, str | bytes):
        return schema
    try:
        return json.loads(schema)
    except ValueError:
        raise ValueError("the schema is neither JSON nor the path of a file") from None
