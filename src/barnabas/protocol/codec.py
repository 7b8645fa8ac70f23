"""Python source for reading and writing one version of one message, compiled when first needed.

A codec that interprets a schema for every field costs ten times what straight-line code costs. So for each message and version
that is really used, this module writes two functions and compiles them; nested structs are written in place, so one call reads
a whole message. What makes them fast:

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

Plane: data, pure. Sources: Kafka's `MessageDataGenerator`, KIP-482 (flexible versions), KIP-893 (nullable structs).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.protocol import primitives
from barnabas.protocol.errors import EncodeError, MalformedMessage, UnsupportedVersionField
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
Reader = Callable[[memoryview, int, int], "tuple[Any, int]"]
Writer = Callable[[bytearray, Any], None]
PartsWriter = Callable[[Any], "list[bytearray | primitives.RecordSlice]"]


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
        """A local name that no other field uses."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def constant(self, prefix: str, value: object) -> str:
        """A name for a value from outside."""
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def is_flexible(self, field: FieldSpec) -> bool:
        return self.flexible if field.flexible is None else self.version in field.flexible

    def present(self, fields: tuple[FieldSpec, ...]) -> list[FieldSpec]:
        """The fields of this version outside the tag buffer, in wire order."""
        return [field for field in fields if self.version in field.versions and self.version not in field.tagged]

    def tagged(self, fields: tuple[FieldSpec, ...]) -> list[FieldSpec]:
        """The fields of this version inside the tag buffer, by tag."""
        tagged = [field for field in fields if self.version in field.versions and self.version in field.tagged]
        return sorted(tagged, key=lambda field: field.tag)

    def minimum_size(self, field: FieldSpec) -> int:
        """The fewest bytes one value of the field takes; of one element when it is an array."""
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
    """The error for a length, a count or a null that the field cannot have."""
    return MalformedMessage(f"{field}: a length that cannot be")


def unsupported(field: str, version: int) -> UnsupportedVersionField:
    """The error for a field that is set but has no place in the version."""
    return UnsupportedVersionField(f"{field} is set, but version {version} cannot carry it")


BUILTINS: dict[str, object] = {
    "new": object.__new__,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "read_uvarint": primitives.read_uvarint,
    "write_uvarint": primitives.write_uvarint,
    "read_tag": primitives.read_tag,
    "skip_tags": primitives.skip_tags,
    "malformed": malformed,
    "unsupported": unsupported,
    "EncodeError": EncodeError,
    "BYTES": (bytes, bytearray, memoryview),
}


