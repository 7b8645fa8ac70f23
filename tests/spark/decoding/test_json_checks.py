"""JSON values that are not of their schema."""

from __future__ import annotations

import pytest

from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import JSON, Schema
from barnabas.spark.decoding.json_checks import json_check

FRAME = b"\0\0\0\0\x01"


def test_checks():
    check = json_check(KnownSchemas("folder", {1: Schema('{"properties": {"a": {"type": "integer"}}}', JSON)}))
    assert check(FRAME + b'{"a": 1}') is None
    assert check(None) is None
    assert check(FRAME + b'{"a": "x"}') == "the value is not of schema 1: a: 'x' is not of type 'integer'"
    assert check(FRAME + b"[" * 100_000) == "the value is not JSON (schema 1)"
    assert check(b"\0\0\0\0\x02{}") == "schema 2 is not among the schemas of folder"
    assert (check(b"{}") or "").startswith("the value has no schema id in front")


def test_schemas_that_are_not_valid():
    with pytest.raises(ValueError, match="schema 1 is not a valid JSON Schema"):
        json_check(KnownSchemas("folder", {1: Schema('{"type": 1}', JSON)}))
    check = json_check(KnownSchemas("folder", {1: Schema('{"$ref": "http://h/x"}', JSON)}))
    assert (
        check(FRAME + b"1")
        == "the value is not of schema 1: the schema refers to http://h/x, which is not among its references"
    )
