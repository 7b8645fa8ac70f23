"""Values made up for a schema, from a seed: the same seed makes the same values.

The schema is JSON Schema or Avro, as JSON; the values are JSON, whichever it is.

| JSON Schema | Avro | value |
|---|---|---|
| `object` with `properties` | `record` | each property, each field |
| `enum`, `const` | `enum` | one of them |
| `string` | `string`, `bytes` | a word; by `format` a UUID, a date, a time, an address of mail |
| `integer`, `number` from `minimum` to `maximum` | `int`, `long`, `float`, `double` | 0 to 1,000 without bounds |
| `boolean`, `null` | `boolean`, `null` | |
| `array` of `items` | `array` | up to three |
| `object` without `properties` | `map` | up to three entries |
| `anyOf`, `oneOf`, a list of types | a union | one of them |

Avro's logical types of dates and times are those of the record's time. References and other words of JSON Schema are not followed.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from barnabas.words.printable import printable

Maker = Callable[[random.Random, int], Any]
"""Makes a value up; the number is the record's time, in epoch milliseconds."""

_WORDS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")
_MOST = 3
_DEPTH_MAX = 20
ORDERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order": {"type": "string", "format": "uuid"},
        "at": {"type": "string", "format": "date-time"},
        "country": {"enum": ["DE", "FR", "GB", "IE", "NL"]},
        "item": {"type": "string"},
        "qty": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number", "minimum": 1, "maximum": 200},
    },
}
"""The schema of orders, if no other is given."""


def maker(schema: Any, depth: int = 0) -> Maker:
    """Compile a schema.

    Raises:
        ValueError: a type is unknown, or types lie too deep within each other.
    """
    if depth > _DEPTH_MAX:
        raise ValueError("the types of the schema lie too deep within each other")
    if isinstance(schema, list):
        return _one_of([maker(each, depth + 1) for each in schema])
    if isinstance(schema, str):
        return _of_type(schema, {}, depth)
    if not isinstance(schema, dict):
        raise ValueError(f"{printable(str(schema)[:40])} is not a schema")
    if "const" in schema:
        return _constant(schema["const"])
    for words in ("enum", "symbols"):
        if words in schema:
            return _choice(schema[words])
    for words in ("anyOf", "oneOf"):
        if words in schema:
            return maker(schema[words], depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, dict):  # Avro allows {"type": {"type": "string"}}
        return maker(kind, depth + 1)
    if isinstance(kind, list):
        return _one_of(
            [_of_type(each, schema, depth) if isinstance(each, str) else maker(each, depth + 1) for each in kind]
        )
    return _of_type(kind, schema, depth)


def _of_type(kind: Any, schema: dict[str, Any], depth: int) -> Maker:
    match kind:
        case "record":
            fields = {str(each["name"]): maker(each["type"], depth + 1) for each in schema.get("fields", [])}
            return _object(fields)
        case "object" if "properties" in schema:
            return _object({name: maker(each, depth + 1) for name, each in schema["properties"].items()})
        case "object" | "map":
            inner = maker(schema.get("values", "string"), depth + 1)
            return lambda luck, now: {luck.choice(_WORDS): inner(luck, now) for _ in range(luck.randint(0, _MOST))}
        case "array":
            element = maker(schema.get("items", "string"), depth + 1)
            return lambda luck, now: [element(luck, now) for _ in range(luck.randint(0, _MOST))]
        case "string" | "bytes" | "fixed":
            return _TEXTS.get(schema.get("format", schema.get("logicalType")), _word)
        case "integer" | "int" | "long":
            return _whole(schema)
        case "number" | "float" | "double":
            low, high = float(schema.get("minimum", 0)), float(schema.get("maximum", 1000))
            return lambda luck, now: round(luck.uniform(low, high), 2)
        case "boolean":
            return lambda luck, now: luck.random() < 0.5
        case "null":
            return _constant(None)
    raise ValueError(f"the schema has type {printable(str(kind)[:40])}, for which no values can be made up")


def _whole(schema: dict[str, Any]) -> Maker:
    per_ms = {
        "timestamp-millis": 1,
        "local-timestamp-millis": 1,
        "timestamp-micros": 1000,
        "local-timestamp-micros": 1000,
    }
    logical = schema.get("logicalType")
    if logical in per_ms:
        return lambda luck, now: now * per_ms[logical]
    if logical == "date":
        return lambda luck, now: now // 86_400_000
    low, high = int(schema.get("minimum", 0)), int(schema.get("maximum", 1000))
    if low > high:
        raise ValueError(f"no number is at least {low} and at most {high}")
    return lambda luck, now: luck.randint(low, high)


def _constant(value: Any) -> Maker:
    return lambda luck, now: value


def _choice(values: Any) -> Maker:
    if not isinstance(values, list) or not values:
        raise ValueError("an enum of the schema has no values")
    return lambda luck, now: luck.choice(values)


def _one_of(makers: list[Maker]) -> Maker:
    if not makers:
        raise ValueError("a union of the schema has no types")
    return lambda luck, now: luck.choice(makers)(luck, now)


def _object(fields: dict[str, Maker]) -> Maker:
    return lambda luck, now: {name: make(luck, now) for name, make in fields.items()}


def _word(luck: random.Random, now: int) -> str:
    return luck.choice(_WORDS)


def _time(now: int) -> datetime:
    return datetime.fromtimestamp(now / 1000, UTC)


_TEXTS: dict[Any, Maker] = {
    "uuid": lambda luck, now: str(uuid.UUID(int=luck.getrandbits(128), version=4)),
    "date": lambda luck, now: f"{_time(now):%Y-%m-%d}",
    "date-time": lambda luck, now: _time(now).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    "email": lambda luck, now: f"{luck.choice(_WORDS)}{luck.randint(1, 999)}@example.org",
}
