"""Whether a JSON value is a valid default of an Avro type.

Bytes and fixed are texts whose characters are bytes, up to U+00FF. A union takes a value of any of its types (specification 1.12).

Source: the Avro specification, "Complex Types", the table of defaults.
"""

from __future__ import annotations

import json
from typing import Any

from barnabas.registry.avro_types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union, type_name

__all__ = ["why_no_value"]

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)


def why_no_value(type_: AvroType, value: Any) -> str | None:
    """Return why a value is not of a type; None if it is."""
    match type_:
        case Primitive():
            is_valid = _is_primitive(type_.name, value)
        case Fixed():
            is_valid = _are_bytes(value) and len(value) == type_.size
        case Enum():
            is_valid = isinstance(value, str) and value in type_.symbols
        case Array():
            return _first_reason(type_.items, value) if isinstance(value, list) else _no(type_, value)
        case Map():
            return _first_reason(type_.values, list(value.values())) if isinstance(value, dict) else _no(type_, value)
        case Union():
            is_valid = any(why_no_value(each, value) is None for each in type_.branches)
        case Record():
            return _of_record(type_, value)
    return None if is_valid else _no(type_, value)


def _is_primitive(name: str, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_whole = is_number and isinstance(value, int)
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return is_whole and value in _INT
        case "long":
            return is_whole and value in _LONG
        case "float" | "double":
            return is_number
        case "bytes":
            return _are_bytes(value)
    return isinstance(value, str)


def _are_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(each) < 256 for each in value)


def _first_reason(type_: AvroType, values: list[Any]) -> str | None:
    return next(filter(None, (why_no_value(type_, each) for each in values)), None)


def _of_record(record: Record, value: Any) -> str | None:
    if not isinstance(value, dict):
        return _no(record, value)
    for field in record.fields:
        if field.name in value:
            if why := why_no_value(field.type, value[field.name]):
                return why
        elif not field.has_default:
            return f"it has no field {field.name}"
    return None


def _no(type_: AvroType, value: Any) -> str:
    return f"{json.dumps(value)[:80]} is not of type {type_name(type_)}"
