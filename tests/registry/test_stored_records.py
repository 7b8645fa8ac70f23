"""Records are Confluent's, to the byte where a key is compared."""

from __future__ import annotations

import json

from barnabas.registry.stored_records import (
    NOOP_KEY,
    StoredVersion,
    config_record,
    delete_subject_record,
    mode_record,
    noop_record,
    parsed,
    tombstone,
    version_key,
    version_record,
)
from barnabas.schemas.schema import PROTOBUF, Reference, Schema


def test_keys_are_confluents_bytes() -> None:
    assert version_key("é", 2) == '{"keytype":"SCHEMA","subject":"é","version":2,"magic":1}'.encode()
    assert config_record(None, {})[0] == b'{"keytype":"CONFIG","subject":null,"magic":0}'
    assert mode_record("s", "IMPORT") == (b'{"keytype":"MODE","subject":"s","magic":0}', b'{"mode":"IMPORT"}')
    assert NOOP_KEY == b'{"keytype":"NOOP","magic":0}'


def test_a_version() -> None:
    stored = StoredVersion("s", 2, 7, Schema('"int"'))
    _, value = version_record(stored)
    assert value == rb'{"subject":"s","version":2,"id":7,"schema":"\"int\"","deleted":false}'
    assert StoredVersion.from_json(json.loads(value)) == stored


def test_a_version_with_references() -> None:
    stored = StoredVersion("s", 1, 7, Schema("text", PROTOBUF, (Reference("a.proto", "a", 3),)), is_deleted=True)
    _, value = version_record(stored)
    assert value == (
        b'{"subject":"s","version":1,"id":7,"schemaType":"PROTOBUF",'
        b'"references":[{"name":"a.proto","subject":"a","version":3}],"schema":"text","deleted":true}'
    )
    assert StoredVersion.from_json(json.loads(value)) == stored


def test_the_other_records() -> None:
    assert delete_subject_record("s", 3) == (
        b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        b'{"subject":"s","version":3}',
    )
    assert noop_record(7, "me")[1] == b'{"maxId":7,"claim":"me"}'
    assert tombstone(b"key") == (b"key", None)


def test_what_no_registry_wrote() -> None:
    assert [parsed(each) for each in (None, b"", b"[]", b"{", b"\xff", b"[" * 100_000)] == [None] * 6