class ReaderSource(Source):
    """Writes the function that reads one version of one message."""

    def __init__(self, spec: MessageSpec, version: int, classes: Mapping[str, type]) -> None:
        super().__init__(spec, version)
        self.classes = classes

    def build(self) -> Reader:
        self.struct(self.spec.root, "message")
        self.flush()
        self.add("return message, pos")
        function: Reader = self.compile("def read(buf, pos, end):")
        return function

    def flush(self) -> None:
        """Write the pending run of fixed-size fields as one call."""
        if not self.run:
            return
        if [code for code, _ in self.run] == ["B"]:
            self.add(f"{self.run[0][1]} = buf[pos]")
            self.add("pos += 1")
        else:
            layout = struct.Struct(">" + "".join(code for code, _ in self.run))
            targets = ", ".join(target for _, target in self.run)
            self.add(f"{targets}, = {self.constant('unpack', layout.unpack_from)}(buf, pos)")
            self.add(f"pos += {layout.size}")
        self.run.clear()

    def struct(self, spec: StructSpec, name: str) -> None:
        """Read a struct into a fresh local name."""
        self.add(f"{name} = new({self.constant('class_', self.classes[spec.name])})")
        absent = [field for field in spec.fields if self.version not in field.versions]
        for field in [*absent, *self.tagged(spec.fields)]:
            self.add(f"{name}.{field.name} = {self.default(field)}")
        for field in self.present(spec.fields):
            self.field(field, f"{name}.{field.name}")
        if self.flexible:
            self.tag_buffer(spec, name)

    def default(self, field: FieldSpec) -> str:
        """An expression for the default of a field."""
        if field.default is None:
            return "None"
        if field.is_array:
            return "[]"
        if field.is_struct:
            return self.constant("class_", self.classes[field.type]) + "()"
        return repr(field.default)

    def field(self, field: FieldSpec, target: str) -> None:
        """Read a field that is not tagged."""
        if field.is_array:
            self.array(field, target)
        elif field.type in FORMATS:
            self.run.append((FORMATS[field.type], target))
        elif field.is_struct:
            self.nested(field, target, tagged=False)
        else:
            self.variable(field, target, self.version in field.nullable)

    def length(self, field: FieldSpec, code: str) -> tuple[str, int]:
        """Read a length or a count; returns its name, and what the wire adds to it."""
        name = self.fresh("n")
        self.run.append(("B" if self.is_flexible(field) else code, name))
        self.flush()
        if not self.is_flexible(field):
            return name, 0
        self.add(f"if {name} > 127:")
        self.add(f"    {name}, pos = read_uvarint(buf, pos - 1, end)")
        return name, 1

    def null(self, name: str, extra: int, target: str) -> None:
        """Begin the branch for a value that is not null."""
        self.add(f"if {name} == {extra - 1}:")
        self.add(f"    {target} = None")
        self.add("else:")
        self.depth += 1

    def variable(self, field: FieldSpec, target: str, nullable: bool) -> None:
        """Read a string, bytes or records."""
        name, extra = self.length(field, "h" if field.type == "string" else "i")
        if nullable:
            self.null(name, extra, target)
        stop = self.fresh("stop")
        self.add(f"{stop} = pos + {name}" + " - 1" * extra)
        self.add(f"if {stop} > end or {name} < {extra}:")
        self.add(f"    raise malformed({field.kafka_name!r})")
        view = f"buf[pos:{stop}]"
        self.add(
            f"{target} = " + {"string": f"str({view}, 'utf-8')", "bytes": f"bytes({view})", "records": view}[field.type]
        )
        self.add(f"pos = {stop}")
        if nullable:
            self.depth -= 1

    def array(self, field: FieldSpec, target: str) -> None:
        nullable = self.version in field.nullable
        name, extra = self.length(field, "i")
        if nullable:
            self.null(name, extra, target)
        smallest = self.minimum_size(field)
        assert smallest > 0, f"{self.spec.name} {field.kafka_name}: elements of no size"
        if extra:
            self.add(f"{name} -= 1")
        self.add(f"if {name} < 0 or {name} * {smallest} > end - pos:")
        self.add(f"    raise malformed({field.kafka_name!r})")
        if field.type in NUMBERS:
            self.add(f"{target} = list(unpack_from(f'>{{{name}}}{FORMATS[field.type]}', buf, pos))")
            self.add(f"pos += {name} * {smallest}")
        else:
            self.elements(field, name, target)
        if nullable:
            self.depth -= 1

    def elements(self, field: FieldSpec, count: str, target: str) -> None:
        """Read the elements of an array, one after the other."""
        items, item = self.fresh("items"), self.fresh("item")
        self.add(f"{target} = {items} = []")
        self.add(f"for _ in range({count}):")
        self.depth += 1
        if field.is_struct:
            self.struct(self.spec.structs[field.type], item)
        elif field.type in FORMATS:
            self.run.append((FORMATS[field.type], item))
        else:
            self.variable(field, item, nullable=False)
        self.flush()
        self.add(f"{items}.append({item})")
        self.depth -= 1

    def nested(self, field: FieldSpec, target: str, tagged: bool) -> None:
        """Read a struct that is a field."""
        nullable = self.version in field.nullable
        if nullable:
            mark = self.fresh("mark")
            self.run.append(("B" if tagged else "b", mark))
            self.flush()
            self.add(f"if {mark} {'== 0' if tagged else '< 0'}:")
            self.add(f"    {target} = None")
            self.add("else:")
            self.depth += 1
        name = self.fresh("item")
        self.struct(self.spec.structs[field.type], name)
        self.add(f"{target} = {name}")
        if nullable:
            self.flush()
            self.depth -= 1

    def tag_buffer(self, spec: StructSpec, name: str) -> None:
        """Read the tagged fields that are known, skip the others."""
        count = self.fresh("tags")
        self.run.append(("B", count))
        self.flush()
        tagged = self.tagged(spec.fields)
        self.add(f"if {count}:")
        self.depth += 1
        if not tagged:
            self.add("pos = skip_tags(buf, pos - 1, end)")
        else:
            tag, size, stop = self.fresh("tag"), self.fresh("size"), self.fresh("stop")
            self.add(f"if {count} > 127:")
            self.add(f"    {count}, pos = read_uvarint(buf, pos - 1, end)")
            self.add(f"{tag} = -1")
            self.add(f"for _ in range({count}):")
            self.depth += 1
            self.add(f"{tag}, {size}, pos = read_tag(buf, pos, end, {tag})")
            self.add(f"{stop} = pos + {size}")
            for position, field in enumerate(tagged):
                self.add(f"{'el' if position else ''}if {tag} == {field.tag}:")
                self.depth += 1
                if field.is_struct and not field.is_array:
                    self.nested(field, f"{name}.{field.name}", tagged=True)
                else:
                    self.field(field, f"{name}.{field.name}")
                self.flush()
                self.depth -= 1
            self.add("else:")
            self.add(f"    pos = {stop}")
            self.add(f"if pos != {stop}:")
            self.add(f"    raise malformed({spec.name + ' tag'!r})")
            self.depth -= 1
        self.depth -= 1


