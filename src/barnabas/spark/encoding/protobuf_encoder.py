"""Encodes rows as messages of Protobuf.

A null field is not set. Where Protobuf cannot tell (a field without `optional`), a reader sees its default, as in
every language. An enum is taken by its name or its number.
"""

from __future__ import annotations

import datetime
from functools import partial
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import EncodeError, Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql.types import DataType

from barnabas.schemas.schema import PROTOBUF, Reference, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.confluent_frame import frame, message_indexes
from barnabas.spark.decoding.descriptor_sets import files_of, find_message, path_of, schema_text, well_known
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.protobuf_decoder import given_descriptors
from barnabas.spark.decoding.protobuf_types import is_map, is_timestamp, message_type
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.fitting_columns import check_columns
from barnabas.spark.encoding.row_encoder import Encoder, RowFormat
from barnabas.spark.encoding.schema_ids import SubjectNaming, reference, schema_id

__all__ = ["protobuf_encoder", "row_format"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def row_format(
    rows: DataType, given: GivenSchema, naming: SubjectNaming, references: tuple[Reference, ...], *, register: bool
) -> RowFormat:
    """Return how rows are encoded.

    Raises:
        ValueError: the schema is not valid, the registry does not give it, or the rows do not fit it.
    """
    if references:
        raise ValueError("references= is for formats avro and json: a descriptor set has its imports")
    descriptors = given_descriptors(given)
    descriptor = find_message(descriptors, given.message)
    check_columns(rows, message_type(descriptor), lambda path: True)
    prefix = b""
    if given.framed:
        if given.schema is None:
            number = given.registered(PROTOBUF).schema_id
        else:
            file = descriptor.file.name
            stored = _registered(given.schemas(), descriptors, file, register=register)
            number = schema_id(given.schemas(), naming.of(descriptor.full_name), stored, register=register)
        prefix = frame(number) + message_indexes(path_of(descriptor))
    return RowFormat(prefix, partial(protobuf_encoder, descriptors, given.message))


def _registered(source: SchemaSource, descriptors: bytes, name: str, *, register: bool) -> Schema:
    """Return a file as a registry has it; each file that it imports is a schema of the subject of the file's name."""
    file = next(each for each in files_of(descriptors) if each.name == name)
    references = [
        reference(source, each, _registered(source, descriptors, each, register=register), register=register)
        for each in file.dependency
        if not well_known(each)
    ]
    return Schema(schema_text(file), PROTOBUF, tuple(references))


def protobuf_encoder(descriptors: bytes, message: str | None) -> Encoder:
    """Return the encoder of rows.

    Raises:
        ValueError: the descriptor set is not valid or has no such message.
    """
    descriptor = find_message(descriptors, message)
    message_class = GetMessageClass(descriptor)

    def encode(row: dict[str, Any]) -> bytes:
        found = message_class()
        try:
            _fill(found, row)
            data: bytes = found.SerializeToString()
            return data
        except (EncodeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise BadValue(f"the row is not a message {descriptor.full_name}: {error}") from None

    return encode


def _fill(message: Message, row: dict[str, Any]) -> None:
    fields: Descriptor = message.DESCRIPTOR
    for name, value in row.items():
        if value is None:
            continue
        field = fields.fields_by_name[name]
        if is_map(field):
            _fill_map(getattr(message, name), field, value)
        elif field.is_repeated:
            _fill_list(getattr(message, name), field, value)
        elif field.message_type is not None:
            _fill_message(getattr(message, name), value)
        else:
            setattr(message, name, _scalar(field, value))


def _fill_message(message: Any, value: Any) -> None:
    if is_timestamp(message.DESCRIPTOR):
        microseconds = (value - _EPOCH) // datetime.timedelta(microseconds=1)
        message.seconds, left = divmod(microseconds, 1_000_000)
        message.nanos = left * 1_000
        message.SetInParent()
        return
    message.SetInParent()
    _fill(message, value)


def _fill_list(found: Any, field: FieldDescriptor, values: list[Any]) -> None:
    for value in values:
        if value is None:
            raise ValueError(f"{field.name} has a null in its list")
        if field.message_type is not None:
            _fill_message(found.add(), value)
        else:
            found.append(_scalar(field, value))


def _fill_map(found: Any, field: FieldDescriptor, values: dict[Any, Any]) -> None:
    of_key, of_value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    for key, value in values.items():
        if value is None:
            raise ValueError(f"{field.name} has a null in its map")
        if of_value.message_type is not None:
            _fill_message(found[_scalar(of_key, key)], value)
        else:
            found[_scalar(of_key, key)] = _scalar(of_value, value)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_name.get(value)
        if known is not None:
            return known.number
        if value.lstrip("-").isdecimal():
            return int(value)
        raise ValueError(f"{field.name} has no value {value}")
    return int(value) if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else value
