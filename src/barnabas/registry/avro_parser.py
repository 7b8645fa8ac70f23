"""Parses an Avro schema, and says what is wrong with one that is not valid.

The rules are the specification's, as Avro's Java library checks them: names and symbols by its grammar, each name defined once, no union in
a union, no type twice in one, defaults of the field's type. A default of a union may be of any of its types (specification 1.12). What
the specification does not define is kept as a property.

Source: the Avro specification, "Schema Declaration", "Names", "Aliases".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from barnabas.registry.avro_defaults import why_no_value
from barnabas.registry.avro_types import (
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    type_name,
)

__all__ = ["InvalidAvro", "parse_avro"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERS = ("ascending", "descending", "ignore")
_OF_NAMED = ("type", "name", "namespace", "aliases", "doc")
_OF_FIELD = ("name", "type", "doc", "default", "order", "aliases")
_SIZE_MAX = 2**31 - 1


class InvalidAvro(ValueError):
    """The text is not an Avro schema; the message says why."""


def parse_avro(text: str, needed: Iterable[str] = (), *, checks_defaults: bool = True) -> AvroType:
    """Return a schema.

    Args:
        needed: the schemas whose names it uses, each behind those that it needs itself.
        checks_defaults: False for a schema that was stored before.

    Raises:
        InvalidAvro: it, or a needed one, is not valid.
    """
    parser = _Parser(checks_defaults)
    try:
        for each in needed:
            parser.parse(each)
        return parser.parse(text)
    except RecursionError:
        raise InvalidAvro("its types are nested too deeply") from None


class _Parser:
    def __init__(self, checks_defaults: bool) -> None:
        self._names: dict[str, Named] = {}
        self._checks_defaults = checks_defaults

    def parse(self, text: str) -> AvroType:
        try:
            document = json.loads(text, object_pairs_hook=_without_repeated_names, parse_constant=_no_number)
        except InvalidAvro:
            raise
        except ValueError as error:
            if _NAME.fullmatch(text) and text in PRIMITIVES:
                return Primitive(text)  # Avro's libraries take a bare word.
            raise InvalidAvro(f"it is not JSON: {error}") from None
        return self._type(document, "")

    def _type(self, found: Any, namespace: str) -> AvroType:
        if isinstance(found, str):
            return self._named(found, namespace)
        if isinstance(found, list):
            return self._union(found, namespace)
        if not isinstance(found, dict):
            raise InvalidAvro(f"{_shown(found)} is not a type")
        kind = found.get("type")
        if isinstance(kind, dict | list):
            return self._type(kind, namespace)
        if not isinstance(kind, str):
            raise InvalidAvro(f"a type is missing in {_shown(found)}")
        if kind in PRIMITIVES:
            return Primitive(kind, _others(found, ("type",)))
        match kind:
            case "record" | "error":
                return self._record(found, namespace, is_error=kind == "error")
            case "enum":
                return self._enum(found, namespace)
            case "fixed":
                return self._fixed(found, namespace)
            case "array":
                return Array(self._inner(found, "items", namespace), _others(found, ("type", "items")))
            case "map":
                return Map(self._inner(found, "values", namespace), _others(found, ("type", "values")))
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        try:
            return self._names[full.removeprefix(".")]
        except KeyError:
            raise InvalidAvro(f"type {_shown(name)} is not defined") from None

    def _inner(self, found: dict[str, Any], key: str, namespace: str) -> AvroType:
        if key not in found:
            raise InvalidAvro(f"{found['type']} has no {key}")
        return self._type(found[key], namespace)

    def _union(self, found: list[Any], namespace: str) -> Union:
        branches = tuple(self._type(each, namespace) for each in found)
        seen: set[str] = set()
        for each in branches:
            if isinstance(each, Union):
                raise InvalidAvro("a union stands directly in a union")
            name = each.name if isinstance(each, Named) else type_name(each)
            if name in seen:
                raise InvalidAvro(f"a union has {name} twice")
            seen.add(name)
        return Union(branches)

    def _record(self, found: dict[str, Any], namespace: str, *, is_error: bool) -> Record:
        name, inner, aliases = _names_of(found, namespace)
        record = Record(name, aliases, _doc(found), (), is_error, _others(found, (*_OF_NAMED, "fields")))
        self._define(record)
        fields = found.get("fields")
        if not isinstance(fields, list):
            raise InvalidAvro(f"record {name} has no list of fields")
        record.fields = tuple(self._field(each, name, inner) for each in fields)
        names = [each.name for each in record.fields]
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            raise InvalidAvro(f"record {name} has field {twice} twice")
        return record

    def _field(self, found: Any, record: str, namespace: str) -> Field:
        if not isinstance(found, dict):
            raise InvalidAvro(f"a field of record {record} is not an object")
        name = _simple_name(found.get("name"), f"a field of record {record}")
        where = f"field {name} of record {record}"
        if "type" not in found:
            raise InvalidAvro(f"{where} has no type")
        order = found.get("order", "ascending")
        if order not in _ORDERS:
            raise InvalidAvro(f"{where} has order {_shown(order)}: {', '.join(_ORDERS)}")
        field = Field(
            name,
            self._type(found["type"], namespace),
            _doc(found),
            "default" in found,
            found.get("default"),
            None if order == "ascending" else order,
            tuple(_texts(found.get("aliases", []), f"the aliases of {where}")),
            _others(found, _OF_FIELD),
        )
        if field.has_default and self._checks_defaults and (why := why_no_value(field.type, field.default)):
            raise InvalidAvro(f"{where} has a default that is not valid: {why}")
        return field

    def _enum(self, found: dict[str, Any], namespace: str) -> Enum:
        name, _, aliases = _names_of(found, namespace)
        symbols = _texts(found.get("symbols"), f"the symbols of enum {name}")
        for each in symbols:
            _simple_name(each, f"a symbol of enum {name}")
        if len(set(symbols)) < len(symbols):
            raise InvalidAvro(f"enum {name} has a symbol twice")
        default = found.get("default")
        if default is not None and default not in symbols:
            raise InvalidAvro(f"the default {_shown(default)} of enum {name} is not one of its symbols")
        enum = Enum(
            name, aliases, _doc(found), tuple(symbols), default, _others(found, (*_OF_NAMED, "symbols", "default"))
        )
        self._define(enum)
        return enum

    def _fixed(self, found: dict[str, Any], namespace: str) -> Fixed:
        name, _, aliases = _names_of(found, namespace)
        size = found.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _SIZE_MAX:
            raise InvalidAvro(f"the size of fixed {name} is not a number of bytes")
        fixed = Fixed(name, aliases, _doc(found), size, _others(found, (*_OF_NAMED, "size")))
        self._define(fixed)
        return fixed

    def _define(self, found: Named) -> None:
        if found.name in self._names:
            raise InvalidAvro(f"type {found.name} is defined twice")
        self._names[found.name] = found


def _names_of(found: dict[str, Any], namespace: str) -> tuple[str, str, tuple[str, ...]]:
    """Return a full name, its namespace, and the full names of the aliases."""
    name = found.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidAvro(f"a {found['type']} has no name")
    if "." not in name:
        own = found.get("namespace", namespace)
        own = namespace if own is None else own
        if not isinstance(own, str):
            raise InvalidAvro(f"the namespace of {name} is not a text")
        name = f"{own}.{name}" if own else name
    space, _, simple = name.rpartition(".")
    for part in (*(space.split(".") if space else ()), simple):
        if not _NAME.fullmatch(part):
            raise InvalidAvro(f"{_shown(name)} is not a name: letters, digits and underscores, and no digit first")
    if name in PRIMITIVES:
        raise InvalidAvro(f"{name} is the name of a primitive type")
    aliases = _texts(found.get("aliases") or [], f"the aliases of {name}")
    return name, space, tuple(each if "." in each or not space else f"{space}.{each}" for each in aliases)


def _simple_name(found: Any, what: str) -> str:
    if not isinstance(found, str) or not _NAME.fullmatch(found):
        raise InvalidAvro(f"{what} is named {_shown(found)}: letters, digits and underscores, and no digit first")
    return found


def _texts(found: Any, what: str) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidAvro(f"{what} are not a list of texts")
    return found


def _doc(found: dict[str, Any]) -> str | None:
    doc = found.get("doc")
    return doc if isinstance(doc, str) else None


def _others(found: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in known}


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidAvro("an object of its JSON has a name twice")
    return found


def _no_number(constant: str) -> Any:
    raise InvalidAvro(f"it is not JSON: {constant} is not a number")


def _shown(found: Any) -> str:
    text = found if isinstance(found, str) else json.dumps(found)
    return f"'{text[:80]}'"
