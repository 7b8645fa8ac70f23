"""Descriptor sets without protoc."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

F = FieldDescriptorProto


def message(name: str, /, **fields: Any) -> DescriptorProto:
    """Return a message; a field is its number and its type, a message's or an enum's name, or a message that repeats."""
    made = DescriptorProto(name=name)
    for key, (number, kind, *more) in fields.items():
        field = made.field.add(name=key, number=number, label=F.LABEL_OPTIONAL)
        if "repeated" in more:
            field.label = F.LABEL_REPEATED
        if "optional" in more:
            field.proto3_optional = True
            field.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{key}")
        if isinstance(kind, str):
            field.type_name = kind
            field.type = F.TYPE_ENUM if "enum" in more else F.TYPE_MESSAGE
        else:
            field.type = kind
    return made


def descriptor_set(*messages: DescriptorProto, dependencies: tuple[str, ...] = (), **more: Any) -> bytes:
    file = FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", message_type=messages, dependency=dependencies, **more
    )
    return bytes(FileDescriptorSet(file=[file]).SerializeToString())
