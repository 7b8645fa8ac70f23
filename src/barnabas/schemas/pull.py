"""Fills a folder from a registry, so that a query starts without one.

    pull("http://localhost:8081", "schemas", subjects=["orders-value"])

Each subject is copied with all its versions and with the schemas that they refer to. A folder that has some already keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.schemas.errors import SchemaError
from barnabas.schemas.known_schemas import KnownSchemas, write_folder
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.schema import Schema
from barnabas.schemas.source import source_of

__all__ = ["pull"]


def pull(
    registry: str | Mapping[str, Any] | SchemaRegistry,
    folder: str | Path,
    *,
    subjects: Iterable[str] | None = None,
    ids: Iterable[int] = (),
) -> list[int]:
    """Copy schemas into a folder; return their ids.

    Args:
        registry: its address, its options, or a client.
        folder: it is made if it does not exist.
        subjects: which; None for all, or for none if there are ids.
        ids: single schemas, with every subject and version that has them.

    Raises:
        SchemaNotFound: the registry does not have one of them.
        RegistryError: the registry does not serve a request.
        SchemaError: the folder cannot be written, or has schemas of another registry.
    """
    source = source_of(registry)
    if not isinstance(source, SchemaRegistry):
        raise SchemaError(f"'{registry}' is not the address of a schema registry: write http://HOST:PORT")
    wanted = list(ids)
    schemas: dict[int, Schema] = {}
    found: dict[str, dict[int, int]] = {}
    left = [(subject, number) for subject in _subjects(source, subjects, wanted) for number in source.versions(subject)]
    for schema_id in wanted:
        schemas[schema_id] = schema = source.by_id(schema_id)
        left += [*source.versions_of_id(schema_id), *((each.subject, each.version) for each in schema.references)]
    while left:
        subject, number = left.pop()
        if number in found.get(subject, {}):
            continue
        registered = source.version(subject, number)
        schemas[registered.schema_id] = registered.schema
        found.setdefault(subject, {})[number] = registered.schema_id
        left += [(each.subject, each.version) for each in registered.schema.references]
    if not schemas:
        raise SchemaError(f"{source.name} has no schemas")
    write_folder(Path(folder), KnownSchemas(str(folder), schemas, found))
    return sorted(schemas)


def _subjects(source: SchemaRegistry, subjects: Iterable[str] | None, ids: list[int]) -> list[str]:
    if subjects is not None:
        return list(subjects)
    return [] if ids else source.subjects()
