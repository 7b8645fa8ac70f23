"""Which of a registry's answers make a row bad, and which fail the task."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import RegistryError
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import AVRO, JSON, Schema
from barnabas.schemas.source import SchemaSource, source_of
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.decoding.writer_schemas import WriterSchemas
from tests.schemas.registry_server import running_registry


def parse(_: SchemaSource, schema: Schema, what: str) -> str:
    if schema.text == "bad":
        raise ValueError(f"{what} is bad")
    return schema.text * 2


def test_a_schema_is_parsed_once():
    parsed: list[str] = []
    known = KnownSchemas("folder", {1: Schema("a"), 2: Schema("bad"), 3: Schema("c", JSON)})
    writers = WriterSchemas(known, AVRO, lambda *args: parsed.append(args[1].text) or parse(*args))
    assert [writers.of_id(1), writers.of_id(1)] == ["aa", "aa"]
    assert parsed == ["a"]
    for number, error in (
        (2, "schema 2 is bad"),
        (3, "schema 3 is of type JSON, not AVRO"),
        (4, "schema 4 is not among"),
    ):
        with pytest.raises(BadValue, match=error):
            writers.of_id(number)
    with pytest.raises(ValueError, match="schema 2 is bad"):
        writers.parse_known()


def test_a_registry_that_does_not_answer_makes_no_bad_rows():
    with running_registry() as server:
        writers = WriterSchemas(source_of({"url": server.url, "max.retries": 0}), AVRO, parse)
        with pytest.raises(BadValue, match="does not have schema 1"):
            writers.of_id(1)
        server.faults = [500]
        with pytest.raises(RegistryError, match="does not answer"):
            writers.of_id(2)
        server.authorization = "Basic x"
        with pytest.raises(RegistryError, match="give credentials"):
            writers.of_id(2)
