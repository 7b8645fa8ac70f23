"""Schemas by their ids over HTTP."""

from __future__ import annotations

from tests.registry.asking import Asking, record

PROTO = 'syntax = "proto3"; message A { int32 x = 1; }'


def test_a_schema_by_its_id(registry: Asking, subject: str) -> None:
    found = registry.register(subject, {"type": "fixed", "name": "ById", "size": 3})
    text = '{"type":"fixed","name":"ById","size":3}'
    assert registry.get(f"/schemas/ids/{found}") == {"schema": text}
    assert registry.get(f"/schemas/ids/{found}?fetchMaxId=true")["maxId"] >= found
    assert registry.text("GET", f"/schemas/ids/{found}/schema") == (200, text)
    assert registry.get(f"/schemas/ids/{found}/subjects") == [subject]
    assert registry.get(f"/schemas/ids/{found}/versions") == [{"subject": subject, "version": 1}]
    registry.delete(f"/subjects/{subject}")
    assert registry.get(f"/schemas/ids/{found}/subjects") == []
    assert registry.get(f"/schemas/ids/{found}/subjects?deleted=true") == [subject]
    assert [registry.get(f"/schemas/ids/{each}") for each in ("999999", "x")] == [40403, 404]


def test_lists(registry: Asking, subject: str) -> None:
    registry.register(subject, record("a"))
    registry.register(subject, record("a", "b?"))
    assert registry.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    found = registry.get(f"/schemas?subjectPrefix={subject}")
    assert [each["version"] for each in found] == [1, 2]
    assert [each["version"] for each in registry.get(f"/schemas?subjectPrefix={subject}&latestOnly=true")] == [2]


def test_protobuf_is_text_or_compiled(registry: Asking, subject: str) -> None:
    found = registry.register(subject, PROTO, "PROTOBUF")
    assert registry.get(f"/schemas/ids/{found}") == {"schema": PROTO, "schemaType": "PROTOBUF"}
    compiled = registry.get(f"/schemas/ids/{found}?format=serialized")["schema"]
    assert registry.register(subject, compiled, "PROTOBUF") == found, "the compiled file is the same schema"
    assert registry.get(f"/subjects/{subject}/versions/1?format=serialized")["schema"] == compiled
    assert registry.register(f"{subject}-2", compiled, "PROTOBUF") == found, "in another subject too"
    assert registry.register(subject, PROTO.replace("int32 x", "int32 y"), "PROTOBUF") == 42203


def test_json(registry: Asking, subject: str) -> None:
    found = registry.register(subject, {"type": "object"}, "JSON")
    assert registry.get(f"/schemas/ids/{found}") == {"schema": '{"type":"object"}', "schemaType": "JSON"}
    registry.put(f"/config/{subject}", compatibility="NONE")
    assert registry.register(subject, {"type": "array"}, "JSON") == found + 1
