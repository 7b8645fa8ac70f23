"""Avro's types as a parsed schema has them; names and aliases are full names.

Types are compared by identity: a recursive schema is a circle.

Source: the Avro specification, "Schema Declaration".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "PRIMITIVES",
    "Array",
    "AvroType",
    "Enum",
    "Field",
    "Fixed",
    "Map",
    "Named",
    "Primitive",
    "Record",
    "Union",
    "type_name",
]

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


@dataclass(eq=False, slots=True)
class Primitive:
    """A primitive type; `properties` has its logical type, among others."""

    name: str
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Array:
    """Values of one type."""

    items: AvroType
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Map:
    """Values of one type by text."""

    values: AvroType
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Union:
    """A value of one of some types."""

    branches: tuple[AvroType, ...]


@dataclass(eq=False, slots=True)
class Fixed:
    """So many bytes."""

    name: str
    aliases: tuple[str, ...]
    doc: str | None
    size: int
    properties: dict[str, Any]


@dataclass(eq=False, slots=True)
class Enum:
    """A symbol; `default` is for symbols that a reader does not know, None without."""

    name: str
    aliases: tuple[str, ...]
    doc: str | None
    symbols: tuple[str, ...]
    default: str | None
    properties: dict[str, Any]


@dataclass(eq=False, slots=True)
class Field:
    """A field of a record.

    Attributes:
        default: JSON; only valid if `has_default`.
        order: None for ascending.
    """

    name: str
    type: AvroType
    doc: str | None
    has_default: bool
    default: Any
    order: str | None
    aliases: tuple[str, ...]
    properties: dict[str, Any]


@dataclass(eq=False, slots=True)
class Record:
    """Fields by name; an error is a record of a protocol."""

    name: str
    aliases: tuple[str, ...]
    doc: str | None
    fields: tuple[Field, ...]
    is_error: bool
    properties: dict[str, Any]


Named: TypeAlias = Record | Enum | Fixed
AvroType: TypeAlias = Primitive | Array | Map | Union | Fixed | Enum | Record


def type_name(found: AvroType) -> str:
    """Return the word of the specification for a type."""
    return found.name if isinstance(found, Primitive) else type(found).__name__.lower()
