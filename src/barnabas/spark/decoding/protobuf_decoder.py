"""Decodes Protobuf by a descriptor set, alone or behind a schema id.

`protoc --include_imports --descriptor_set_out=orders.desc orders.proto` makes the set, or a registry has it. A message needs no writer's
schema: fields are found by their numbers, unknown ones are skipped, and integers are widened. The message indexes behind the id must name
the message that the column has: in the writer's file if there is a source of schemas, and otherwise in the reader's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column
from pyspark.sql.types import DataType

from barnabas.schemas.schema import PROTOBUF
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.confluent_frame import split_frame, split_message_indexes
from barnabas.spark.decoding.descriptor_sets import descriptor_set_of, find_message, message_at, path_of
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.protobuf_types import message_type, message_value
from barnabas.spark.decoding.row_decoder import BadValue, DecodedColumn, Decoder, decoded_column
from barnabas.spark.decoding.writer_schemas import WriterSchemas

__all__ = ["column", "given_descriptors", "protobuf_decoder", "protobuf_type"]


def column(value: Column, given: GivenSchema) -> DecodedColumn:
    """Return how a column of bytes is decoded.

    Raises:
        ValueError: the schema is not valid.
    """
    descriptors = given_descriptors(given)
    kind = protobuf_type(descriptors, given.message)
    make = partial(protobuf_decoder, descriptors, given.message, framed=given.framed, source=given.source)
    make()  # so that an error of a schema is raised here, and not on an executor
    return decoded_column(value, kind, make)


def given_descriptors(given: GivenSchema) -> bytes:
    """Return the descriptor set that a caller gives.

    Raises:
        ValueError: it is none.
    """
    if given.schema is None:
        registered = given.registered(PROTOBUF)
        return descriptor_set_of(given.schemas(), registered.schema, f"schema {registered.schema_id}")
    descriptors = given.value()
    if not isinstance(descriptors, bytes):
        raise ValueError("the schema of format protobuf is a descriptor set as bytes, or the path of its file")
    return descriptors


def protobuf_type(descriptors: bytes, message: str | None) -> DataType:
    """Return Spark's type of a message.

    Args:
        descriptors: a descriptor set.
        message: the full name; None for the first message of the set's last file, which is the file that was compiled.

    Raises:
        ValueError: the descriptor set is not valid or has no such message, or Spark has no type for the message.
    """
    return message_type(find_message(descriptors, message))


def protobuf_decoder(
    descriptors: bytes, message: str | None, *, framed: bool, source: SchemaSource | None = None
) -> Decoder:
    """Return the decoder of values; arguments and errors as in `protobuf_type`.

    Args:
        framed: a schema id and message indexes are in front of each value.
        source: has the writers' schemas; None if they are not looked up.
    """
    descriptor = find_message(descriptors, message)
    message_class = GetMessageClass(descriptor)
    name, path = descriptor.full_name, path_of(descriptor)
    writers = None if source is None else WriterSchemas(source, PROTOBUF, descriptor_set_of)
    if writers is not None:
        writers.parse_known()
    names: dict[tuple[int, tuple[int, ...]], str] = {}

    def written_as(schema_id: int, at: tuple[int, ...]) -> str | None:
        """Return the name of the message that the indexes name; None if it is another one, whose name is not known."""
        if writers is None:
            return name if at == path else None
        if (schema_id, at) not in names:
            try:
                names[schema_id, at] = message_at(writers.of_id(schema_id), at).full_name
            except ValueError as error:
                raise BadValue(f"schema {schema_id}: {error}") from None
        return names[schema_id, at]

    def decode(value: bytes) -> Any:
        of_schema = ""
        if framed:
            schema_id, rest = split_frame(value)
            at, value = split_message_indexes(rest)
            of_schema = f" (schema {schema_id})"
            if (found := written_as(schema_id, at)) != name:
                other = f"another message of its file than {name}" if found is None else f"message {found}, not {name}"
                raise BadValue(f"the value is {other}{of_schema}")
        try:
            return message_value(message_class.FromString(value))
        except DecodeError:
            raise BadValue(f"the value is not a message {name}{of_schema}") from None

    return decode
