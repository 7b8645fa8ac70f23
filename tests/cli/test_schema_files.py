"""Schemas in files: types, references, versions."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.schema_files import schema_in, version_of
from barnabas.schemas.schema import Reference
from tests.cli.schemas_commands import written

CONTEXT = click.Context(click.Command("get"))
PARAMETER = click.Option(["--version"])


def test_the_name_says_the_type(tmp_path: Path) -> None:
    assert schema_in(Path(written(tmp_path, "x", "a.avsc")), None, ()).kind == "AVRO"
    assert schema_in(Path(written(tmp_path, "x", "a.proto")), None, ()).kind == "PROTOBUF"
    assert schema_in(Path(written(tmp_path, "x", "a.json")), "json", ()).kind == "JSON"
    with pytest.raises(Failure, match="does not say the type"):
        schema_in(Path(written(tmp_path, "x", "a.json")), None, ())


def test_references(tmp_path: Path) -> None:
    file = Path(written(tmp_path, "x"))
    given = ("a.proto=shop:a:2", "https://h/s?v=1=money:1")
    assert schema_in(file, None, given).references == (
        Reference("a.proto", "shop:a", 2),
        Reference("https://h/s?v=1", "money", 1),
    )
    for wrong in ("a", "a=b", "=b:1", "a=:1", "a=b:0", "a=b:latest"):
        with pytest.raises(click.BadParameter, match="is not NAME=SUBJECT:VERSION"):
            schema_in(file, None, (wrong,))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_bytes(b"\xff")
    with pytest.raises(Failure, match="is not text in UTF-8"):
        schema_in(tmp_path / "a.avsc", None, ())


def test_versions() -> None:
    assert [version_of(CONTEXT, PARAMETER, given) for given in (None, "latest", "12")] == [None, "latest", 12]
    with pytest.raises(click.BadParameter, match="'-1' is not the number of a version"):
        version_of(CONTEXT, PARAMETER, "-1")
