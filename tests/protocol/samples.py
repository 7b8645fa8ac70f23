"""Instances of any message in any version: drawn by hypothesis, or from a seed where another codec has to agree."""

from __future__ import annotations

import random
import zlib
from typing import Any

from hypothesis import strategies as st

from barnabas.protocol.message import Message
from barnabas.protocol.messages import message_class
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec, message_names

RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(low, high) for name, (low, high) in RANGES.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=8) | st.just("é" * 200),
    "bytes": st.binary(max_size=8) | st.just(bytes(300)),
    "records": st.binary(max_size=8) | st.just(bytes(20000)),
}
ALL_VERSIONS = [
    (name, version)
    for name in message_names()
    for version in range(message_class(name).MIN_VERSION, message_class(name).MAX_VERSION + 1)
]


def instances(name: str, version: int) -> st.SearchStrategy[Message]:
    """Instances of a message with any values its fields can have in a version."""
    cls = message_class(name)
    return struct_strategy(cls, cls.SPEC, cls.SPEC.root, version)


def struct_strategy(cls: type[Any], spec: MessageSpec, struct: StructSpec, version: int) -> st.SearchStrategy[Any]:
    fields = {
        field.name: field_strategy(cls, spec, field, version) for field in struct.fields if version in field.versions
    }
    made = cls if struct is spec.root else getattr(cls, struct.name)
    return st.builds(made, **fields)


def field_strategy(cls: type[Any], spec: MessageSpec, field: FieldSpec, version: int) -> st.SearchStrategy[Any]:
    values = struct_strategy(cls, spec, spec.structs[field.type], version) if field.is_struct else SCALARS[field.type]
    if field.is_array:
        values = st.lists(values, max_size=2)
    return st.none() | values if version in field.nullable else values


OWN_TAGS = 10_000
"""From which on tags are not Kafka's: other codecs do not know them."""


class Sampler:
    """Instances from a seed, of what every codec knows.

    Args:
        modest: numbers from 0 to 100, as codecs want them that turn numbers into codes and durations.
        nulls: whether null occurs where it may.
        empty: whether empty strings and lists occur.
    """

    def __init__(self, seed: str, *, modest: bool = False, nulls: bool = True) -> None:
        self.random = random.Random(zlib.crc32(seed.encode()))
        self.modest = modest
        self.nulls = nulls

    def message(self, name: str, version: int) -> Message:
        cls = message_class(name)
        made: Message = self.struct(cls, cls.SPEC, cls.SPEC.root, version)
        return made

    def struct(self, cls: type[Any], spec: MessageSpec, struct: StructSpec, version: int) -> Any:
        made = cls if struct is spec.root else getattr(cls, struct.name)
        return made(
            **{
                field.name: self.field(cls, spec, field, version)
                for field in struct.fields
                if version in field.versions and field.tag < OWN_TAGS
            }
        )

    def field(self, cls: type[Any], spec: MessageSpec, field: FieldSpec, version: int) -> Any:
        if self.nulls and version in field.nullable and self.random.random() < 0.25:
            return None
        if field.is_array:
            return [self.value(cls, spec, field, version) for _ in range(self.random.choice((0, 1, 2, 3)))]
        return self.value(cls, spec, field, version)

    def value(self, cls: type[Any], spec: MessageSpec, field: FieldSpec, version: int) -> Any:
        draw = self.random
        if field.is_struct:
            return self.struct(cls, spec, spec.structs[field.type], version)
        if field.type in RANGES:
            low, high = (0, 100) if self.modest else RANGES[field.type]
            return draw.choice((low, high, draw.randint(low, high)))
        if field.type == "bool":
            return draw.random() < 0.5
        if field.type == "float64":
            return draw.uniform(-1e9, 1e9)
        if field.type == "uuid":
            return draw.randbytes(16)
        if field.type == "string":
            return "".join(draw.choice("abcé-.") for _ in range(draw.choice((0, 1, 5, 60))))
        return draw.randbytes(draw.choice((0, 1, 5, 200)))
