"""Messages of Protobuf as types of Spark, and as the values of these types.

| Protobuf | Spark |
|---|---|
| int32, sint32, sfixed32 | int |
| int64, sint64, sfixed64, uint32, fixed32 | bigint |
| uint64, fixed64 | decimal(20, 0) |
| float, double, bool, string, bytes | float, double, boolean, string, binary |
| enum | string: its name, or its number if the schema has no name for it |
| message, repeated, map | struct, array, map |
| google.protobuf.Timestamp | timestamp |

A field that is not set is null if Protobuf can tell (messages, `optional`, members of a oneof), and otherwise its
default, as in every language.
"""

from __future__ import annotations

import datetime
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import types

__all__ = ["is_map", "is_timestamp", "message_type", "message_value"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TIMESTAMP = "google.protobuf.Timestamp"
_SCALARS: dict[int, types.DataType] = {
    FieldDescriptor.CPPTYPE_INT32: types.IntegerType(),
    FieldDescriptor.CPPTYPE_INT64: types.LongType(),
    FieldDescriptor.CPPTYPE_UINT32: types.LongType(),
    FieldDescriptor.CPPTYPE_UINT64: types.DecimalType(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: types.FloatType(),
    FieldDescriptor.CPPTYPE_DOUBLE: types.DoubleType(),
    FieldDescriptor.CPPTYPE_BOOL: types.BooleanType(),
    FieldDescriptor.CPPTYPE_ENUM: types.StringType(),
    FieldDescriptor.CPPTYPE_STRING: types.StringType(),
}


def message_type(descriptor: Descriptor, within: tuple[str, ...] = ()) -> types.StructType:
    """Return the type of a message.

    Args:
        within: the messages around it.

    Raises:
        ValueError: a message contains itself.
    """
    if descriptor.full_name in within:
        raise ValueError(f"message {descriptor.full_name} contains itself, which Spark has no type for")
    inner = (*within, descriptor.full_name)
    return types.StructType([types.StructField(each.name, _field_type(each, inner)) for each in descriptor.fields])


def _field_type(field: FieldDescriptor, within: tuple[str, ...]) -> types.DataType:
    if is_map(field):
        key, value = (_single_type(field.message_type.fields_by_name[name], within) for name in ("key", "value"))
        return types.MapType(key, value)
    single = _single_type(field, within)
    return types.ArrayType(single) if field.is_repeated else single


def _single_type(field: FieldDescriptor, within: tuple[str, ...]) -> types.DataType:
    if field.message_type is not None:
        return types.TimestampType() if is_timestamp(field.message_type) else message_type(field.message_type, within)
    return types.BinaryType() if field.type == FieldDescriptor.TYPE_BYTES else _SCALARS[field.cpp_type]


def message_value(message: Any) -> dict[str, Any]:
    """Return a message as Arrow takes it for the type."""
    return {each.name: _field_value(message, each) for each in message.DESCRIPTOR.fields}


def _field_value(message: Any, field: FieldDescriptor) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if is_map(field):
        of_value = field.message_type.fields_by_name["value"]
        return [(key, _single_value(each, of_value)) for key, each in value.items()]
    if field.is_repeated:
        return [_single_value(each, field) for each in value]
    return _single_value(value, field)


def _single_value(value: Any, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        if is_timestamp(field.message_type):
            return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        return message_value(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a repeated field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_timestamp(descriptor: Descriptor) -> bool:
    """Return whether a message is a point in time, which Spark has a type for."""
    return bool(descriptor.full_name == _TIMESTAMP)
