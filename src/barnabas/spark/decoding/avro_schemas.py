"""Avro schemas: what a user or a registry gives, parsed for `fastavro`.

A schema may name types that other schemas define. They are parsed first, into one table of names.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from barnabas.schemas.references import needed_by_schema
from barnabas.schemas.schema import Schema
from barnabas.schemas.source import SchemaSource

__all__ = ["AvroSchema", "ParsedAvro", "as_json", "avro_schema_of", "parsed_avro"]


class AvroSchema(NamedTuple):
    """A schema and what it needs, as JSON.

    Attributes:
        definition: the schema.
        needed: the schemas whose types it names, each behind those that it needs itself.
    """

    definition: Any
    needed: tuple[Any, ...] = ()


class ParsedAvro(NamedTuple):
    """A schema as `fastavro` parses it, and the table of its named types."""

    schema: Any
    names: dict[str, Any]


def avro_schema_of(source: SchemaSource | None, schema: Schema) -> AvroSchema:
    """Return a schema with what it needs.

    Args:
        source: reads the schemas that this one refers to; None if it refers to none.

    Raises:
        SchemaError: a reference cannot be resolved.
    """
    needed = needed_by_schema(source, schema)
    return AvroSchema(as_json(schema.text), tuple(as_json(each.text) for _, each in needed))


def parsed_avro(schema: AvroSchema, what: str) -> ParsedAvro:
    """Parse a schema.

    Args:
        what: names the schema in an error.

    Raises:
        ValueError: it is not a valid Avro schema.
    """
    names: dict[str, Any] = {}
    try:
        for each in schema.needed:
            parse_schema(each, names)
        return ParsedAvro(parse_schema(schema.definition, names), names)
    except UnknownType as error:
        raise ValueError(f"{what} is not a valid Avro schema: unknown type {error.name}") from None
    except SchemaParseException as error:
        raise ValueError(f"{what} is not a valid Avro schema: {error}") from None


def as_json(schema: Any) -> Any:
    """Return a schema that is text, or bytes of a file, as JSON.

    Raises:
        ValueError: it is not JSON.
    """
    if not isinstance(schema, str | bytes):
        return schema
    try:
        return json.loads(schema)
    except ValueError:
        raise ValueError("the schema is neither JSON nor the path of a file") from None
