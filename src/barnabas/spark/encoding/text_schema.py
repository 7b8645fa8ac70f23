"""How rows are encoded in a format whose schemas are JSON: Avro and JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from pyspark.sql.types import DataType

from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.avro_schemas import as_json
from barnabas.spark.decoding.confluent_frame import frame
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.encoding.row_encoder import Encoder, RowFormat
from barnabas.spark.encoding.schema_ids import SubjectNaming, schema_id

__all__ = ["TextSchema"]

_Schema = TypeVar("_Schema")


@dataclass(frozen=True, slots=True)
class TextSchema(Generic[_Schema]):
    """The differences between the formats: `kind` is the name in a registry, `name` returns that of what the schema describes."""

    kind: str
    with_needed: Callable[[SchemaSource | None, Schema], _Schema]
    check_rows: Callable[[DataType, _Schema], None]
    name: Callable[[_Schema], str | None]
    encoder: Callable[[_Schema], Encoder]

    def row_format(
        self,
        rows: DataType,
        given: GivenSchema,
        naming: SubjectNaming,
        references: tuple[Reference, ...],
        *,
        register: bool,
    ) -> RowFormat:
        """Return how rows are encoded.

        Raises:
            ValueError: the schema is not valid, the registry does not give it, or the rows do not fit it.
        """
        registered = given.registered(self.kind) if given.schema is None else None
        stored = Schema(_text(given.value()), self.kind, references) if registered is None else registered.schema
        schema = self.with_needed(given.source, stored)
        self.check_rows(rows, schema)  # before it is registered
        prefix = b""
        if registered is not None:
            prefix = frame(registered.schema_id)
        elif given.framed:
            prefix = frame(schema_id(given.schemas(), naming.of(self.name(schema)), stored, register=register))
        return RowFormat(prefix, partial(self.encoder, schema))


def _text(value: Any) -> str:
    """Return the schema as the caller wrote it."""
    definition = as_json(value)  # an error of the schema comes first
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else json.dumps(definition)
