"""The schemas that wrote the values, by the id in front of each value; each is parsed once for each task.

A schema that a registry does not have, or that cannot be parsed, makes bad rows. A registry that does not answer fails the task, so that
Spark tries again: its rows are not bad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.schemas.errors import RegistryError
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import Schema
from barnabas.schemas.source import SchemaSource, shared
from barnabas.spark.decoding.bad_value import BadValue

__all__ = ["WriterSchemas"]

ParsedT = TypeVar("ParsedT")


class WriterSchemas(Generic[ParsedT]):
    """The parsed schemas of one kind.

    Args:
        source: has the schemas.
        kind: AVRO, JSON or PROTOBUF.
        parse: parses a schema; the text names it in an error. It raises a ValueError if the schema is not valid.
    """

    def __init__(self, source: SchemaSource, kind: str, parse: Callable[[SchemaSource, Schema, str], ParsedT]) -> None:
        self._source = shared(source)
        self._kind = kind
        self._parse = parse
        self._parsed: dict[int, ParsedT] = {}

    def __repr__(self) -> str:
        return f"<WriterSchemas kind={self._kind} ids={sorted(self._parsed)}>"

    def of_id(self, schema_id: int) -> ParsedT:
        """Return the parsed schema of an id.

        Raises:
            BadValue: there is none, or it is not valid, or it is of another kind.
            RegistryError: the registry does not answer, or serves no such requests.
        """
        if schema_id not in self._parsed:
            try:
                schema = self._source.by_id(schema_id)
                if schema.kind != self._kind:
                    raise BadValue(f"schema {schema_id} is of type {schema.kind}, not {self._kind}")
                self._parsed[schema_id] = self._parse(self._source, schema, f"schema {schema_id}")
            except RegistryError:
                raise
            except ValueError as error:
                raise BadValue(str(error)) from None
        return self._parsed[schema_id]

    def parse_known(self) -> None:
        """Parse the schemas of a folder, so that an error in one is found before the first row.

        Raises:
            ValueError: one is not valid.
        """
        if isinstance(self._source, KnownSchemas):
            for schema_id, schema in self._source.schemas.items():
                if schema.kind == self._kind:
                    self._parsed[schema_id] = self._parse(self._source, schema, f"schema {schema_id}")
