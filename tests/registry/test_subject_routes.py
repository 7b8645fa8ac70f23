"""Subjects and versions over HTTP: results and error codes."""

from __future__ import annotations

import json

import pytest

from barnabas.schemas.errors import IncompatibleSchema, SchemaNotFound
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.schema import RegisteredSchema, Schema
from barnabas.schemas.settings import RegistrySettings
from tests.registry.asking import Asking, record


def test_versions(registry: Asking, subject: str) -> None:
    first = registry.register(subject, record("a"))
    second = registry.register(subject, record("a", "b?"))
    assert registry.register(subject, record("a")) == first
    assert second != first  # Other tests have registered schemas with the same registry, perhaps these.
    assert registry.get(f"/subjects/{subject}/versions") == [1, 2]
    text = json.dumps(record("a"), separators=(",", ":"))
    assert registry.get(f"/subjects/{subject}/versions/1") == {
        "subject": subject,
        "version": 1,
        "id": first,
        "schema": text,
    }
    assert registry.text("GET", f"/subjects/{subject}/versions/1/schema") == (200, text)
    assert [registry.get(f"/subjects/{subject}/versions/{each}")["version"] for each in ("latest", "-1")] == [2, 2]
    assert [registry.get(f"/subjects/{subject}/versions/{each}") for each in (3, 0, "x", "99999999999")] == [
        40402,
        42202,
        42202,
        42202,
    ]
    assert registry.get("/subjects/absent/versions") == registry.get("/subjects/absent/versions/1") == 40401
    assert subject in registry.get("/subjects")
    assert registry.get(f"/subjects?subjectPrefix={subject}") == [subject]
    assert registry.get("/subjects?limit=1&offset=0") == registry.get("/subjects")[:1]


def test_one_schema_has_one_id_in_all_subjects(registry: Asking, subject: str) -> None:
    first = registry.register(f"{subject}-1", record("own"))
    assert registry.register(f"{subject}-2", record("own")) == first


def test_a_schema_is_looked_up(registry: Asking, subject: str) -> None:
    assert registry.look_up(subject, '"int"') == 40401
    found = registry.register(subject, '"int"')
    assert registry.look_up(subject, {"type": "int"}) == {
        "subject": subject,
        "version": 1,
        "id": found,
        "schema": '"int"',
    }
    assert registry.look_up(subject, '"long"') == 40403
    assert registry.look_up(subject, "{") == 42201


def test_an_incompatible_schema(registry: Asking, subject: str) -> None:
    registry.register(subject, record("a"))
    assert registry.register(subject, record("a", "b")) == 409
    assert registry.check(f"{subject}/versions/latest", record("a", "b")) == {"is_compatible": False}
    found = registry.check(f"{subject}/versions?verbose=true", record("a", "b"))
    assert found == {
        "is_compatible": False,
        "messages": ["it cannot read version 1: /b: the reader's field has no default, and is not written"],
    }
    assert registry.check(f"{subject}/versions/1?verbose=true", record("a")) == {"is_compatible": True, "messages": []}
    assert registry.check(f"{subject}/versions/2", record("a")) == 40402
    assert registry.check("absent/versions/latest", record("a")) == {"is_compatible": True}
    assert registry.check("absent/versions/1", record("a")) == 40401


def test_bad_bodies(registry: Asking, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    bodies: list[tuple[object, int]] = [
        (b"{", 400),
        ([], 400),
        ({}, 42201),
        ({"schema": ""}, 42201),
        ({"schema": 1}, 42201),
        ({"schema": '"int"', "schemaType": 1}, 42201),
        ({"schema": '"int"', "schemaType": "XML"}, 42201),
        ({"schema": '"int"', "references": [1]}, 42201),
        ({"schema": '"int"', "references": [{"name": "a", "subject": "s", "version": "1"}]}, 42201),
        ({"schema": '"int"', "id": "1"}, 422),
        ({"schema": '"int"', "ruleSet": {"domainRules": []}}, 422),
        ({"schema": '"int"', "id": 1}, 42205),
    ]
    for body, code in bodies:
        assert registry.ask("POST", path, body) == code, body


def test_deletions(registry: Asking, subject: str) -> None:
    path = f"/subjects/{subject}"
    first, second = (
        registry.register(subject, record("a", name="Deleted")),
        registry.register(subject, record("a", "b?", name="Deleted")),
    )
    assert registry.delete(f"{path}/versions/1?permanent=true") == 40407
    assert registry.delete(f"{path}/versions/1") == 1
    assert registry.delete(f"{path}/versions/1") == 40406
    assert registry.get(f"{path}/versions/1") == 40402
    assert registry.get(f"{path}/versions/1?deleted=true")["id"] == first
    assert registry.get(f"{path}/versions?deleted=true") == [1, 2]
    assert registry.get(f"{path}/versions?deletedOnly=true") == [1]
    assert registry.get(f"/schemas/ids/{first}")["schema"]
    assert registry.delete(f"{path}?permanent=true") == 40405
    assert registry.delete(path) == [2]
    assert (registry.delete(path), registry.delete("/subjects/absent")) == (40404, 40401)
    assert registry.get(f"{path}/versions") == 40401
    assert subject in registry.get("/subjects?deleted=true")
    assert registry.register(subject, record("a", name="Deleted")) == first, "a schema keeps its id"
    assert registry.get(f"{path}/versions") == [3]
    registry.delete(path)
    assert registry.delete(f"{path}?permanent=true") == [1, 2, 3]
    assert registry.delete(f"{path}?permanent=true") == 40401
    assert registry.get(f"/schemas/ids/{second}") == 40403
    assert registry.register(subject, record("a", "b?", name="Deleted")) > second, "an id is not given again"


def test_references(registry: Asking, subject: str) -> None:
    base = f"{subject}-base"
    registry.register(base, {"type": "enum", "name": "a.Kind", "symbols": ["A"]})
    references = [{"name": "a.Kind", "subject": base, "version": 1}]
    schema = {"type": "record", "name": "R", "fields": [{"name": "kind", "type": "a.Kind"}]}
    assert registry.register(subject, schema) == 42201
    found = registry.register(subject, schema, references=references)
    assert registry.get(f"/schemas/ids/{found}")["references"] == references
    assert registry.get(f"/subjects/{base}/versions/1/referencedby") == [found]
    assert registry.delete(f"/subjects/{base}") == registry.delete(f"/subjects/{base}/versions/1") == 42206
    registry.delete(f"/subjects/{subject}")
    assert registry.get(f"/subjects/{base}/versions/1/referencedby") == []
    assert registry.delete(f"/subjects/{base}") == [1]


def test_our_own_client(registry: Asking, subject: str) -> None:
    client = SchemaRegistry(RegistrySettings.of({"url": registry.url}))
    schema = Schema('{"type":"fixed","name":"OurOwn","size":1}')
    found = client.register(subject, schema)
    assert client.by_id(found) == schema
    assert client.version(subject) == client.lookup(subject, schema) == RegisteredSchema(subject, 1, found, schema)
    assert client.versions_of_id(found) == [(subject, 1)]
    with pytest.raises(IncompatibleSchema):
        client.register(subject, Schema('"int"'))
    with pytest.raises(SchemaNotFound):
        client.version("absent")
