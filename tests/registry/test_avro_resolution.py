"""Schema resolution: a table of the specification's rules, in our own words, each with a pair that is readable and pairs that are not.

`fastavro` reads values of the readable pairs, so the table is not ours alone.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from barnabas.registry.avro_parser import parse_avro
from barnabas.registry.avro_resolution import unreadable_parts


def record(name: str = "R", **fields: Any) -> dict[str, Any]:
    """A field with a list of two has a type and a default."""
    made = []
    for each, found in fields.items():
        type_, *default = found if isinstance(found, tuple) else (found,)
        made.append({"name": each, "type": type_, **({"default": default[0]} if default else {})})
    return {"type": "record", "name": name, "fields": made}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def node(*more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"]}, *more],
    }


PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
VALUES: dict[str, Any] = {
    "null": None, "boolean": True, "int": 1, "long": 2, "float": 1.5, "double": 2.5, "bytes": b"a", "string": "a",
}  # fmt: skip

READABLE: list[tuple[str, Any, Any, Any]] = [
    ("the items of an array are promoted", array("int"), array("long"), [1]),
    ("the values of a map are promoted", map_of("int"), map_of("double"), {"a": 1}),
    ("fixed of one name and size", fixed(2), fixed(2), b"ab"),
    ("a name counts without its namespace", fixed(2, "a.F"), fixed(2, "b.F"), b"ab"),
    ("an alias of the reader is a name", fixed(2, "G"), fixed(2) | {"aliases": ["G"]}, b"ab"),
    ("the reader has more symbols", enum("A"), enum("A", "B"), "A"),
    ("a default for symbols that the reader lacks", enum("A", "B"), enum("A", default="A"), "B"),
    (
        "the order of fields does not matter",
        record(a="int", b="string"),
        record(b="string", a="int"),
        {"a": 1, "b": "x"},
    ),
    ("a field that only the writer has is skipped", record(a="int", b="string"), record(a="int"), {"a": 1, "b": "x"}),
    ("a field that only the reader has gets its default", record(a="int"), record(a="int", b=("string", "")), {"a": 1}),
    ("a field is promoted", record(a="int"), record(a="long"), {"a": 1}),
    (
        "a field by its alias",
        record(a="int"),
        {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "aliases": ["a"]}]},
        {"a": 1},
    ),
    ("a record by its alias", record("S", a="int"), record(a="int") | {"aliases": ["S"]}, {"a": 1}),
    ("one type becomes a union", "int", ["null", "int"], 1),
    ("one type becomes a union by promotion", "int", ["null", "long"], 1),
    ("a union of one type becomes the type", ["int"], "int", 1),
    ("each type of the writer's union is readable", ["int", "long"], "double", 1),
    ("a union grows", ["null", "int"], ["null", "int", "string"], 1),
    ("a recursive record", node(), node({"name": "a", "type": "int", "default": 0}), {"next": {"next": None}}),
]
UNREADABLE: list[tuple[str, Any, Any, str]] = [
    ("a long is not narrowed", "long", "int", "long cannot be read as int"),
    ("other items", array("int"), array("string"), "/items: int cannot be read as string"),
    ("other values", map_of("int"), map_of("string"), "/values: int cannot be read as string"),
    ("an array is no map", array("int"), map_of("int"), "array cannot be read as map"),
    ("fixed of another size", fixed(2), fixed(3), "2 bytes cannot be read as 3"),
    ("fixed of another name", fixed(2), fixed(2, "G"), "which has another name"),
    ("fixed is not bytes", fixed(2), "bytes", "fixed F cannot be read as bytes"),
    ("the reader lacks a symbol", enum("A", "B"), enum("A"), "the reader has no symbol B, and no default"),
    ("an enum of another name", enum("A"), enum("A", name="G"), "which has another name"),
    ("an alias of the writer is none", fixed(2, "G") | {"aliases": ["F"]}, fixed(2), "which has another name"),
    ("a record of another name", record("S", a="int"), record(a="int"), "which has another name"),
    (
        "a new field without a default",
        record(a="int"),
        record(a="int", b="string"),
        "/b: the reader's field has no default",
    ),
    ("a field of another type", record(a="int"), record(a="string"), "/a: int cannot be read as string"),
    ("a union may have another type", ["null", "int"], "int", "null cannot be read as int"),
    ("a union shrinks", ["null", "int", "string"], ["null", "int"], "no type that reads string"),
    ("a type that the union lacks", "string", ["null", "int"], "no type that reads string"),
    ("a recursive record", node(), node({"name": "a", "type": "int"}), "/a: the reader's field has no default"),
]


def parts(writer: Any, reader: Any) -> list[str]:
    return unreadable_parts(parse_avro(json.dumps(writer)), parse_avro(json.dumps(reader)))


@pytest.mark.parametrize("writer", PRIMITIVES)
def test_primitive_types(writer: str) -> None:
    for reader in PRIMITIVES:
        is_readable = writer == reader or (writer, reader) in PROMOTED
        assert (parts(writer, reader) == []) is is_readable, reader
        if is_readable:
            read_by_fastavro(writer, reader, VALUES[writer])


@pytest.mark.parametrize(("writer", "reader", "value"), [pytest.param(*each[1:], id=each[0]) for each in READABLE])
def test_readable(writer: Any, reader: Any, value: Any) -> None:
    assert parts(writer, reader) == []
    if "node" not in str(writer).lower():
        read_by_fastavro(writer, reader, value)


@pytest.mark.parametrize(("writer", "reader", "why"), [pytest.param(*each[1:], id=each[0]) for each in UNREADABLE])
def test_unreadable(writer: Any, reader: Any, why: str) -> None:
    found = parts(writer, reader)
    assert len(found) == 1, found
    assert why in found[0]


def test_what_rests_on_an_unreadable_type_is_compared_again() -> None:
    """Within the union's first branch Node is taken for readable, wrongly; the second branch must not profit from it."""
    writer = {"type": "record", "name": "W", "fields": [{"name": "a", "type": node()}, {"name": "b", "type": "Node"}]}
    wrong = node({"name": "x", "type": "int"})
    reader = {
        "type": "record",
        "name": "W",
        "fields": [{"name": "a", "type": ["null", wrong]}, {"name": "b", "type": "Node"}],
    }
    assert len(parts(writer, reader)) == 2


def test_many_records_are_compared_once() -> None:
    """Each of 40 records has the next one twice: 2 ** 40 paths, and 40 pairs."""
    schema: Any = "int"
    for number in range(40):
        name = f"R{number}"
        schema = {
            "type": "record",
            "name": name,
            "fields": [
                {"name": "a", "type": schema},
                {"name": "b", "type": ["null", f"R{number - 1}" if number else "int"]},
            ],
        }
    assert parts(schema, schema) == []


def read_by_fastavro(writer: Any, reader: Any, value: Any) -> None:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(writer), value)
    fastavro.schemaless_reader(
        io.BytesIO(written.getvalue()), fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    )
