"""Writes the function that writes one version of one message; `codec` has the layout and the rules.

There are two kinds. The first appends to a byte array. The second makes a list of parts, in which records that are in a file
stay slices, so that a response can be sent without reading them.

Invariants:
- `run` holds fixed-size values that the wire has next and the source does not have yet; whatever touches `out` flushes it first.
- A tagged field is written into a separate byte array, since its size precedes it; a field at its default is not written.

Source: Kafka's `MessageDataGenerator`; KIP-482.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from barnabas.protocol.codec import FORMATS, NUMBERS, Source
from barnabas.protocol.primitives import RecordSlice
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec

Writer = Callable[[bytearray, Any], None]
PartsWriter = Callable[[Any], "list[bytearray | RecordSlice]"]


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
        """Return an expression that is true when the field is not at its default."""
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
