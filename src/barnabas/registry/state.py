"""The state that the topic `_schemas` describes: subjects, versions, ids, compatibility levels, modes.

State moves only in `replay`, record by record in the order of the topic. A record that is none of a registry's is skipped, as Confluent's
registry skips it.

- `max_id` never goes down: the id of a schema that was deleted permanently is not given again.
- A DELETE_SUBJECT record deletes the versions that stand in front of it. A version that is registered later has a larger number.
- CLEAR_SUBJECT clears a cache of Confluent's registry; here there is none.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, TypeVar

from barnabas.registry.levels import CompatibilityLevel, Mode
from barnabas.registry.problems import Problem, subject_not_found, version_not_found
from barnabas.registry.stored_records import (
    StoredRecord,
    StoredVersion,
    config_record,
    mode_record,
    parsed,
    version_record,
)
from barnabas.schemas.schema import Schema

__all__ = ["LATEST", "RegistryState"]

K = TypeVar("K")

logger = logging.getLogger(__name__)

LATEST = -1
"""A version: the last one that is not deleted."""


class RegistryState:
    """The registry as of an offset."""

    def __init__(self) -> None:
        self.next_offset = 0
        self.max_id = 0
        self.claim = ""
        self.configs: dict[str | None, dict[str, Any]] = {}
        self.modes: dict[str | None, Mode] = {}
        self._subjects: dict[str, dict[int, StoredVersion]] = {}
        self._by_id: dict[int, dict[tuple[str, int], StoredVersion]] = {}
        self._by_schema: dict[Schema, set[tuple[str, int]]] = {}
        self._referring: dict[tuple[str, int], set[tuple[str, int]]] = {}

    def __repr__(self) -> str:
        return f"<RegistryState subjects={len(self._subjects)} max_id={self.max_id} next_offset={self.next_offset}>"

    # Reading
    def subjects(self, *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Return the names of subjects with a version that is not deleted; with deleted ones, too, or alone."""
        live = {name: any(not each.is_deleted for each in found.values()) for name, found in self._subjects.items()}
        return sorted(name for name, is_live in live.items() if (not is_live if deleted_only else is_live or deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[StoredVersion]:
        """Return the versions of a subject, by number; none if it does not exist."""
        found = self._subjects.get(subject, {})
        return [found[number] for number in sorted(found) if deleted or not found[number].is_deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> StoredVersion:
        """Return a version, or the last one for LATEST.

        Raises:
            Problem: 40401, 40402.
        """
        found = self.versions(subject, deleted=deleted)
        if not found:
            raise subject_not_found(subject)
        if number == LATEST:
            return found[-1]
        wanted = self._subjects[subject].get(number)
        if wanted is None or (wanted.is_deleted and not deleted):
            raise version_not_found(number)
        return wanted

    def next_version(self, subject: str) -> int:
        """Return the number of a subject's next version; a deleted version keeps its number."""
        return max(self._subjects.get(subject, {}), default=0) + 1

    def with_id(self, schema_id: int, *, deleted: bool = True) -> list[StoredVersion]:
        """Return the versions that have an id, by subject and number."""
        found = self._by_id.get(schema_id, {})
        return [found[place] for place in sorted(found) if deleted or not found[place].is_deleted]

    def schemas(self) -> list[StoredVersion]:
        """Return one version of each id."""
        return [next(iter(found.values())) for found in self._by_id.values() if found]

    def with_schema(self, schema: Schema) -> StoredVersion | None:
        """Return a version that has a schema, deleted or not; None if there is none."""
        places = self._by_schema.get(schema)
        if not places:
            return None
        subject, number = min(places)
        return self._subjects[subject][number]

    def referring_to(self, subject: str, version: int, *, deleted: bool = True) -> list[StoredVersion]:
        """Return the versions whose schema refers to one."""
        found = (self._subjects[name][number] for name, number in sorted(self._referring.get((subject, version), ())))
        return [each for each in found if deleted or not each.is_deleted]

    def level(self, subject: str) -> CompatibilityLevel:
        """Return the compatibility level that counts for a subject."""
        config = {**self.configs.get(None, {}), **self.configs.get(subject, {})}
        return CompatibilityLevel(config.get("compatibilityLevel", CompatibilityLevel.BACKWARD))

    def normalizes(self, subject: str) -> bool:
        """Return whether a subject's schemas are normalized unasked."""
        config = {**self.configs.get(None, {}), **self.configs.get(subject, {})}
        return bool(config.get("normalize", False))

    def mode(self, subject: str) -> Mode:
        """Return the mode that counts for a subject."""
        of_all = self.modes.get(None, Mode.READWRITE)
        return of_all if of_all is Mode.READONLY_OVERRIDE else self.modes.get(subject, of_all)

    def records(self) -> list[StoredRecord]:
        """Return records that make this state in an empty topic, behind a NOOP record with `max_id`; the smallest id comes first."""
        versions = [each for found in self._subjects.values() for each in found.values()]
        versions.sort(key=lambda each: (each.schema_id, each.subject, each.version))
        return [
            *(config_record(subject, config) for subject, config in self.configs.items()),
            *map(version_record, versions),
            *(mode_record(subject, mode.value) for subject, mode in self.modes.items()),
        ]

    # Replaying
    def replay(self, key: bytes | memoryview | None, value: bytes | memoryview | None) -> None:
        """Apply a record; the caller sets `next_offset`."""
        name = parsed(key)
        if name is None:
            return
        content = parsed(value)
        if value is not None and content is None and name.get("keytype") != "NOOP":
            logger.warning("A record of _schemas is skipped: its value is not the JSON of a registry")
            return
        try:
            self._apply(name, content)
        except (KeyError, TypeError, ValueError, Problem):
            logger.warning("A record of _schemas is skipped: a field is missing or is not valid")

    def _apply(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        match key["keytype"]:
            case "SCHEMA":
                self._set_version(str(key["subject"]), int(key["version"]), value)
            case "DELETE_SUBJECT" if value is not None:
                self._delete_subject(str(value["subject"]), int(value["version"]))
            case "CONFIG":
                self._set_config(key["subject"], value)
            case "MODE" if value is not None:
                self.modes[key["subject"]] = Mode(value["mode"])
            case "MODE":
                self.modes.pop(key["subject"], None)
            case "NOOP" if value is not None:
                self.max_id = max(self.max_id, int(value["maxId"]))
                self.claim = str(value["claim"])
            case _:
                pass

    def _set_version(self, subject: str, number: int, value: dict[str, Any] | None) -> None:
        version = None if value is None else StoredVersion.from_json(value)
        if version is not None and (version.subject, version.version) != (subject, number):
            raise ValueError("the key names another version than the value")
        self._forget(subject, number)
        if version is not None:
            self._subjects.setdefault(subject, {})[number] = version
            self._by_id.setdefault(version.schema_id, {})[subject, number] = version
            self._by_schema.setdefault(version.schema, set()).add((subject, number))
            for each in version.schema.references:
                self._referring.setdefault((each.subject, each.version), set()).add((subject, number))
            self.max_id = max(self.max_id, version.schema_id)

    def _forget(self, subject: str, number: int) -> None:
        versions = self._subjects.get(subject, {})
        old = versions.pop(number, None)
        if old is None:
            return
        if not versions:
            del self._subjects[subject]
        self._by_id[old.schema_id].pop((subject, number))
        if not self._by_id[old.schema_id]:
            del self._by_id[old.schema_id]
        _discard(self._by_schema, old.schema, (subject, number))
        for each in old.schema.references:
            _discard(self._referring, (each.subject, each.version), (subject, number))

    def _delete_subject(self, subject: str, until: int) -> None:
        for number, version in list(self._subjects.get(subject, {}).items()):
            if number <= until and not version.is_deleted:
                deleted = replace(version, is_deleted=True)
                self._subjects[subject][number] = deleted
                self._by_id[version.schema_id][subject, number] = deleted

    def _set_config(self, subject: str | None, value: dict[str, Any] | None) -> None:
        if value is None:
            self.configs.pop(subject, None)
            return
        if value.get("compatibilityLevel") is not None:
            CompatibilityLevel(value["compatibilityLevel"])
        self.configs[subject] = {name: each for name, each in value.items() if each is not None and name != "subject"}


def _discard(places_by: dict[K, set[tuple[str, int]]], key: K, place: tuple[str, int]) -> None:
    places = places_by.get(key, set())
    places.discard(place)
    if not places:
        places_by.pop(key, None)
