"""Where schemas come from: a registry or a folder, by what a user writes.

| written | is |
|---|---|
| `http://localhost:8081`, `https://…,https://…` | a registry |
| a mapping of options, as in `settings` | a registry |
| anything else | the path of a folder |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from barnabas.schemas.known_schemas import KnownSchemas, read_folder
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.settings import RegistrySettings

__all__ = ["SchemaSource", "shared", "source_of"]

SchemaSource: TypeAlias = SchemaRegistry | KnownSchemas


def source_of(given: str | Path | Mapping[str, Any] | SchemaSource) -> SchemaSource:
    """Return the source of schemas that a user names.

    Raises:
        SchemaError: an option is not valid, or the folder has no schemas.
    """
    if isinstance(given, SchemaRegistry | KnownSchemas):
        return given
    if isinstance(given, Mapping) or (isinstance(given, str) and given.startswith(("http://", "https://"))):
        return SchemaRegistry(RegistrySettings.of(given))
    return read_folder(Path(given))


def shared(source: SchemaSource) -> SchemaSource:
    """Return the one client that this process has for a registry, so that tasks share what was asked; a folder is itself."""
    return _shared(source.settings) if isinstance(source, SchemaRegistry) else source


@cache
def _shared(settings: RegistrySettings) -> SchemaRegistry:
    return SchemaRegistry(settings)
