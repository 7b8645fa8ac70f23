"""Parsing: what is stored, what is equal, and references that cannot be."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.registry.parsed_schemas import ParsedSchema, ParsedSchemas
from barnabas.registry.problems import Problem
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion, version_record
from barnabas.schemas.schema import JSON, Reference, Schema


def parse(state: RegistryState, schema: Schema, *, normalize: bool = False) -> ParsedSchema:
    return asyncio.run(ParsedSchemas().parse(state, schema, normalize=normalize, is_new=True))


def state_with(*versions: StoredVersion) -> RegistryState:
    state = RegistryState()
    for each in versions:
        state.replay(*version_record(each))
    return state


def test_layout_makes_no_other_schema() -> None:
    state = RegistryState()
    assert parse(state, Schema('{ "type": "int" }')).identity == parse(state, Schema('"int"')).identity
    assert parse(state, Schema("true", JSON)).identity != parse(state, Schema("{}", JSON)).identity


def test_normalized_references_have_one_order() -> None:
    versions = [StoredVersion(name, 1, 1, Schema(f'{{"type":"fixed","name":"{name}","size":1}}')) for name in "ab"]
    state = state_with(*versions)
    a, b = Reference("a", "a", 1), Reference("b", "b", 1)
    left, right = Schema('["a","b"]', references=(a, b)), Schema('["a","b"]', references=(b, a))
    assert parse(state, left).identity != parse(state, right).identity
    assert parse(state, left, normalize=True).identity == parse(state, right, normalize=True).identity


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (Schema("{"), "it is not JSON"),
        (Schema("text", "XML"), "XML is not a type of schemas"),
        (Schema('"a"', references=(Reference("a", "absent", 1),)), "version 1 of subject absent, which does not exist"),
        (Schema('"a"', references=(Reference("a", "json", 1),)), "json, which is JSON"),
        (Schema('"a"', references=(Reference("a", "circle", 1),)), "refers to itself"),
    ],
)
def test_not_valid(schema: Schema, why: str) -> None:
    circle = Schema('"a"', references=(Reference("b", "circle", 1),))
    state = state_with(StoredVersion("json", 1, 1, Schema("{}", JSON)), StoredVersion("circle", 1, 2, circle))
    with pytest.raises(Problem, match=why) as problem:
        parse(state, schema)
    assert problem.value.code == 42201
