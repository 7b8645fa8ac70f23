"""Decodes Protobuf by a descriptor set, alone or behind a schema id.

`protoc --include_imports --descriptor_set_out=orders.desc orders.proto` makes the set. A message needs no writer's
schema: fields are found by their numbers, unknown ones are skipped, and integers are widened. The schema id is not
looked up, but its message indexes must name the message that the column has.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from google.protobuf import any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column
from pyspark.sql.types import DataType

from barnabas.spark.decoding.confluent_frame import split_frame, split_message_indexes
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.protobuf_types import message_type, message_value
from barnabas.spark.decoding.row_decoder import BadValue, DecodedColumn, Decoder, decoded_column
from barnabas.words.nearest import did_you_mean

__all__ = ["column", "protobuf_decoder", "protobuf_type"]

_WELL_KNOWN = (any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)


def column(value: Column, given: GivenSchema) -> DecodedColumn:
    """Return how a column of bytes is decoded.

    Raises:
        ValueError: the schema is not valid.
    """
    descriptors = given.value()
    if not isinstance(descriptors, bytes):
        raise ValueError("the schema of format protobuf is a descriptor set as bytes, or the path of its file")
    kind = protobuf_type(descriptors, given.message)
    return decoded_column(value, kind, partial(protobuf_decoder, descriptors, given.message, framed=given.framed))


def protobuf_type(descriptors: bytes, message: str | None) -> DataType:
    """Return Spark's type of a message.

    Args:
        descriptors: a descriptor set.
        message: the full name; None for the first message of the set's last file, which is the file that was compiled.

    Raises:
        ValueError: the descriptor set is not valid or has no such message, or Spark has no type for the message.
    """
    return message_type(_find(descriptors, message))


def protobuf_decoder(descriptors: bytes, message: str | None, *, framed: bool) -> Decoder:
    """Return the decoder of values; arguments and errors as in `protobuf_type`.

    Args:
        framed: a schema id and message indexes are in front of each value.
    """
    descriptor = _find(descriptors, message)
    message_class = GetMessageClass(descriptor)
    path = _path(descriptor)

    def decode(value: bytes) -> Any:
        if framed:
            found, value = split_message_indexes(split_frame(value)[1])
            if found != path:
                raise BadValue(f"the value is another message of its file than {descriptor.full_name}")
        try:
            return message_value(message_class.FromString(value))
        except DecodeError:
            raise BadValue(f"the value is not a message {descriptor.full_name}") from None

    return decode


def _find(descriptors: bytes, message: str | None) -> Descriptor:
    try:
        files = FileDescriptorSet.FromString(descriptors).file
    except DecodeError:
        files = []
    if not files:
        raise ValueError("the schema is not a valid descriptor set: make it with protoc --descriptor_set_out")
    pool = _pool(list(files))
    found: dict[str, Descriptor] = {}
    for file in files:
        for each in pool.FindFileByName(file.name).message_types_by_name.values():
            _add(found, each)
    if message is None:
        first = list(pool.FindFileByName(files[-1].name).message_types_by_name.values())
        if not first:
            raise ValueError(f"{files[-1].name} has no message: name one with message=")
        return first[0]
    if message not in found:
        raise ValueError(f"the descriptor set has no message {message}{did_you_mean(message, found)}")
    return found[message]


def _pool(files: list[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    known = {file.name for file in files}
    for module in _WELL_KNOWN:
        if module.DESCRIPTOR.name not in known:
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
            known.add(module.DESCRIPTOR.name)
    for file in files:
        if missing := [each for each in file.dependency if each not in known]:
            raise ValueError(f"the descriptor set has no {missing[0]}: make it with protoc --include_imports")
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add(found: dict[str, Descriptor], message: Descriptor) -> None:
    found[message.full_name] = message
    for nested in message.nested_types:
        _add(found, nested)


def _path(message: Descriptor) -> tuple[int, ...]:
    """Return the message indexes of a message: its place among its neighbours, behind that of its container."""
    container = message.containing_type
    if container is not None:
        return (*_path(container), [each.name for each in container.nested_types].index(message.name))
    return (list(message.file.message_types_by_name).index(message.name),)
