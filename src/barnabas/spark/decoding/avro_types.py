"""Avro schemas as types of Spark, and values of `fastavro` as values of these types.

The types are those of Spark's own `from_avro`: a union of null and a type is that type, of int and long a bigint, of
float and double a double. Times of a day stay numbers, a uuid is text. Other unions, and records that contain
themselves, have no type of Spark.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark.sql import types

__all__ = ["Convert", "converter", "spark_type"]

Convert: TypeAlias = Callable[[Any], Any]

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_PLAIN: dict[str, types.DataType] = {
    "null": types.NullType(),
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "bytes": types.BinaryType(),
    "fixed": types.BinaryType(),
    "string": types.StringType(),
    "enum": types.StringType(),
}
_LOGICAL: dict[tuple[str, str], types.DataType] = {
    ("int", "date"): types.DateType(),
    ("long", "timestamp-millis"): types.TimestampType(),
    ("long", "timestamp-micros"): types.TimestampType(),
    ("long", "local-timestamp-millis"): types.TimestampNTZType(),
    ("long", "local-timestamp-micros"): types.TimestampNTZType(),
}
_WIDER = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}


def spark_type(schema: Any, names: Mapping[str, Any], within: tuple[str, ...] = ()) -> types.DataType:
    """Return the type of a parsed schema.

    Args:
        schema: as `fastavro.parse_schema` returns it.
        names: the named schemas.
        within: the records around it.

    Raises:
        ValueError: Spark has no type for it.
    """
    schema = _simplified(schema, names)
    kind = _kind(schema)
    if kind == "record":
        if schema["name"] in within:
            raise ValueError(f"record {schema['name']} contains itself, which Spark has no type for")
        inner = (*within, schema["name"])
        fields = [types.StructField(each["name"], spark_type(each["type"], names, inner)) for each in schema["fields"]]
        return types.StructType(fields)
    if kind == "array":
        return types.ArrayType(spark_type(schema["items"], names, within))
    if kind == "map":
        return types.MapType(types.StringType(), spark_type(schema["values"], names, within))
    if isinstance(schema, Mapping):
        logical = str(schema.get("logicalType"))
        if logical == "decimal":
            return types.DecimalType(schema["precision"], schema.get("scale", 0))
        return _LOGICAL.get((kind, logical), _PLAIN[kind])
    return _PLAIN[kind]


def converter(schema: Any, names: Mapping[str, Any]) -> Convert | None:
    """Return the function from a value of fastavro to a value that Arrow takes for the type; None if they are the same.

    A default of a field, and a value whose writer knew no logical type, come as plain numbers.
    """
    schema = _simplified(schema, names)
    kind = _kind(schema)
    if kind == "record":
        inner = {each["name"]: found for each in schema["fields"] if (found := converter(each["type"], names))}
        return _or_none(lambda value: _changed(value, inner)) if inner else None
    if kind == "array":
        item = converter(schema["items"], names)
        return _or_none(lambda value: [item(each) for each in value]) if item else None
    if kind == "map":
        of_value = converter(schema["values"], names) or (lambda value: value)
        return _or_none(lambda value: [(key, of_value(each)) for key, each in value.items()])
    logical = schema.get("logicalType", "") if isinstance(schema, Mapping) else ""
    found = _of_logical(kind, logical, schema)
    return _or_none(found) if found else None


def _of_logical(kind: str, logical: str, schema: Any) -> Convert | None:
    if (kind, logical) == ("int", "date"):
        return lambda value: _EPOCH.date() + datetime.timedelta(days=value) if isinstance(value, int) else value
    if (kind, logical) in _LOGICAL:
        epoch = _EPOCH if logical.startswith("local") else _EPOCH_UTC
        unit = datetime.timedelta(**{"milliseconds" if logical.endswith("millis") else "microseconds": 1})
        return lambda value: epoch + value * unit if isinstance(value, int) else value
    if logical in ("time-millis", "time-micros"):
        per_second = 1_000 if logical == "time-millis" else 1_000_000
        return lambda value: value if isinstance(value, int) else _of_day(value, per_second)
    if logical == "decimal":
        scale = schema.get("scale", 0)
        return lambda value: value if isinstance(value, Decimal) else _decimal(value, scale)
    return str if logical == "uuid" else None


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _changed(record: dict[str, Any], converters: dict[str, Convert]) -> dict[str, Any]:
    return {**record, **{name: convert(record[name]) for name, convert in converters.items()}}


def _of_day(value: datetime.time, per_second: int) -> int:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return seconds * per_second + value.microsecond * per_second // 1_000_000


def _decimal(value: bytes | str, scale: int) -> Decimal:
    # The default of a field of bytes is text, a character for each byte.
    data = value.encode("latin-1") if isinstance(value, str) else value
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale)


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, Mapping) else schema)


def _simplified(schema: Any, names: Mapping[str, Any]) -> Any:
    """Return the schema itself of a name, and of a union the only type that is not null."""
    if isinstance(schema, str):
        return names.get(schema, schema)
    if isinstance(schema, Mapping):
        # {"type": {"type": "int"}} and {"type": "Named"} are wrapped names and types.
        inner = schema["type"]
        return schema if isinstance(inner, str) and inner not in names else _simplified(inner, names)
    kinds = [each for each in schema if _kind(each) != "null"]
    if len(kinds) == 1:
        return _simplified(kinds[0], names)
    if not kinds:
        return "null"
    wider = _WIDER.get(frozenset(_kind(each) for each in kinds))
    if wider is None:
        raise ValueError(f"the union of {', '.join(_kind(each) for each in kinds)} has no type of Spark")
    return wider
