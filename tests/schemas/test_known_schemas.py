"""A folder of schemas: what is read, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.schemas.errors import SchemaError, SchemaNotFound
from barnabas.schemas.known_schemas import KnownSchemas, read_folder, write_folder
from barnabas.schemas.schema import AVRO, JSON, PROTOBUF, Reference, Schema

INT, LONG = Schema('"int"'), Schema('"long"')


def folder(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / name.replace("__", "-").replace("_", ".")).write_text(text)
    return tmp_path


def test_a_folder_has_schemas_by_id(tmp_path):
    files = {
        "17_avsc": '"int"',
        "018__orders_avsc": '{"type": "long"}',
        "19_json": "{}",
        "20_desc": "x",
        "README_md": "!",
    }
    known = read_folder(folder(tmp_path, **files))
    assert known.schemas == {
        17: INT,
        18: Schema('{"type": "long"}'),
        19: Schema("{}", JSON),
        20: Schema("eA==", PROTOBUF),
    }
    assert known.by_id(17) == INT
    with pytest.raises(SchemaNotFound, match="schema 9 is not among the schemas of "):
        known.by_id(9)


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, "has no schemas: it needs a file for each schema id"),
        ({"orders_avsc": "1"}, "orders.avsc has no id: name it for its id"),
        ({"7_avsc": "1", "7__b_avsc": "2"}, "has two schemas of id 7"),
        ({"7_avsc": "{"}, r"7\.avsc is not JSON"),
        ({"7_avsc": "1", "subjects_json": "["}, r"subjects\.json is not an index of schemas"),
        ({"7_avsc": "1", "subjects_json": '{"subjects": [1]}'}, r"subjects\.json is not an index of schemas"),
    ],
)
def test_a_folder_that_is_not_one_of_schemas(tmp_path, files, error):
    with pytest.raises(SchemaError, match=error):
        read_folder(folder(tmp_path, **files))


def test_what_is_written_is_read(tmp_path):
    known = KnownSchemas(
        str(tmp_path / "new" / "folder"),
        {1: INT, 2: Schema("{}", JSON, (Reference("n", "a/b", 1),)), 3: Schema("AAE=", PROTOBUF)},
        {"a/b": {1: 1}, "c": {2: 2, 3: 3}},
    )
    write_folder(tmp_path / "new" / "folder", known)
    assert read_folder(tmp_path / "new" / "folder") == known


def test_a_folder_keeps_what_it_has(tmp_path):
    path = folder(tmp_path, **{"17__mine_avsc": ' "int"'})
    write_folder(path, KnownSchemas("", {17: INT, 18: LONG}, {"s": {1: 17, 2: 18}}))
    assert sorted(each.name for each in path.iterdir()) == ["17-mine.avsc", "18.avsc", "subjects.json"]
    write_folder(path, KnownSchemas("", {18: LONG}, {"t": {1: 18}}))
    assert read_folder(path).subjects == {"s": {1: 17, 2: 18}, "t": {1: 18}}
    with pytest.raises(SchemaError, match="has another schema of id 17: it is of another registry"):
        write_folder(path, KnownSchemas("", {17: LONG}))


def test_subjects():
    known = KnownSchemas("folder", {1: INT, 2: LONG}, {"orders": {1: 1, 2: 2}})
    assert (known.versions("orders"), known.version("orders").schema, known.version("orders", 1).schema) == (
        [1, 2],
        LONG,
        INT,
    )
    assert known.lookup("orders", Schema(' "int" ', AVRO)).version == 1
    assert known.register("orders", LONG) == 2
    for call, error in (
        (lambda: known.version("order"), "folder has no subject order; did you mean orders?"),
        (lambda: known.version("orders", 3), r"folder has no version 3 of subject orders: it has \[1, 2\]"),
        (lambda: known.lookup("orders", Schema('"string"')), "folder does not have the schema in subject orders"),
        (lambda: known.register("orders", Schema('"string"')), "a folder takes no new ones: register it in a registry"),
    ):
        with pytest.raises(SchemaNotFound, match=error):
            call()
