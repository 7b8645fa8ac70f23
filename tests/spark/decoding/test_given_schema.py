"""Schemas from values, files and folders."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import RegistryNotAvailable
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import AVRO, JSON, Schema
from barnabas.schemas.source import source_of
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


def test_a_subject():
    known = KnownSchemas("folder", {1: Schema('"int"'), 2: Schema('"long"')}, {"orders": {1: 1, 2: 2}})
    assert GivenSchema(None, source=known, subject="orders").registered(AVRO).schema_id == 2
    assert GivenSchema(None, source=known, subject="orders", version=1).registered(AVRO).schema_id == 1
    with pytest.raises(ValueError, match="the schema of subject orders is of type AVRO, not JSON"):
        GivenSchema(None, source=known, subject="orders").registered(JSON)


def test_a_registry_that_does_not_answer_is_found_early():
    given = GivenSchema("x", source=source_of({"url": "http://127.0.0.1:1", "max.retries": 0}))
    with pytest.raises(RegistryNotAvailable, match=r"127\.0\.0\.1:1: connection refused"):
        given.check_source()
    GivenSchema("x", source=KnownSchemas("folder", {})).check_source()
