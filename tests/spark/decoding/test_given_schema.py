"""Schemas from values, files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.spark.decoding.given_schema import GivenSchema


def test_a_value_is_itself():
    assert GivenSchema("id int").value() == "id int"
    assert GivenSchema({"type": "int"}).value() == {"type": "int"}
    assert GivenSchema("id int, " * 10_000 + "\0").value().endswith("\0")


def test_a_file_is_its_content(tmp_path):
    path = tmp_path / "orders.avsc"
    path.write_text('"int"')
    assert GivenSchema(path).value() == GivenSchema(str(path)).value() == b'"int"'
    with pytest.raises(ValueError, match=r"cannot read the schema .*absent.avsc: no such file or directory"):
        GivenSchema(tmp_path / "absent.avsc").value()


def folder(tmp_path: Path, **files: str) -> GivenSchema:
    for name, text in files.items():
        (tmp_path / name.replace("__", "-").replace("_", ".")).write_text(text)
    return GivenSchema("x", framed=True, folder=tmp_path)


def test_a_folder_has_schemas_by_id(tmp_path):
    given = folder(tmp_path, **{"17_avsc": '"int"', "018__orders_avsc": '{"type": "long"}', "README_md": "!"})
    assert given.writers() == {17: "int", 18: {"type": "long"}}
    assert GivenSchema("x").writers() is None


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, "has no schemas: it needs a file for each schema id"),
        ({"orders_avsc": "1"}, "orders.avsc has no id: name it for its id"),
        ({"7_avsc": "1", "7__b_avsc": "2"}, "has two schemas of id 7"),
        ({"7_avsc": "{"}, r"7\.avsc is not JSON"),
    ],
)
def test_a_folder_that_is_not_one_of_schemas(tmp_path, files, error):
    with pytest.raises(ValueError, match=error):
        folder(tmp_path, **files).writers()
