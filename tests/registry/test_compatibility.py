"""The seven levels, on versions that each level judges differently."""

from __future__ import annotations

import asyncio
import json

import pytest

from barnabas.registry.compatibility import compatibility_problems
from barnabas.registry.levels import CompatibilityLevel
from barnabas.registry.parsed_schemas import ParsedSchemas
from barnabas.registry.problems import Problem
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion
from barnabas.schemas.schema import JSON, Schema
from tests.registry.asking import record

ADDED, ADDED_WITH_DEFAULT, REMOVED = record("a", "b", "c"), record("a", "b", "c?"), record("a")
EARLIER = [record("a", "z"), record("a", "b")]
"""Each new schema is compared with `a b`, and by a transitive level also with `a z`."""


def problems(new: Schema, earlier: list[Schema], level: CompatibilityLevel) -> list[str]:
    schemas, state = ParsedSchemas(), RegistryState()

    async def ask() -> list[str]:
        versions = [StoredVersion("s", number, number, each) for number, each in enumerate(earlier, 1)]
        return await compatibility_problems(schemas, state, "s", await schemas.parse(state, new), versions, level)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("new", "levels"),
    [
        (record("a", "b"), "NONE BACKWARD FORWARD FULL"),
        (ADDED, "NONE FORWARD"),
        (ADDED_WITH_DEFAULT, "NONE BACKWARD FORWARD FULL"),
        (REMOVED, "NONE BACKWARD BACKWARD_TRANSITIVE"),
        (record("a", "b", "z"), "NONE FORWARD FORWARD_TRANSITIVE"),
        (record("a", "b?", "z?"), "NONE BACKWARD BACKWARD_TRANSITIVE FORWARD FORWARD_TRANSITIVE FULL FULL_TRANSITIVE"),
        (record("a", "b", name="Other"), "NONE"),
    ],
)
def test_levels(new: object, levels: str) -> None:
    earlier = [Schema(json.dumps(each)) for each in EARLIER]
    passing = [str(level) for level in CompatibilityLevel if not problems(Schema(json.dumps(new)), earlier, level)]
    assert sorted(passing) == sorted(levels.split())


def test_each_problem_names_its_version() -> None:
    earlier = [Schema(json.dumps(each)) for each in EARLIER]
    found = problems(Schema(json.dumps(record("q"))), earlier, CompatibilityLevel.FULL_TRANSITIVE)
    assert found[0] == "it cannot read version 2: /q: the reader's field has no default, and is not written"
    assert any(each.startswith("it cannot be read by version 1: /a") for each in found)


def test_another_type_is_not_compatible() -> None:
    assert problems(Schema("{}", JSON), [Schema('"int"')], CompatibilityLevel.BACKWARD) == [
        "version 1 is AVRO, and this schema is JSON"
    ]


def test_json_is_decided_only_where_it_is_equal() -> None:
    assert problems(Schema("{}", JSON), [Schema("{ }", JSON)], CompatibilityLevel.FULL) == []
    assert problems(Schema("{}", JSON), [Schema("true", JSON)], CompatibilityLevel.NONE) == []
    with pytest.raises(Problem, match="does not decide whether JSON schemas are BACKWARD") as problem:
        problems(Schema("{}", JSON), [Schema("true", JSON)], CompatibilityLevel.BACKWARD)
    assert problem.value.code == 42203
