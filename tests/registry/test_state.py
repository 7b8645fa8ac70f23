"""The state that records make, among them records that no registry should have written."""

from __future__ import annotations

import pytest

from barnabas.registry.levels import CompatibilityLevel, Mode
from barnabas.registry.problems import Problem
from barnabas.registry.state import LATEST, RegistryState
from barnabas.registry.stored_records import (
    StoredRecord,
    StoredVersion,
    config_key,
    config_record,
    delete_subject_record,
    mode_record,
    noop_record,
    tombstone,
    version_key,
    version_record,
)
from barnabas.schemas.schema import Reference, Schema


def stored(subject: str, version: int, schema_id: int, text: str = '"int"', *refers: Reference) -> StoredRecord:
    return version_record(StoredVersion(subject, version, schema_id, Schema(text, references=refers)))


def state_of(*records: tuple[bytes | None, bytes | None]) -> RegistryState:
    state = RegistryState()
    for key, value in records:
        state.replay(key, value)
    return state


def test_versions_and_ids() -> None:
    state = state_of(stored("a", 1, 1), stored("a", 2, 2, '"long"'), stored("b", 1, 1))
    assert (state.subjects(), state.max_id, state.next_version("a"), state.next_version("c")) == (["a", "b"], 2, 3, 1)
    assert state.version("a", LATEST).schema_id == 2
    assert [(each.subject, each.version) for each in state.with_id(1)] == [("a", 1), ("b", 1)]
    found = state.with_schema(Schema('"int"'))
    assert found is not None
    assert found.schema_id == 1
    for number, subject, code in ((3, "a", 40402), (1, "c", 40401)):
        with pytest.raises(Problem) as problem:
            state.version(subject, number)
        assert problem.value.code == code


def test_a_deleted_subject_is_kept_and_a_later_version_lives() -> None:
    state = state_of(stored("a", 1, 1), stored("a", 2, 2, '"long"'), delete_subject_record("a", 2))
    assert (state.subjects(), state.subjects(deleted=True), state.subjects(deleted_only=True)) == ([], ["a"], ["a"])
    assert [each.is_deleted for each in state.versions("a", deleted=True)] == [True, True]
    state.replay(*stored("a", 3, 1))
    assert [each.version for each in state.versions("a")] == [3]
    assert (state.subjects(), state.subjects(deleted_only=True)) == (["a"], [])


def test_a_permanent_deletion_keeps_the_largest_id() -> None:
    state = state_of(stored("a", 1, 7), tombstone(version_key("a", 1)))
    assert (state.subjects(deleted=True), state.with_id(7), state.max_id) == ([], [], 7)
    assert state.with_schema(Schema('"int"')) is None
    after_compaction = state_of(tombstone(version_key("a", 1)), noop_record(7, "me"))
    assert (after_compaction.max_id, after_compaction.claim) == (7, "me")


def test_references() -> None:
    state = state_of(stored("a", 1, 1), stored("b", 1, 2, '"a"', Reference("a", "a", 1)))
    assert [each.subject for each in state.referring_to("a", 1)] == ["b"]
    state.replay(*delete_subject_record("b", 1))
    assert state.referring_to("a", 1, deleted=False) == []
    state.replay(*tombstone(version_key("b", 1)))
    assert state.referring_to("a", 1) == []


def test_levels_and_modes() -> None:
    state = state_of(
        config_record(None, {"compatibilityLevel": "FULL"}),
        config_record("a", {"compatibilityLevel": "NONE", "normalize": True}),
        mode_record("a", Mode.IMPORT),
    )
    assert (state.level("a"), state.level("b")) == (CompatibilityLevel.NONE, CompatibilityLevel.FULL)
    assert (state.normalizes("a"), state.normalizes("b")) == (True, False)
    assert (state.mode("a"), state.mode("b")) == (Mode.IMPORT, Mode.READWRITE)
    state.replay(*mode_record(None, Mode.READONLY_OVERRIDE))
    assert state.mode("a") is Mode.READONLY_OVERRIDE
    state.replay(*tombstone(config_key(None)))
    assert state.level("b") is CompatibilityLevel.BACKWARD


def test_records_of_others_are_skipped() -> None:
    state = state_of(
        (None, b"x"),
        (b"x", b"x"),
        (b"{}", b"{}"),
        (
            b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
            b'{"subject":"a","version":2,"id":1,"schema":"x"}',
        ),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b"[]"),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"SOME"}'),
        (b'{"keytype":"MODE","subject":null,"magic":0}', b'{"mode":"SOME"}'),
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"CLEAR_SUBJECT","subject":"a","magic":0}', b'{"subject":"a"}'),
        (b'{"keytype":"CONTEXT","tenant":"default","context":".","magic":0}', b"{}"),
    )
    assert (state.subjects(deleted=True), state.configs, state.modes, state.max_id) == ([], {}, {}, 0)


def test_its_records_make_it_again() -> None:
    referring = stored("b", 1, 3, '"X"', Reference("X", "a", 1))
    state = state_of(
        stored("a", 1, 1),
        stored("a", 2, 2, '"long"'),
        referring,
        stored("gone", 1, 4),
        delete_subject_record("gone", 1),
        config_record(None, {"compatibilityLevel": "FULL"}),
        config_record("a", {"normalize": True}),
        mode_record("b", "READONLY"),
        noop_record(9, "me"),
    )
    again = state_of(noop_record(state.max_id, "another"), *state.records())
    assert again.max_id == 9
    assert again.subjects() == ["a", "b"]
    for subject in state.subjects(deleted=True):
        assert again.versions(subject, deleted=True) == state.versions(subject, deleted=True)
    assert (again.configs, again.modes) == (state.configs, state.modes)
    assert [each.subject for each in again.referring_to("a", 1)] == ["b"]
    assert again.records() == state.records()
