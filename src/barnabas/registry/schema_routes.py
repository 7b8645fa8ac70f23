"""Answers about schemas by their ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas.registry.asked import Asked
from barnabas.registry.problems import schema_not_found
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion
from barnabas.schemas.schema import AVRO, JSON, PROTOBUF, Schema

__all__ = ["list_schemas", "schema", "schema_text", "schema_types", "shown", "subjects_of_schema", "versions_of_schema"]


async def shown(asked: Asked, schema: Schema) -> Schema:
    """Return a schema in the form that a request asks for: Protobuf as a compiled file for `format=serialized`."""
    if schema.kind != PROTOBUF or asked.query.get("format") != "serialized":
        return schema
    parsed = await asked.registry.schemas.parse(asked.registry.state, schema)
    assert parsed.compiled is not None
    return replace(schema, text=parsed.compiled.serialized)


async def _versions(asked: Asked, *, deleted: bool = True) -> list[StoredVersion]:
    schema_id = asked.schema_id()

    async def ask(state: RegistryState) -> list[StoredVersion]:
        if not state.with_id(schema_id):
            raise schema_not_found(schema_id)
        return state.with_id(schema_id, deleted=deleted)

    return await asked.registry.read(ask)


async def schema(asked: Asked) -> dict[str, Any]:
    """GET /schemas/ids/{id}"""
    found = (await _versions(asked))[0]
    largest = {"maxId": asked.registry.state.max_id} if asked.is_set("fetchMaxId") else {}
    return {**(await shown(asked, found.schema)).to_json(), **largest}


async def schema_text(asked: Asked) -> str:
    """GET /schemas/ids/{id}/schema"""
    found = (await _versions(asked))[0]
    return (await shown(asked, found.schema)).text


async def subjects_of_schema(asked: Asked) -> list[str]:
    """GET /schemas/ids/{id}/subjects"""
    found = await _versions(asked, deleted=asked.is_set("deleted"))
    return asked.page(sorted({each.subject for each in found}))


async def versions_of_schema(asked: Asked) -> list[dict[str, Any]]:
    """GET /schemas/ids/{id}/versions"""
    found = await _versions(asked, deleted=asked.is_set("deleted"))
    return asked.page([{"subject": each.subject, "version": each.version} for each in found])


async def schema_types(asked: Asked) -> list[str]:
    """GET /schemas/types"""
    return [JSON, PROTOBUF, AVRO]


async def list_schemas(asked: Asked) -> list[dict[str, Any]]:
    """GET /schemas"""
    prefix = asked.query.get("subjectPrefix", "").removeprefix(":*:")
    is_latest = asked.is_set("latestOnly")

    async def ask(state: RegistryState) -> list[dict[str, Any]]:
        deleted = asked.is_set("deleted")
        found = [
            each
            for subject in state.subjects(deleted=deleted)
            if subject.startswith(prefix)
            for each in state.versions(subject, deleted=deleted)[-1 if is_latest else 0 :]
        ]
        return [each.to_json() for each in asked.page(found)]

    return await asked.registry.read(ask)
