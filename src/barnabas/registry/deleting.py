"""Deletes subjects and versions, first so that their ids stay known, then permanently.

A version to which another schema refers cannot be deleted. What is deleted permanently leaves no record behind but the largest id, so
that no id is given twice.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.registry.levels import Mode
from barnabas.registry.problems import (
    not_permitted,
    reference_exists,
    subject_deleted,
    subject_not_deleted,
    subject_not_found,
    version_deleted,
    version_not_deleted,
)
from barnabas.registry.state import LATEST, RegistryState
from barnabas.registry.stored_records import (
    StoredRecord,
    StoredVersion,
    config_key,
    delete_subject_record,
    mode_key,
    noop_record,
    tombstone,
    version_key,
    version_record,
)
from barnabas.registry.writing import Decision
from barnabas.words.printable import printable

__all__ = ["delete_subject", "delete_version"]


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Return the numbers of the deleted versions, and the records that delete them.

    Raises:
        Problem: 40401, 40404, 40405, 42205, 42206.
    """
    _check_mode(state, subject)
    every, live = state.versions(subject, deleted=True), state.versions(subject)
    if not every:
        raise subject_not_found(subject)
    if permanent:
        if live:
            raise subject_not_deleted(subject)
        _check_references(state, every)
        return Decision([each.version for each in every], _taken_away(state, every))
    if not live:
        raise subject_deleted(subject)
    _check_references(state, live)
    records = [delete_subject_record(subject, live[-1].version)]
    records += [tombstone(config_key(subject))] if subject in state.configs else []
    records += [tombstone(mode_key(subject))] if subject in state.modes else []
    return Decision([each.version for each in live], records)


def delete_version(state: RegistryState, subject: str, number: int, *, permanent: bool) -> Decision[int]:
    """Return the number of the deleted version, and the records that delete it.

    Raises:
        Problem: 40401, 40402, 40406, 40407, 42205, 42206.
    """
    _check_mode(state, subject)
    # LATEST is the last one that is not deleted, for a permanent deletion too.
    version = state.version(subject, number, deleted=number != LATEST)
    if permanent:
        if not version.is_deleted:
            raise version_not_deleted(subject, version.version)
        _check_references(state, [version])
        return Decision(version.version, _taken_away(state, [version]))
    if version.is_deleted:
        raise version_deleted(subject, version.version)
    _check_references(state, [version])
    return Decision(version.version, [version_record(replace(version, is_deleted=True))])


def _taken_away(state: RegistryState, versions: list[StoredVersion]) -> list[StoredRecord]:
    largest = noop_record(state.max_id, state.claim)
    return [largest, *(tombstone(version_key(each.subject, each.version)) for each in versions)]


def _check_references(state: RegistryState, versions: list[StoredVersion]) -> None:
    for each in versions:
        if state.referring_to(each.subject, each.version, deleted=False):
            raise reference_exists(each.subject, each.version)


def _check_mode(state: RegistryState, subject: str) -> None:
    if state.mode(subject) in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        raise not_permitted(f"Subject '{printable(subject)}' is in read-only mode")
