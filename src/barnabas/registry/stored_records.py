r"""The records of the topic `_schemas`: keys and values in JSON, as Confluent's registry writes them.

    key                                                               value
    {"keytype":"SCHEMA","subject":"s","version":1,"magic":1}          {"subject":"s","version":1,"id":7,"schema":"…","deleted":false}
                                                                      and "schemaType", "references", where they are not AVRO, none
    {"keytype":"DELETE_SUBJECT","subject":"s","magic":0}              {"subject":"s","version":3}: versions up to 3 are deleted
    {"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}               {"subject":"s"}
    {"keytype":"CONFIG","subject":null,"magic":0}                     {"compatibilityLevel":"FULL"}; null is all subjects
    {"keytype":"MODE","subject":null,"magic":0}                       {"mode":"READONLY"}
    {"keytype":"NOOP","magic":0}                                      Confluent: none

A record without a value takes its key away: a deleted version, a level that no longer differs.

**The NOOP record** is a registry's own first write, and Confluent's registry skips it, whatever its value is. Here it has one:
`{"maxId":7,"claim":"…"}`. `maxId` is the largest id that any schema has had, also one that has been deleted permanently: its record is
gone after a compaction, and its id must not be given to another schema. `claim` names the registry that wrote it.

The order of fields within a key is part of it, because compaction compares bytes.

Source: io.confluent.kafka.schemaregistry.storage (SchemaKey, SchemaValue, ConfigKey and so on).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from barnabas.schemas.schema import AVRO, Schema

__all__ = [
    "NOOP_KEY",
    "StoredRecord",
    "StoredVersion",
    "config_key",
    "config_record",
    "delete_subject_record",
    "mode_key",
    "mode_record",
    "noop_record",
    "parsed",
    "tombstone",
    "version_key",
    "version_record",
]

StoredRecord = tuple[bytes, bytes | None]
"""Key and value."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a subject.

    Attributes:
        schema: its text is the stored one.
        is_deleted: the subject, or this version, was deleted, and not permanently.
    """

    subject: str
    version: int
    schema_id: int
    schema: Schema
    is_deleted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as the routes have it."""
        found = {"subject": self.subject, "version": self.version, "id": self.schema_id}
        return {**found, **self.schema.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> StoredVersion:
        """Return the version of a record's value.

        Raises:
            KeyError, TypeError, ValueError: a field is missing or is of another type.
        """
        schema = Schema.from_json(value)
        return cls(
            str(value["subject"]), int(value["version"]), int(value["id"]), schema, bool(value.get("deleted", False))
        )


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def version_key(subject: str, version: int) -> bytes:
    """Return the key of a version."""
    return _json({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})


def _subject_key(keytype: str, subject: str | None) -> bytes:
    return _json({"keytype": keytype, "subject": subject, "magic": 0})


def config_key(subject: str | None) -> bytes:
    """Return the key of a subject's compatibility level; None for all subjects."""
    return _subject_key("CONFIG", subject)


def mode_key(subject: str | None) -> bytes:
    """Return the key of a subject's mode; None for all subjects."""
    return _subject_key("MODE", subject)


NOOP_KEY = _json({"keytype": "NOOP", "magic": 0})


def version_record(version: StoredVersion) -> StoredRecord:
    """Return the record of a version."""
    schema = version.schema
    value: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    if schema.kind != AVRO:
        value["schemaType"] = schema.kind
    if schema.references:
        value["references"] = [each.to_json() for each in schema.references]
    value |= {"schema": schema.text, "deleted": version.is_deleted}
    return version_key(version.subject, version.version), _json(value)


def delete_subject_record(subject: str, version: int) -> StoredRecord:
    """Return the record that deletes all versions of a subject up to one."""
    return _subject_key("DELETE_SUBJECT", subject), _json({"subject": subject, "version": version})


def config_record(subject: str | None, config: dict[str, Any]) -> StoredRecord:
    """Return the record of a compatibility level and `normalize`."""
    return config_key(subject), _json(config)


def mode_record(subject: str | None, mode: str) -> StoredRecord:
    """Return the record of a mode."""
    return mode_key(subject), _json({"mode": mode})


def noop_record(max_id: int, claim: str) -> StoredRecord:
    """Return the record of a claim."""
    return NOOP_KEY, _json({"maxId": max_id, "claim": claim})


def tombstone(key: bytes) -> StoredRecord:
    """Return the record that takes a key away."""
    return key, None


def parsed(text: bytes | memoryview | None) -> dict[str, Any] | None:
    """Return a key or a value as JSON; None if it is no object, as nothing that a registry wrote."""
    try:
        found = json.loads(bytes(text or b""))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
