"""The schemas that a schema needs, in the order in which a parser takes them: each behind those that it needs itself."""

from __future__ import annotations

from barnabas.schemas.errors import SchemaError
from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.source import SchemaSource

__all__ = ["needed_by_schema"]

_MOST = 1_000


def needed_by_schema(source: SchemaSource | None, schema: Schema) -> list[tuple[str, Schema]]:
    """Return the names and the schemas of all references, direct and indirect, each name once.

    Raises:
        SchemaNotFound: the source does not have one.
        SchemaError: schemas need each other, or too many.
        RegistryError: the registry does not serve a request.
    """
    found: dict[str, Schema] = {}
    _collect(source, schema, found, ())
    return list(found.items())


def _collect(
    source: SchemaSource | None, schema: Schema, found: dict[str, Schema], within: tuple[Reference, ...]
) -> None:
    for reference in schema.references:
        if reference in within:
            raise SchemaError(f"version {reference.version} of subject {reference.subject} refers to itself")
        if reference.name in found:
            continue
        assert source is not None, "the caller has checked that a schema with references has a source"
        needed = source.version(reference.subject, reference.version).schema
        _collect(source, needed, found, (*within, reference))
        found[reference.name] = needed
        if len(found) > _MOST:
            raise SchemaError(f"a schema needs more than {_MOST} other schemas")
