"""Messages with values that hurt: limits of numbers, empty and long strings, names that mean something, nulls, nested arrays."""

from __future__ import annotations

from random import Random
from typing import Any

from barnabas.protocol.message import Message
from barnabas.protocol.schema import FieldSpec, StructSpec

Names = dict[str, list[Any]]
"""Values that mean something to the node, by the field's name or its type."""

INTEGERS = {
    "int8": (-128, 127),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
TEXTS = [
    "",
    "a",
    "t",
    "absent",
    "-",
    ".",
    "..",
    "a/b",
    "ü" * 20,
    "x" * 249,
    "x" * 250,
    "\n\x1b[2J",
    "\0",
    "{",
    "(a+)+$",
    " ",
]
SMALL = (-2, -1, 0, 1, 2, 3, 100)


class Values:
    """Makes messages.

    Args:
        random: the only source of chance.
        names: values that mean something, by the name of a field.
        meaningful: how often a field whose name is known gets such a value.
    """

    def __init__(self, random: Random, names: Names | None = None, meaningful: float = 0.85) -> None:
        self.random = random
        self.names = names or {}
        self.meaningful = meaningful

    def message(self, message_class: type[Message], version: int) -> Any:
        """Return a message that one version can carry."""
        return self._struct(message_class, message_class.SPEC.root, message_class, version)

    def _struct(self, message_class: type[Message], spec: StructSpec, owner: Any, version: int) -> Any:
        values = {}
        for field in spec.fields:
            present = version in field.versions or version in field.tagged
            # A tagged field is left out as often as not: clients that do not know it do the same.
            if present and not (version in field.tagged and self.random.random() < 0.5):
                values[field.name] = self._value(message_class, field, version)
        return owner(**values)

    def _value(self, message_class: type[Message], field: FieldSpec, version: int) -> Any:
        random = self.random
        if version in field.nullable and random.random() < 0.1:
            return None
        known = self._known(field)
        if known is not None and random.random() < self.meaningful and not field.is_array:
            return random.choice(known)
        if not field.is_array:
            return self._one(message_class, field, version)
        if field.is_struct and field.type not in message_class.SPEC.structs:
            return []
        count = random.choice((0, 1, 1, 1, 2, 3)) if random.random() < 0.98 else 40
        if known is not None and random.random() < self.meaningful:
            return [random.choice(known) for _ in range(count)]
        return [self._one(message_class, field, version) for _ in range(count)]

    def _known(self, field: FieldSpec) -> list[Any] | None:
        """Return the values that mean something for this field; None if there are none of its type."""
        if field.is_struct or field.name not in self.names:
            return None
        types = {"string": str, "bool": bool, "bytes": bytes, "records": bytes, "uuid": bytes}
        wanted = types.get(field.type, int)
        # Null is for strings that may be null in some version; the encoder refuses it elsewhere, and another is made.
        return [each for each in self.names[field.name] if isinstance(each, wanted) or each is None] or None

    def _one(self, message_class: type[Message], field: FieldSpec, version: int) -> Any:
        random = self.random
        kind = field.type
        if field.is_struct:
            return self._struct(message_class, message_class.SPEC.structs[kind], getattr(message_class, kind), version)
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            if random.random() < 0.7:
                return min(max(random.choice(SMALL), low), high)
            return random.choice((low, high, random.randint(low, high)))
        if kind == "string":
            return random.choice(TEXTS)
        if kind == "bool":
            return random.random() < 0.5
        if kind == "uuid":
            return random.choice((bytes(16), b"\xff" * 16, random.randbytes(16)))
        if kind == "float64":
            return random.choice((0.0, -1.0, 1e308, float("inf"), 1.5))
        # Bytes and records.
        return random.choice((b"", b"\0", random.randbytes(random.randrange(80)), b"\xff" * 61))


def mutated(random: Random, data: bytes, others: list[bytes]) -> bytes:
    """Return bytes with a few changes: bits, lengths, cuts, repeats, and pieces of other frames."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        kind = random.randrange(8)
        at = random.randrange(len(changed)) if changed else 0
        if kind == 0 and changed:
            changed[at] ^= 1 << random.randrange(8)
        elif kind == 1 and changed:
            changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            changed[at : at + 4] = random.choice(
                (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\x01\0\0")
            )
        elif kind == 3:
            # The longest varint, and one that says two thousand million.
            changed[at : at + 1] = random.choice(
                (b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x07", b"\xff" * 10 + b"\x01")
            )
        elif kind == 4:
            del changed[at : at + random.choice((1, 2, 8, 64))]
        elif kind == 5:
            changed[at:at] = random.randbytes(random.choice((1, 2, 4, 16)))
        elif kind == 6:
            changed[at:at] = changed[at : at + random.choice((4, 16, 64))]
        elif others:
            other = random.choice(others)
            start = random.randrange(len(other)) if other else 0
            changed[at:] = other[start : start + 4096]
    return bytes(changed)
