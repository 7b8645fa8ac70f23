"""JSON as the values that an Avro writer takes: the way back from `plain_data`.

| Avro | in JSON |
|---|---|
| bytes, fixed | base64 |
| decimal | text or a number |
| date, time, timestamp | ISO 8601, or the number that Avro stores |
| union | the value of its first branch that fits, or `{"NAME": value}`, as in Avro's own JSON |

A timestamp without a zone is in UTC.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import fastavro

from barnabas.spark.decoding.bad_value import BadValue

_PRIMITIVES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
}


def avro_of_json(schema: Any, names: Mapping[str, Any], value: Any) -> Any:
    """Return a value for `fastavro`'s writer.

    Args:
        schema: parsed by `fastavro`.
        names: its named types.

    Raises:
        BadValue: the value is not of the schema.
    """
    if isinstance(schema, list):
        return _of_union(schema, names, value)
    if isinstance(schema, str):
        return avro_of_json(names[schema], names, value) if schema in names else _of_primitive(schema, value)
    kind = schema["type"]
    if "logicalType" in schema:
        return _of_logical(schema, value)
    if kind == "record":
        return _of_record(schema, names, value)
    if kind == "array" and isinstance(value, list):
        return [avro_of_json(schema["items"], names, each) for each in value]
    if kind == "map" and isinstance(value, dict):
        return {name: avro_of_json(schema["values"], names, each) for name, each in value.items()}
    if kind == "enum" and isinstance(value, str) and value in schema["symbols"]:
        return value
    if kind == "fixed":
        found = _of_primitive("bytes", value)
        if len(found) == schema["size"]:
            return found
        raise BadValue(f"{_name(schema)} has {schema['size']} bytes, not {len(found)}")
    if isinstance(kind, str) and kind not in ("array", "map", "enum"):
        return _of_primitive(kind, value)
    raise _wrong(value, schema)


def _of_record(schema: Any, names: Mapping[str, Any], value: Any) -> Any:
    if not isinstance(value, dict):
        raise _wrong(value, schema)
    known = {field["name"]: field for field in schema["fields"]}
    for name in value:
        if name not in known:
            raise BadValue(f"{_name(schema)} has no field {name!r}")
    found = {}
    for name, field in known.items():
        if name in value:
            try:
                found[name] = avro_of_json(field["type"], names, value[name])
            except BadValue as error:
                raise BadValue(f"{name}: {error}") from None
        elif "default" not in field:
            raise BadValue(f"field {name!r} of {_name(schema)} is missing, and has no default")
    return found


def _of_union(schema: list[Any], names: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        (named,) = value
        for branch in schema:
            if _name(branch) == named:
                return _branch(branch, avro_of_json(branch, names, value[named]))
    for branch in schema:
        try:
            found = avro_of_json(branch, names, value)
        except BadValue as error:
            reason = error
        else:
            return _branch(branch, found)
    others = [branch for branch in schema if branch != "null"]
    if len(others) == 1 and value is not None:
        raise reason if others[0] == schema[-1] else _wrong(value, others[0])
    raise BadValue(f"{_shown(value)} is of no branch of the union {', '.join(map(_name, schema))}")


def _branch(branch: Any, found: Any) -> Any:
    """Return a value with the name of its branch where the writer would look for a branch by the fields of a record."""
    return (_name(branch), found) if isinstance(found, dict) and _is_record(branch) else found


def _is_record(branch: Any) -> bool:
    return isinstance(branch, str) or branch["type"] == "record"


def _of_primitive(kind: str, value: Any) -> Any:
    if kind == "bytes":
        if isinstance(value, str):
            try:
                return base64.b64decode(value, validate=True)
            except ValueError:
                pass
        raise BadValue(f"{_shown(value)} is not base64, the form of bytes")
    if not isinstance(value, _PRIMITIVES.get(kind, ())) or (isinstance(value, bool) and kind != "boolean"):
        raise _wrong(value, kind)
    number: Any = value
    bits = {"int": 31, "long": 63}.get(kind)
    if bits is not None and not -(1 << bits) <= number < 1 << bits:
        raise BadValue(f"{_shown(value)} is too large for {kind}")
    return value


def _of_logical(schema: Any, value: Any) -> Any:
    logical = schema["logicalType"]
    try:
        if logical == "decimal" and isinstance(value, str | int | float) and not isinstance(value, bool):
            return Decimal(str(value))
        if isinstance(value, str):
            if logical == "date":
                return date.fromisoformat(value)
            if logical.startswith("time-"):
                return time.fromisoformat(value)
            if logical.startswith("timestamp-"):
                at = datetime.fromisoformat(value)
                return at.replace(tzinfo=UTC) if at.tzinfo is None else at
            if logical.startswith("local-timestamp-"):
                return datetime.fromisoformat(value).replace(tzinfo=None)
    except (ValueError, InvalidOperation):
        raise BadValue(f"{_shown(value)} is not a {logical}") from None
    return avro_of_json({name: each for name, each in schema.items() if name != "logicalType"}, {}, value)


def _name(schema: Any) -> str:
    if isinstance(schema, list):
        return "a union"
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or schema.get("logicalType") or schema["type"])


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _wrong(value: Any, schema: Any) -> BadValue:
    return BadValue(f"{_shown(value)} is not a value of {_name(schema)}")


def written(schema: Any, value: Any, out: Any) -> None:
    """Write a value of `avro_of_json`.

    Raises:
        BadValue: the value is not of the schema.
    """
    try:
        fastavro.schemaless_writer(out, schema, value)
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as error:
        raise BadValue(f"it is not of the schema: {error}") from None
