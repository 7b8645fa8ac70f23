"""Decodes Avro: values alone in the reader's schema, or behind a schema id in the schema that wrote them.

A value is resolved from its writer's schema into the reader's, by Avro's rules: a field that the writer did not have
gets its default, a field that the reader does not have is skipped, and numbers are widened. So the column keeps one
type, whichever version of the schema wrote a record.
"""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError
from pyspark.sql import Column
from pyspark.sql.types import DataType

from barnabas.schemas.schema import AVRO, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.avro_resolution import unreadable
from barnabas.spark.decoding.avro_schemas import AvroSchema, ParsedAvro, as_json, avro_schema_of, parsed_avro
from barnabas.spark.decoding.avro_types import converter, spark_type
from barnabas.spark.decoding.confluent_frame import split_frame
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.row_decoder import BadValue, DecodedColumn, Decoder, decoded_column
from barnabas.spark.decoding.writer_schemas import WriterSchemas

__all__ = ["avro_decoder", "avro_type", "column"]


def column(value: Column, given: GivenSchema) -> DecodedColumn:
    """Return how a column of bytes is decoded.

    Raises:
        ValueError: a schema is not valid, or the newest schema of the subject cannot be read as the given one.
    """
    if given.schema is None:
        schema = avro_schema_of(given.schemas(), given.registered(AVRO).schema)
    else:
        schema = AvroSchema(as_json(given.value()))
    kind = avro_type(schema)
    if given.schema is not None and given.subject is not None:
        _check_newest(given, schema)
    make = partial(avro_decoder, schema, given.source)
    make()  # so that an error of a schema is raised here, and not on an executor
    return decoded_column(value, kind, make)


def avro_type(schema: AvroSchema) -> DataType:
    """Return Spark's type of a schema.

    Raises:
        ValueError: the schema is not a valid Avro schema, or Spark has no type for it.
    """
    return spark_type(*parsed_avro(schema, "the schema"))


def avro_decoder(schema: AvroSchema, source: SchemaSource | None) -> Decoder:
    """Return the decoder of values.

    Args:
        schema: the reader's schema.
        source: the schemas by id; None if values have no id.

    Raises:
        ValueError: a schema is not a valid Avro schema.
    """
    reader, names = parsed_avro(schema, "the schema")
    convert = converter(reader, names) or (lambda value: value)
    if source is None:
        return lambda value: convert(_read(value, reader, None))
    writers = WriterSchemas(source, AVRO, _parsed)
    writers.parse_known()

    def decode(value: bytes) -> Any:
        schema_id, rest = split_frame(value)
        writer = writers.of_id(schema_id)
        try:
            return convert(_read(rest, writer.schema, reader))
        except SchemaResolutionError as error:
            reason = str(error).partition("{")[0].strip().rstrip(":")
            raise BadValue(f"schema {schema_id} cannot be read as the schema: {reason}") from None
        except BadValue as error:
            raise BadValue(f"{error} (schema {schema_id})") from None

    return decode


def _parsed(source: SchemaSource, schema: Schema, what: str) -> ParsedAvro:
    return parsed_avro(avro_schema_of(source, schema), what)


def _check_newest(given: GivenSchema, schema: AvroSchema) -> None:
    newest = given.registered(AVRO)
    writer = parsed_avro(avro_schema_of(given.schemas(), newest.schema), f"schema {newest.schema_id}")
    if why := unreadable(writer, parsed_avro(schema, "the schema")):
        raise ValueError(
            f"version {newest.version} of subject {newest.subject} (schema {newest.schema_id}) cannot be read as the schema: {why}. "
            "Give decode a newer schema, or leave out subject= to have such rows as bad rows"
        )


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
