"""The `.proto` text of a compiled file.

Confluent's clients for Python register compiled files, and those for Java, Go and JavaScript read text: a registry stores the text.
Options of an extension, groups, extensions and editions are not written; such a file is stored as it came.

Source: descriptor.proto; the Protocol Buffers language specification, proto2 and proto3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
)

__all__ = ["NotWritten", "json_name_of", "protobuf_text"]

_LABELS = {FieldDescriptorProto.LABEL_REPEATED: "repeated ", FieldDescriptorProto.LABEL_REQUIRED: "required "}
_END_OF_RANGE = 536_870_912


class NotWritten(ValueError):
    """The file has a part that is not written as text."""


def protobuf_text(file: FileDescriptorProto) -> str:
    """Return the text of a file.

    Raises:
        NotWritten: it has a part that is not written as text.
    """
    if file.syntax not in ("", "proto2", "proto3"):
        raise NotWritten(f"syntax {file.syntax}")
    if file.extension:
        raise NotWritten("extensions")
    return "\n".join(_file(file)) + "\n"


def json_name_of(name: str) -> str:
    """Return the name that a field has in JSON, if it does not say another one."""
    first, *others = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)


def _file(file: FileDescriptorProto) -> Iterator[str]:
    yield f'syntax = "{file.syntax or "proto2"}";'
    if file.package:
        yield f"package {file.package};"
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    for number, name in enumerate(file.dependency):
        yield f"import {'public ' if number in public else 'weak ' if number in weak else ''}{_quoted(name)};"
    for name, value in _options(file.options):
        yield f"option {name} = {value};"
    is_proto3 = file.syntax == "proto3"
    for enum in file.enum_type:
        yield from _enum(enum)
    for message in file.message_type:
        yield from _message(message, is_proto3)
    for service in file.service:
        yield from _service(service)


def _message(message: DescriptorProto, is_proto3: bool) -> Iterator[str]:
    if message.extension or message.extension_range:
        raise NotWritten("extensions")
    maps = {each.name: each for each in message.nested_type if each.options.map_entry}
    yield f"message {message.name} {{"
    for name, value in _options(message.options):
        yield f"  option {name} = {value};"
    written: set[int] = set()
    # A map is a nested message too, and a record names a message by its place among all of them: their order is kept.
    nested = list(message.nested_type)
    for field in message.field:
        entry = _map_of(field, maps)
        while entry is not None and nested and nested[0].name != entry.name:
            yield from _indented(_message(nested.pop(0), is_proto3))
        if entry is not None:
            del nested[:1]
        if field.HasField("oneof_index") and not field.proto3_optional:
            if field.oneof_index not in written:
                written.add(field.oneof_index)
                members = [each for each in message.field if _is_in(each, field.oneof_index)]
                yield from _indented(_oneof(message.oneof_decl[field.oneof_index], members, maps))
        else:
            yield f"  {_label(field, maps, is_proto3)}{_field(field, maps)}"
    for enum in message.enum_type:
        yield from _indented(_enum(enum))
    for each in nested:
        yield from _indented(_message(each, is_proto3))
    ranges = [_range(each.start, each.end - 1, _END_OF_RANGE - 1) for each in message.reserved_range]
    yield from _reserved(ranges, message.reserved_name)
    yield "}"


def _is_in(field: FieldDescriptorProto, oneof: int) -> bool:
    return bool(field.HasField("oneof_index") and field.oneof_index == oneof and not field.proto3_optional)


def _oneof(
    oneof: OneofDescriptorProto, members: list[FieldDescriptorProto], maps: dict[str, DescriptorProto]
) -> Iterator[str]:
    yield f"oneof {oneof.name} {{"
    for name, value in _options(oneof.options):
        yield f"  option {name} = {value};"
    for field in members:
        yield f"  {_field(field, maps)}"
    yield "}"


def _label(field: FieldDescriptorProto, maps: dict[str, DescriptorProto], is_proto3: bool) -> str:
    if _map_of(field, maps) is not None:
        return ""
    if field.label == FieldDescriptorProto.LABEL_OPTIONAL:
        return "optional " if field.proto3_optional or not is_proto3 else ""
    return _LABELS[field.label]


def _field(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> str:
    entry = _map_of(field, maps)
    if entry is None:
        kind = _type(field)
    else:
        key, value = entry.field
        kind = f"map<{_type(key)}, {_type(value)}>"
    options = _options(field.options)
    if field.HasField("default_value"):
        options.insert(0, ("default", _default(field)))
    if field.HasField("json_name") and field.json_name != json_name_of(field.name):
        options.append(("json_name", _quoted(field.json_name)))
    shown = f" [{', '.join(f'{name} = {value}' for name, value in options)}]" if options else ""
    return f"{kind} {field.name} = {field.number}{shown};"


def _map_of(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> DescriptorProto | None:
    is_message = field.type == FieldDescriptorProto.TYPE_MESSAGE
    return maps.get(field.type_name.rpartition(".")[2]) if is_message else None


def _type(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_GROUP:
        raise NotWritten("groups")
    if field.type_name:
        return str(field.type_name)
    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _default(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return _quoted(field.default_value)
    # The compiler has escaped the default of bytes.
    return f'"{field.default_value}"' if field.type == FieldDescriptorProto.TYPE_BYTES else str(field.default_value)


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for name, value in _options(enum.options):
        yield f"  option {name} = {value};"
    for each in enum.value:
        options = _options(each.options)
        shown = f" [{', '.join(f'{name} = {value}' for name, value in options)}]" if options else ""
        yield f"  {each.name} = {each.number}{shown};"
    yield from _reserved([_range(each.start, each.end, 2**31 - 1) for each in enum.reserved_range], enum.reserved_name)
    yield "}"


def _service(service: ServiceDescriptorProto) -> Iterator[str]:
    yield f"service {service.name} {{"
    for name, value in _options(service.options):
        yield f"  option {name} = {value};"
    for each in service.method:
        taken = f"{'stream ' if each.client_streaming else ''}{each.input_type}"
        given = f"{'stream ' if each.server_streaming else ''}{each.output_type}"
        yield f"  rpc {each.name} ({taken}) returns ({given}) {{"
        for name, value in _options(each.options):
            yield f"    option {name} = {value};"
        yield "  }"
    yield "}"


def _reserved(ranges: list[str], names: Any) -> Iterator[str]:
    if ranges:
        yield f"  reserved {', '.join(ranges)};"
    if names:
        yield f"  reserved {', '.join(map(_quoted, names))};"


def _range(first: int, last: int, most: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last == most else last}"


def _options(options: Any) -> list[tuple[str, str]]:
    """Return the names and values of options that are set."""
    known = type(options)()
    known.CopyFrom(options)
    known.DiscardUnknownFields()
    if known.ByteSize() != options.ByteSize():
        raise NotWritten("options of an extension")
    found = []
    for field, value in options.ListFields():
        if field.name == "map_entry":
            continue
        if field.message_type is not None or not isinstance(value, bool | int | float | str):
            raise NotWritten(f"option {field.name}")
        if field.enum_type is not None:
            shown = field.enum_type.values_by_number[value].name
        elif isinstance(value, bool):
            shown = str(value).lower()
        else:
            shown = _quoted(value) if isinstance(value, str) else str(value)
        found.append((field.name, shown))
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
