"""Kafka's message definitions as immutable values, read from `schema.json` one message at a time.

The file is written by `tools/read_schemas.py`: line 1 is an index, each further line one message. It is read once, as bytes
(a fifth of a megabyte), and a message is parsed at its first use, so a start pays only for what it uses.

Invariants:
- A `FieldSpec` keeps Kafka's own words; `versions` ranges are inclusive, `NEVER` is empty.
- Python names are Kafka's names in snake_case; a trailing underscore avoids a keyword.

Source: Kafka's message definitions (`clients/src/main/resources/common/message` and siblings), KIP-482.
"""

from __future__ import annotations

import json
import keyword
import os
import re
from functools import cache
from typing import Any, NamedTuple

PRIMITIVES = frozenset(
    ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes", "records")
)
ENDLESS = 0x7FFF
WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Versions(NamedTuple):
    """An inclusive range of versions."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        assert isinstance(version, int)
        return self.low <= version <= self.high


NEVER = Versions(0, -1)


def parse_versions(text: str | None) -> Versions:
    """Parse Kafka's notation: `3`, `3-9`, `3+`, `none`."""
    if text is None or text == "none":
        return NEVER
    if text.endswith("+"):
        return Versions(int(text[:-1]), ENDLESS)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


def snake_case(name: str) -> str:
    """Kafka's `ThrottleTimeMs` as `throttle_time_ms`."""
    snake = WORD_START.sub("_", name).lower()
    return snake + "_" if keyword.iskeyword(snake) else snake


class FieldSpec(NamedTuple):
    """One field of a struct.

    Attributes:
        type: a primitive's or a struct's name; of the elements when `is_array`.
        nullable: versions in which null may be on the wire.
        tagged: versions in which the field lives in the tag buffer.
        flexible: the field's own exception to the message's flexible versions, or None.
        default: the Python value of the default; of an array or a struct only None counts, else it is empty.
        ignorable: whether an encoder may drop a value that the version cannot carry.
    """

    kafka_name: str
    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    flexible: Versions | None
    default: bool | int | float | str | bytes | None
    ignorable: bool
    map_key: bool
    entity_type: str | None

    @property
    def is_struct(self) -> bool:
        return self.type not in PRIMITIVES


class StructSpec(NamedTuple):
    """A named list of fields."""

    name: str
    fields: tuple[FieldSpec, ...]


class MessageSpec(NamedTuple):
    """A whole message: its own fields, and every struct within it by Kafka's name."""

    name: str
    kind: str
    api_key: int | None
    valid: Versions
    flexible: Versions
    latest_version_unstable: bool
    root: StructSpec
    structs: dict[str, StructSpec]


def parse_default(
    type_name: str, is_array: bool, text: object, nullable: bool
) -> bool | int | float | str | bytes | None:
    """Return the default of a field, in Python; see `FieldSpec.default`."""
    if text == "null" and nullable:
        return None
    if type_name == "records" and not is_array:
        return None
    if is_array or type_name not in PRIMITIVES:
        return ""
    if type_name == "string":
        return str(text or "")
    if type_name == "bytes":
        return b""
    if type_name == "uuid":
        assert not text, "no message of Kafka gives a uuid another default"
        return bytes(16)
    if type_name == "bool":
        return text in (True, "true")
    if type_name == "float64":
        return float(str(text or 0.0))
    return int(str(text or 0), 0)


def parse_field(raw: dict[str, Any]) -> FieldSpec:
    is_array = raw["type"].startswith("[]")
    type_name = raw["type"].removeprefix("[]")
    nullable = parse_versions(raw.get("nullableVersions"))
    return FieldSpec(
        kafka_name=raw["name"],
        name=snake_case(raw["name"]),
        type=type_name,
        is_array=is_array,
        versions=parse_versions(raw.get("versions", raw.get("taggedVersions"))),
        nullable=nullable,
        tagged=parse_versions(raw.get("taggedVersions")),
        tag=raw.get("tag", -1),
        flexible=parse_versions(raw["flexibleVersions"]) if "flexibleVersions" in raw else None,
        default=parse_default(type_name, is_array, raw.get("default"), nullable != NEVER),
        ignorable=raw.get("ignorable", False),
        map_key=raw.get("mapKey", False),
        entity_type=raw.get("entityType"),
    )


def collect_structs(fields: list[dict[str, Any]], structs: dict[str, StructSpec]) -> tuple[FieldSpec, ...]:
    """Parse fields and note each struct that is defined on the way."""
    for raw in fields:
        if "fields" in raw:
            name = raw["type"].removeprefix("[]")
            structs[name] = StructSpec(name, collect_structs(raw["fields"], structs))
    return tuple(parse_field(raw) for raw in fields)


@cache
def schema_text() -> bytes:
    """Return the whole data file."""
    # Not importlib.resources: importing it would cost more than everything else here.
    with open(os.path.join(os.path.dirname(__file__), "schema.json"), "rb") as file:
        return file.read()


@cache
def schema_index() -> dict[str, Any]:
    """Line 1: `kafka` (release), `apis`, `metadata`, `coordinators`."""
    text = schema_text()
    index: dict[str, Any] = json.loads(text[: text.index(b"\n")])
    return index


@cache
def message_names() -> tuple[str, ...]:
    """Return every message, sorted by name."""
    return tuple(name.decode() for name in re.findall(rb'(?m)^\{"name":"(\w+)"', schema_text()))


def message_spec(name: str) -> MessageSpec:
    """Parse one message.

    Raises:
        KeyError: when Kafka has no such message.
    """
    text = schema_text()
    start = text.find(b'\n{"name":"%s",' % name.encode())
    if start < 0:
        raise KeyError(name)
    raw = json.loads(text[start + 1 : text.index(b"\n", start + 1)])
    structs: dict[str, StructSpec] = {}
    for common in raw.get("commonStructs", []):
        structs[common["name"]] = StructSpec(common["name"], collect_structs(common["fields"], structs))
    root = StructSpec(name, collect_structs(raw["fields"], structs))
    return MessageSpec(
        name=name,
        kind=raw["type"],
        api_key=raw.get("apiKey"),
        valid=parse_versions(raw["validVersions"]),
        flexible=parse_versions(raw["flexibleVersions"]),
        latest_version_unstable=raw.get("latestVersionUnstable", False),
        root=root,
        structs=structs,
    )
