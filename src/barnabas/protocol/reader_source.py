"""Writes the function that reads one version of one message; `codec` has the layout and the rules.

The function takes a view, a position and the end, and returns the message and the position after it. It looks like this, here for a
request of one string and one array of numbers before the flexible version:

    def read(buf, pos, end):
        message = new(class_1)
        n2, = unpack3(buf, pos)
        pos += 2
        stop4 = pos + n2
        if stop4 > end or n2 < 0:
            raise malformed('Name')
        message.name = str(buf[pos:stop4], 'utf-8')
        …
        return message, pos

Invariants:
- `run` holds fixed-size fields that the wire has next and the source does not have yet; whatever looks at `pos` flushes it first.
- Fields outside the version and tagged fields get their defaults before anything is read into them.

Source: Kafka's `MessageDataGenerator`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.protocol.codec import FORMATS, NUMBERS, Source
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec

Reader = Callable[[memoryview, int, int, int], "tuple[Any, int]"]


UNCOUNTED = 1
"""Arrays of one element do not count: what holds them counts."""

MANY_TAGS = 1 << 20
"""The count for a tag buffer whose number of tags takes more than one byte; no message defines so many."""


class ReaderSource(Source):
    """Writes the function that reads one version of one message.

    The function raises `LongMessage` when the message has more elements, in all its arrays, than its last argument says. It looks at
    the counts alone, before it reads the elements.
    """

    def __init__(self, spec: MessageSpec, version: int, classes: Mapping[str, type]) -> None:
        super().__init__(spec, version)
        self.classes = classes

    def build(self) -> Reader:
        self.struct(self.spec.root, "message")
        self.flush()
        self.add("return message, pos")
        function: Reader = self.compile("def read(buf, pos, end, budget):")
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
        """Return an expression for the default of a field."""
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
        """Read a length or a count; return its name, and the number that the wire adds to it."""
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
        # Most arrays are short, and need only this comparison.
        self.add(f"if {name} > {UNCOUNTED}:")
        self.add(f"    budget -= {name}")
        self.add("    if budget < 0:")
        self.add("        raise LongMessage")
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
        self.add(f"budget -= {count} if {count} < 128 else {MANY_TAGS}")
        self.add("if budget < 0:")
        self.add("    raise LongMessage")
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