class WriterSource(Source):
    """Writes the function that writes one version of one message.

    With `parts`, records that are a `RecordSlice` stay themselves between two byte arrays; without, they are read.
    """

    def __init__(self, spec: MessageSpec, version: int, parts: bool) -> None:
        super().__init__(spec, version)
        self.parts = parts

    def build(self) -> Any:
        if self.parts:
            self.add("parts = []")
            self.add("out = bytearray()")
        self.struct(self.spec.root, "message")
        self.flush()
        if not self.parts:
            return self.compile("def write(out, message):")
        self.add("if out:")
        self.add("    parts.append(out)")
        self.add("return parts")
        return self.compile("def write(message):")

    def flush(self) -> None:
        """Write the pending run of fixed-size fields as one call."""
        if not self.run:
            return
        if [code for code, _ in self.run] == ["x"]:
            self.add("out.append(0)")
        else:
            layout = struct.Struct(">" + "".join(code for code, _ in self.run))
            values = ", ".join(value for _, value in self.run if value)
            self.add(f"out += {self.constant('pack', layout.pack)}({values})")
        self.run.clear()

    def struct(self, spec: StructSpec, name: str) -> None:
        if not self.present(spec.fields):
            self.add("pass")
        for field in spec.fields:
            if self.version not in field.versions and not field.ignorable:
                self.add(f"if {self.differs(field, name)}:")
                self.add(f"    raise unsupported({spec.name + '.' + field.name!r}, {self.version})")
        for field in self.present(spec.fields):
            self.field(field, f"{name}.{field.name}")
        if self.flexible:
            self.tag_buffer(spec, name)

    def differs(self, field: FieldSpec, name: str) -> str:
        """An expression that is true when the field is not at its default."""
        value = f"{name}.{field.name}"
        if field.default is None:
            return f"{value} is not None"
        if field.is_array:
            return f"{value} is None or {value}" if field.nullable.high >= 0 else value
        if not field.is_struct:
            return f"{value} != {field.default!r}"
        parts = [self.differs(child, value) for child in self.spec.structs[field.type].fields]
        return " or ".join([f"{value} is None", *parts] if field.nullable.high >= 0 else parts)

    def field(self, field: FieldSpec, value: str) -> None:
        """Write a field that is not tagged, or the body of one that is."""
        if field.is_array:
            self.array(field, value)
        elif field.type in FORMATS:
            self.fixed(field, value)
        elif field.is_struct:
            self.nested(field, value, tagged=False)
        elif field.type == "records":
            self.records(field, value)
        else:
            self.variable(field, value, self.version in field.nullable)

    def fixed(self, field: FieldSpec, value: str) -> None:
        if field.type == "uuid":
            # struct would pad or cut it in silence.
            self.add(f"if len({value}) != 16:")
            self.add(f"    raise EncodeError({field.kafka_name + ': a uuid has 16 bytes'!r})")
        self.run.append((FORMATS[field.type], value))

    def length(self, field: FieldSpec, code: str, length: str) -> None:
        """Write a length or a count, -1 for null."""
        if not self.is_flexible(field):
            self.run.append((code, length))
            self.flush()
            return
        self.flush()
        name = self.fresh("n")
        self.add(f"{name} = {length} + 1")
        self.add(f"if {name} < 128:")
        self.add(f"    out.append({name})")
        self.add("else:")
        self.add(f"    write_uvarint(out, {name})")

    def variable(self, field: FieldSpec, value: str, nullable: bool) -> None:
        """Write a string or bytes."""
        local = self.fresh("value")
        encoded = f"{value}.encode()" if field.type == "string" else value
        if nullable:
            self.add(f"{local} = b'' if {value} is None else {encoded}")
        else:
            self.add(f"{local} = {encoded}")
        length = f"(-1 if {value} is None else len({local}))" if nullable else f"len({local})"
        self.length(field, "h" if field.type == "string" else "i", length)
        self.add(f"out += {local}")

    def records(self, field: FieldSpec, value: str) -> None:
        """Write records: bytes, nothing, or a slice of a file."""
        local, size = self.fresh("records"), self.fresh("size")
        self.add(f"{local} = {value}")
        if self.version in field.nullable:
            self.add(f"if {local} is None:")
            self.add(f"    {size} = -1")
            self.add(f"    {local} = b''")
            self.add(f"elif isinstance({local}, BYTES):")
        else:
            self.add(f"if isinstance({local}, BYTES):")
        self.add(f"    {size} = len({local})")
        self.add("else:")
        if not self.parts:
            self.add(f"    {local} = {local}.read()")
            self.add(f"    {size} = len({local})")
            self.length(field, "i", size)
            self.add(f"out += {local}")
            return
        self.add(f"    {size} = {local}.size")
        self.length(field, "i", size)
        self.add(f"if {size} > 0:")
        self.add(f"    if isinstance({local}, BYTES):")
        self.add(f"        out += {local}")
        self.add("    else:")
        self.add("        parts.append(out)")
        self.add(f"        parts.append({local})")
        self.add("        out = bytearray()")

    def array(self, field: FieldSpec, value: str) -> None:
        local = self.fresh("items")
        self.add(f"{local} = {value}")
        nullable = self.version in field.nullable
        self.length(field, "i", f"(-1 if {local} is None else len({local}))" if nullable else f"len({local})")
        self.add(f"if {local}:")
        self.depth += 1
        if field.type in NUMBERS:
            self.add(f"out += pack(f'>{{len({local})}}{FORMATS[field.type]}', *{local})")
        else:
            item = self.fresh("item")
            self.add(f"for {item} in {local}:")
            self.depth += 1
            if field.is_struct:
                self.struct(self.spec.structs[field.type], item)
            elif field.type in FORMATS:
                self.fixed(field, item)
            else:
                self.variable(field, item, nullable=False)
            self.flush()
            self.depth -= 1
        self.depth -= 1

    def nested(self, field: FieldSpec, value: str, tagged: bool) -> None:
        """Write a struct that is a field."""
        local = self.fresh("item")
        self.add(f"{local} = {value}")
        spec = self.spec.structs[field.type]
        if self.version not in field.nullable:
            self.struct(spec, local)
            return
        self.flush()
        self.add(f"if {local} is None:")
        self.add(f"    out.append({'0' if tagged else '255'})")
        self.add("else:")
        self.depth += 1
        self.run.append(("B", "1"))
        self.struct(spec, local)
        self.flush()
        self.depth -= 1

    def tag_buffer(self, spec: StructSpec, name: str) -> None:
        """Write the tagged fields that are not at their default, by tag."""
        tagged = self.tagged(spec.fields)
        if not tagged:
            self.run.append(("x", ""))
            return
        self.flush()
        flags = [self.fresh("set") for _ in tagged]
        for flag, field in zip(flags, tagged, strict=True):
            self.add(f"{flag} = {self.differs(field, name)}")
        self.add(f"if {' or '.join(flags)}:")
        self.depth += 1
        self.add("out.append(" + " + ".join(f"bool({flag})" for flag in flags) + ")")
        for flag, field in zip(flags, tagged, strict=True):
            self.add(f"if {flag}:")
            self.depth += 1
            outer = self.fresh("outer")
            self.add(f"write_uvarint(out, {field.tag})")
            self.add(f"{outer} = out")
            self.add("out = bytearray()")
            if field.is_struct and not field.is_array:
                self.nested(field, f"{name}.{field.name}", tagged=True)
            else:
                assert field.type != "records", "a slice could not be placed within a tagged field"
                self.field(field, f"{name}.{field.name}")
            self.flush()
            self.add(f"write_uvarint({outer}, len(out))")
            self.add(f"{outer} += out")
            self.add(f"out = {outer}")
            self.depth -= 1
        self.depth -= 1
        self.add("else:")
        self.add("    out.append(0)")
