"""Python source for reading and writing one version of one message, compiled when first needed.

A codec that interprets a schema for every field costs ten times what straight-line code costs. So for each message and version
that is really used, a function is written and compiled; nested structs are written in place, so one call reads a whole message.
`Source` is a function under construction; `reader_source` and `writer_source` write the two kinds. What makes them fast:

- Runs of fixed-size fields become one `struct.Struct` call; a length or a count that follows joins the run.
- The one-byte case of each varint is inline; `primitives` has the rest.
- Fields outside the version get their defaults as constants.

What is read and written for each kind of field:

    field                 before the flexible version            from the flexible version
    string                int16 length (-1 null), UTF-8          uvarint length + 1 (0 null), UTF-8
    bytes, records        int32 length (-1 null), bytes          uvarint length + 1 (0 null), bytes
    array                 int32 count (-1 null), elements        uvarint count + 1 (0 null), elements
    struct                its fields                             its fields, tag buffer
    nullable struct       int8 (-1 null, 1 present), its fields  the same; tagged: uvarint in place of int8 (0 null, 1 present)

Invariants:
- A length is compared with the bytes that remain before it is used, and a count with the smallest size its elements can have,
  so that no read passes the end and no allocation exceeds a constant times the frame.
- A reader may raise `struct.error`, `IndexError` or `UnicodeDecodeError`, a writer also `TypeError` or `AttributeError`;
  `message` turns them into `MalformedMessage` and `EncodeError` at the border.
- A field the version lacks is dropped by a writer when it is ignorable or at its default, else `UnsupportedVersionField`.

Sources: Kafka's `MessageDataGenerator`, KIP-482 (flexible versions), KIP-893 (nullable structs).
"""

from __future__ import annotations

import struct
from typing import Any

from barnabas.protocol import primitives
from barnabas.protocol.errors import EncodeError, LongMessage, MalformedMessage, UnsupportedVersionField
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
SIZES = {name: struct.calcsize(">" + code) for name, code in FORMATS.items()}
NUMBERS = frozenset(FORMATS) - {"uuid", "bool"}


class Source:
    """Lines of a function under construction, and the names it uses from outside."""

    def __init__(self, spec: MessageSpec, version: int) -> None:
        self.spec = spec
        self.version = version
        self.flexible = version in spec.flexible
        self.lines: list[str] = []
        self.names: dict[str, object] = {}
        self.run: list[tuple[str, str]] = []
        self.depth = 1
        self.counter = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, prefix: str) -> str:
        """Return a local name that no other field uses."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def constant(self, prefix: str, value: object) -> str:
        """Return a name for a value from outside."""
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def is_flexible(self, field: FieldSpec) -> bool:
        return self.flexible if field.flexible is None else self.version in field.flexible

    def present(self, fields: tuple[FieldSpec, ...]) -> list[FieldSpec]:
        """Return the fields of this version outside the tag buffer, in wire order."""
        return [field for field in fields if self.version in field.versions and self.version not in field.tagged]

    def tagged(self, fields: tuple[FieldSpec, ...]) -> list[FieldSpec]:
        """Return the fields of this version inside the tag buffer, by tag."""
        tagged = [field for field in fields if self.version in field.versions and self.version in field.tagged]
        return sorted(tagged, key=lambda field: field.tag)

    def minimum_size(self, field: FieldSpec) -> int:
        """Return the fewest bytes one value of the field takes; of one element when it is an array."""
        if field.type in SIZES:
            return SIZES[field.type]
        if field.is_struct:
            return self.minimum_struct_size(self.spec.structs[field.type])
        if self.is_flexible(field):
            return 1
        return 2 if field.type == "string" else 4

    def minimum_struct_size(self, spec: StructSpec) -> int:
        total = 1 if self.flexible else 0
        for field in self.present(spec.fields):
            if field.is_array:
                total += 1 if self.is_flexible(field) else 4
            elif field.is_struct and self.version in field.nullable:
                total += 1
            else:
                total += self.minimum_size(field)
        return total

    def compile(self, head: str) -> Any:
        """Compile the function; its source is kept in `__source__` for people."""
        source = "\n".join([head, *self.lines, ""])
        namespace = {**BUILTINS, **self.names}
        exec(compile(source, f"<{self.spec.name} v{self.version}>", "exec"), namespace)
        function = namespace[head[4 : head.index("(")]]
        function.__source__ = source  # type: ignore[attr-defined]
        return function


def malformed(field: str) -> MalformedMessage:
    """Return the error for a length, a count or a null that the field cannot have."""
    return MalformedMessage(f"{field}: a length that cannot be")


def unsupported(field: str, version: int) -> UnsupportedVersionField:
    """Return the error for a field that is set but has no place in the version."""
    return UnsupportedVersionField(f"{field} is set, but version {version} cannot carry it")


BUILTINS: dict[str, object] = {
    "new": object.__new__,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "read_uvarint": primitives.read_uvarint,
    "write_uvarint": primitives.write_uvarint,
    "read_tag": primitives.read_tag,
    "skip_tags": primitives.skip_tags,
    "LongMessage": LongMessage,
    "malformed": malformed,
    "unsupported": unsupported,
    "EncodeError": EncodeError,
    "BYTES": (bytes, bytearray, memoryview),
}
