"""Protobuf's compiled files: sets of them, the messages in them, and a message's place in its file.

A registry has each file as a schema of its own, and the files that it imports as references, named by the path of the import. A set has
them all, each behind those that it imports.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from barnabas.schemas.references import needed_by_schema
from barnabas.schemas.schema import Schema
from barnabas.schemas.source import SchemaSource
from barnabas.words.nearest import did_you_mean

__all__ = ["descriptor_set_of", "files_of", "find_message", "message_at", "path_of", "schema_text", "well_known"]

_WELL_KNOWN = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        any_pb2, source_context_pb2, type_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2,
        wrappers_pb2,
    )
}  # fmt: skip


def well_known(name: str) -> bool:
    """Return whether a file comes with every Protobuf library, so that no registry needs to have it."""
    return name in _WELL_KNOWN


def files_of(descriptors: bytes) -> list[FileDescriptorProto]:
    """Return the files of a descriptor set; the last one is the file that was compiled.

    Raises:
        ValueError: it is not a valid descriptor set.
    """
    try:
        files = list(FileDescriptorSet.FromString(descriptors).file)
    except DecodeError:
        files = []
    if not files:
        raise ValueError("the schema is not a valid descriptor set: make it with protoc --descriptor_set_out")
    return files


def descriptor_set_of(source: SchemaSource, schema: Schema, what: str) -> bytes:
    """Return a schema of a registry, and the files that it imports, as a descriptor set.

    Args:
        what: names the schema in an error.

    Raises:
        SchemaError: a reference cannot be resolved.
        ValueError: the registry has not returned a compiled file.
    """
    needed = needed_by_schema(source, schema)
    # An import is found by its path, and a compiled file may have another name in it: Confluent's registry writes "default".
    files = [_file(each, f"the import {name} of {what}", name) for name, each in needed if not well_known(name)]
    found: bytes = FileDescriptorSet(file=[*files, _file(schema, what, None)]).SerializeToString()
    return found


def _file(schema: Schema, what: str, name: str | None) -> FileDescriptorProto:
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (ValueError, DecodeError):
        raise ValueError(
            f"{what} is not a compiled file, so the registry does not serve format=serialized: give a descriptor set with schema=, and "
            "leave out schemas="
        ) from None
    if name is not None:
        file.name = name
    return file


def schema_text(file: FileDescriptorProto) -> str:
    """Return a file as a registry takes it."""
    return base64.b64encode(file.SerializeToString()).decode()


def find_message(descriptors: bytes, message: str | None) -> Descriptor:
    """Return a message by its full name; None is the first message of the file that was compiled.

    Raises:
        ValueError: the descriptor set is not valid or has no such message.
    """
    files = files_of(descriptors)
    pool = _pool(files)
    found: dict[str, Descriptor] = {}
    for file in files:
        for each in pool.FindFileByName(file.name).message_types_by_name.values():
            _add(found, each)
    if message is None:
        return message_at(descriptors, (0,))
    if message not in found:
        raise ValueError(f"the descriptor set has no message {message}{did_you_mean(message, found)}")
    return found[message]


def message_at(descriptors: bytes, path: tuple[int, ...]) -> Descriptor:
    """Return a message of the file that was compiled by its place.

    Raises:
        ValueError: the descriptor set is not valid or has no such message.
    """
    files = files_of(descriptors)
    messages = list(_pool(files).FindFileByName(files[-1].name).message_types_by_name.values())
    if not messages:
        raise ValueError(f"{files[-1].name} has no message: name one with message=")
    try:
        found = messages[path[0]]
        for index in path[1:]:
            found = found.nested_types[index]
    except IndexError:
        raise ValueError(f"{files[-1].name} has no message at {list(path)}") from None
    return found


def path_of(message: Descriptor) -> tuple[int, ...]:
    """Return the message indexes of a message: its place among its neighbours, behind that of its container."""
    container = message.containing_type
    if container is not None:
        return (*path_of(container), [each.name for each in container.nested_types].index(message.name))
    return (list(message.file.message_types_by_name).index(message.name),)


def _pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    files = list(files)
    known = {file.name for file in files}
    for name, descriptor in _WELL_KNOWN.items():
        if name not in known:
            pool.AddSerializedFile(descriptor.serialized_pb)
            known.add(name)
    for file in files:
        if missing := [each for each in file.dependency if each not in known]:
            raise ValueError(f"the descriptor set has no {missing[0]}: make it with protoc --include_imports")
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise ValueError(f"{file.name} is not a valid file of Protobuf: {error}") from None
    return pool


def _add(found: dict[str, Descriptor], message: Descriptor) -> None:
    found[message.full_name] = message
    for nested in message.nested_types:
        _add(found, nested)
