"""An Avro schema as text, one text for schemas that differ in layout alone: the text that a registry stores and compares.

It is what Avro's Java library writes, and so what Confluent's registry stores: no white space, the specification's attributes in one
order, a name without its namespace within it, a primitive type without properties as a bare text. `doc`, `aliases`, defaults and
properties stay, so two schemas that differ in one of them are two. Normalized, properties stand in the order of their names.

Source: the Avro specification, "Parsing Canonical Form for Schemas", which drops more; org.apache.avro.Schema.toString.
"""

from __future__ import annotations

import json
from typing import Any

from barnabas.registry.avro_types import Array, AvroType, Enum, Field, Fixed, Map, Named, Primitive, Record, Union

__all__ = ["avro_text"]


def avro_text(schema: AvroType, *, normalize: bool = False) -> str:
    """Return the text of a schema.

    Args:
        normalize: sort the properties.
    """
    return json.dumps(_Writer(normalize).written(schema, ""), ensure_ascii=False, separators=(",", ":"))


class _Writer:
    def __init__(self, normalize: bool) -> None:
        self._normalize = normalize
        self._defined: set[str] = set()

    def written(self, schema: AvroType, namespace: str) -> Any:
        match schema:
            case Primitive():
                return (
                    {"type": schema.name, **self._properties(schema.properties)} if schema.properties else schema.name
                )
            case Array():
                return {
                    "type": "array",
                    "items": self.written(schema.items, namespace),
                    **self._properties(schema.properties),
                }
            case Map():
                return {
                    "type": "map",
                    "values": self.written(schema.values, namespace),
                    **self._properties(schema.properties),
                }
            case Union():
                return [self.written(each, namespace) for each in schema.branches]
            case _:
                return self._named(schema, namespace)

    def _named(self, schema: Named, namespace: str) -> Any:
        space, _, simple = schema.name.rpartition(".")
        if schema.name in self._defined:
            return simple if space == namespace else schema.name
        self._defined.add(schema.name)
        found: dict[str, Any] = {"type": _word(schema), "name": simple}
        if space != namespace:
            found["namespace"] = space
        if schema.doc is not None:
            found["doc"] = schema.doc
        match schema:
            case Record():
                found["fields"] = [self._field(each, space) for each in schema.fields]
            case Enum():
                found["symbols"] = list(schema.symbols)
                if schema.default is not None:
                    found["default"] = schema.default
            case Fixed():
                found["size"] = schema.size
        found |= self._properties(schema.properties)
        if schema.aliases:
            found["aliases"] = [_within(each, space) for each in schema.aliases]
        return found

    def _field(self, field: Field, namespace: str) -> dict[str, Any]:
        found: dict[str, Any] = {"name": field.name, "type": self.written(field.type, namespace)}
        if field.doc is not None:
            found["doc"] = field.doc
        if field.has_default:
            found["default"] = field.default
        if field.order is not None:
            found["order"] = field.order
        if field.aliases:
            found["aliases"] = list(field.aliases)
        return {**found, **self._properties(field.properties)}

    def _properties(self, properties: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(properties.items())) if self._normalize else properties


def _word(schema: Named) -> str:
    if isinstance(schema, Record):
        return "error" if schema.is_error else "record"
    return "enum" if isinstance(schema, Enum) else "fixed"


def _within(name: str, namespace: str) -> str:
    space, _, simple = name.rpartition(".")
    return simple if space == namespace else name
