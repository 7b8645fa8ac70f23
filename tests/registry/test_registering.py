"""Decisions about new versions, without a cluster."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.registry.levels import Mode
from barnabas.registry.parsed_schemas import ParsedSchemas
from barnabas.registry.problems import Problem
from barnabas.registry.registering import Registration, found_version, register
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion, delete_subject_record, mode_record, version_record
from barnabas.registry.writing import Decision
from barnabas.schemas.schema import Schema

INT, LONG = Schema('"int"'), Schema('"long"')


def state_with(*records: tuple[bytes, bytes | None]) -> RegistryState:
    state = RegistryState()
    for each in records:
        state.replay(*each)
    return state


def decide(state: RegistryState, wanted: Registration) -> Decision[StoredVersion]:
    return asyncio.run(register(ParsedSchemas(), state, wanted))


def test_a_new_schema_gets_the_next_id_and_version() -> None:
    state = state_with(version_record(StoredVersion("s", 1, 7, INT)))
    made = StoredVersion("s", 2, 8, LONG)
    assert decide(state, Registration("s", LONG)) == Decision(made, [version_record(made)])


def test_a_known_schema_makes_no_record() -> None:
    state = state_with(version_record(StoredVersion("s", 1, 7, INT)))
    assert decide(state, Registration("s", Schema('{"type": "int"}'))) == Decision(StoredVersion("s", 1, 7, INT))
    assert decide(state, Registration("t", INT)).answer == StoredVersion("t", 1, 7, INT)


def test_a_deleted_schema_keeps_its_id() -> None:
    state = state_with(version_record(StoredVersion("s", 1, 7, INT)), delete_subject_record("s", 1))
    assert decide(state, Registration("s", INT)).answer == StoredVersion("s", 2, 7, INT)
    assert asyncio.run(found_version(ParsedSchemas(), state, Registration("s", INT))) is None
    found = asyncio.run(found_version(ParsedSchemas(), state, Registration("s", INT), deleted=True))
    assert found is not None
    assert found.is_deleted


def test_the_last_id() -> None:
    state = state_with(version_record(StoredVersion("s", 1, 2**31 - 1, INT)))
    with pytest.raises(Problem, match="no id is left"):
        decide(state, Registration("s", LONG))


def test_modes() -> None:
    state = state_with(mode_record("s", Mode.IMPORT))
    assert decide(state, Registration("s", INT, schema_id=9, version=4)).answer == StoredVersion("s", 4, 9, INT)
    assert decide(state, Registration("s", INT, schema_id=9)).answer.version == 1
    state.replay(*mode_record("s", Mode.READONLY))
    for wanted in (Registration("s", INT), Registration("t", INT, schema_id=9), Registration("t", INT, version=2)):
        with pytest.raises(Problem) as problem:
            decide(state, wanted)
        assert problem.value.code == 42205
