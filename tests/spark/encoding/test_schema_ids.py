"""The id of a schema: found, or registered."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import IncompatibleSchema, SchemaNotFound
from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.source import source_of
from barnabas.spark.encoding.schema_ids import SubjectNaming, reference, schema_id
from tests.schemas.registry_server import running_registry

INT = Schema('"int"')


def test_a_schema_is_found_or_registered():
    with running_registry() as server:
        registry = source_of(server.url)
        with pytest.raises(
            SchemaNotFound, match=r"orders-value .*\. Register it, or let encode do so with auto_register=True"
        ):
            schema_id(registry, "orders-value", INT, register=False)
        assert server.subjects == {}
        assert schema_id(registry, "orders-value", INT, register=True) == 1
        assert schema_id(source_of(server.url), "orders-value", INT, register=False) == 1
        assert reference(registry, "m.proto", INT, register=True) == Reference("m.proto", "m.proto", 1)
        server.frozen.add("orders-value")
        with pytest.raises(IncompatibleSchema, match="a new version of subject orders-value"):
            schema_id(registry, "orders-value", Schema('"string"'), register=True)


def test_subjects():
    assert SubjectNaming("mine", "orders").of("r") == "mine"
    assert SubjectNaming(None, "orders", "key").of("r") == "orders-key"
    assert SubjectNaming(None, "orders", strategy="TopicRecordName").of("r") == "orders-r"
