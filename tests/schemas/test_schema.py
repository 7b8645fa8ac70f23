"""A schema as the registry's routes have it."""

from __future__ import annotations

import pytest

from barnabas.schemas.schema import AVRO, JSON, Reference, Schema


def test_what_is_sent_is_read():
    for schema in (Schema("1"), Schema("2", JSON, (Reference("n", "s", 3),))):
        assert Schema.from_json(schema.to_json()) == schema
    assert "schemaType" not in Schema("1", AVRO).to_json()
    assert Schema.from_json({"schema": "1", "schemaType": None, "references": None}) == Schema("1")
    with pytest.raises(KeyError):
        Schema.from_json({"schemaType": "AVRO"})
