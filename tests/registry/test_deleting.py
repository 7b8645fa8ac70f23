"""Decisions about deletions: their records."""

from __future__ import annotations

from barnabas.registry.deleting import delete_subject, delete_version
from barnabas.registry.levels import Mode
from barnabas.registry.state import LATEST, RegistryState
from barnabas.registry.stored_records import (
    StoredVersion,
    config_key,
    config_record,
    delete_subject_record,
    mode_key,
    mode_record,
    noop_record,
    tombstone,
    version_key,
    version_record,
)
from barnabas.registry.writing import Decision
from barnabas.schemas.schema import Schema

FIRST, SECOND = StoredVersion("s", 1, 7, Schema('"int"')), StoredVersion("s", 2, 8, Schema('"long"'))


def state() -> RegistryState:
    found = RegistryState()
    for record in (version_record(FIRST), version_record(SECOND), noop_record(8, "me")):
        found.replay(*record)
    return found


def test_a_version() -> None:
    deleted = StoredVersion("s", 2, 8, Schema('"long"'), is_deleted=True)
    assert delete_version(state(), "s", LATEST, permanent=False) == Decision(2, [version_record(deleted)])


def test_a_subject_with_its_settings() -> None:
    found = state()
    assert delete_subject(found, "s", permanent=False) == Decision([1, 2], [delete_subject_record("s", 2)])
    found.replay(*config_record("s", {"compatibilityLevel": "NONE"}))
    found.replay(*mode_record("s", Mode.READWRITE))
    records = [delete_subject_record("s", 2), tombstone(config_key("s")), tombstone(mode_key("s"))]
    assert delete_subject(found, "s", permanent=False).records == records


def test_a_permanent_deletion_keeps_the_largest_id() -> None:
    found = state()
    found.replay(*delete_subject_record("s", 2))
    kept = noop_record(8, "me")
    assert delete_version(found, "s", 2, permanent=True) == Decision(2, [kept, tombstone(version_key("s", 2))])
    assert delete_subject(found, "s", permanent=True) == Decision(
        [1, 2], [kept, tombstone(version_key("s", 1)), tombstone(version_key("s", 2))]
    )
