"""Answers about subjects and their versions, and whether a schema is compatible with them."""

from __future__ import annotations

from typing import Any

from barnabas.registry.asked import Asked
from barnabas.registry.compatibility import compatibility_problems
from barnabas.registry.deleting import delete_subject, delete_version
from barnabas.registry.levels import CompatibilityLevel
from barnabas.registry.problems import Problem, schema_not_found, subject_not_found
from barnabas.registry.registering import found_version, register
from barnabas.registry.schema_routes import shown
from barnabas.registry.state import LATEST, RegistryState
from barnabas.registry.stored_records import StoredVersion
from barnabas.registry.writing import Decision

__all__ = [
    "check_against_all",
    "check_against_version",
    "delete_a_subject",
    "delete_a_version",
    "list_subjects",
    "list_versions",
    "look_up",
    "post_version",
    "referenced_by",
    "version",
    "version_text",
]


async def list_subjects(asked: Asked) -> list[str]:
    """GET /subjects"""
    prefix = asked.query.get("subjectPrefix", "").removeprefix(":*:")

    async def ask(state: RegistryState) -> list[str]:
        found = state.subjects(deleted=asked.is_set("deleted"), deleted_only=asked.is_set("deletedOnly"))
        return asked.page([each for each in found if each.startswith(prefix)])

    return await asked.registry.read(ask)


async def list_versions(asked: Asked) -> list[int]:
    """GET /subjects/{subject}/versions"""

    async def ask(state: RegistryState) -> list[int]:
        is_only = asked.is_set("deletedOnly")
        found = state.versions(asked.subject, deleted=is_only or asked.is_set("deleted"))
        if not found:
            raise subject_not_found(asked.subject)
        return asked.page([each.version for each in found if each.is_deleted or not is_only])

    return await asked.registry.read(ask)


async def _version(asked: Asked, *, deleted: bool) -> StoredVersion:
    number = asked.version()

    async def ask(state: RegistryState) -> StoredVersion:
        return state.version(asked.subject, number, deleted=deleted)

    return await asked.registry.read(ask)


async def version(asked: Asked) -> dict[str, Any]:
    """GET /subjects/{subject}/versions/{version}"""
    found = await _version(asked, deleted=asked.is_set("deleted"))
    schema = await shown(asked, found.schema)
    return {**found.to_json(), **schema.to_json()}


async def version_text(asked: Asked) -> str:
    """GET /subjects/{subject}/versions/{version}/schema"""
    found = await _version(asked, deleted=asked.is_set("deleted"))
    return (await shown(asked, found.schema)).text


async def referenced_by(asked: Asked) -> list[int]:
    """GET /subjects/{subject}/versions/{version}/referencedby"""
    found = await _version(asked, deleted=True)

    async def ask(state: RegistryState) -> list[int]:
        referring = state.referring_to(found.subject, found.version, deleted=asked.is_set("deleted"))
        return asked.page(sorted({each.schema_id for each in referring}))

    return await asked.registry.read(ask)


async def post_version(asked: Asked) -> dict[str, Any]:
    """POST /subjects/{subject}/versions"""
    wanted, registry = asked.registration(), asked.registry

    # Every producer registers when it starts. Nothing is to be stored then, and no claim is needed.
    async def ask(state: RegistryState) -> StoredVersion | None:
        return await found_version(registry.schemas, state, wanted)

    found = await registry.read(ask)
    if found is None or wanted.schema_id not in (None, found.schema_id):

        async def decide(state: RegistryState) -> Decision[StoredVersion]:
            return await register(registry.schemas, state, wanted)

        found = await registry.write(decide)
    return {"id": found.schema_id}


async def look_up(asked: Asked) -> dict[str, Any]:
    """POST /subjects/{subject}"""
    wanted, registry = asked.registration(), asked.registry

    async def ask(state: RegistryState) -> StoredVersion:
        deleted = asked.is_set("deleted")
        if not state.versions(asked.subject, deleted=deleted):
            raise subject_not_found(asked.subject)
        found = await found_version(registry.schemas, state, wanted, deleted=deleted)
        if found is None:
            raise schema_not_found()
        return found

    found = await registry.read(ask)
    schema = await shown(asked, found.schema)
    return {**found.to_json(), **schema.to_json()}


async def delete_a_subject(asked: Asked) -> list[int]:
    """DELETE /subjects/{subject}"""

    async def decide(state: RegistryState) -> Decision[list[int]]:
        return delete_subject(state, asked.subject, permanent=asked.is_set("permanent"))

    return await asked.registry.write(decide)


async def delete_a_version(asked: Asked) -> int:
    """DELETE /subjects/{subject}/versions/{version}"""
    number = asked.version()

    async def decide(state: RegistryState) -> Decision[int]:
        return delete_version(state, asked.subject, number, permanent=asked.is_set("permanent"))

    return await asked.registry.write(decide)


async def check_against_version(asked: Asked) -> dict[str, Any]:
    """POST /compatibility/subjects/{subject}/versions/{version}"""
    number = asked.version()

    async def ask(state: RegistryState) -> dict[str, Any]:
        try:
            earlier = [state.version(asked.subject, number)]
        except Problem:
            if number != LATEST:
                raise
            earlier = []  # The first version of a subject is compatible.
        return await _checked(asked, state, earlier, state.level(asked.subject))

    return await asked.registry.read(ask)


async def check_against_all(asked: Asked) -> dict[str, Any]:
    """POST /compatibility/subjects/{subject}/versions"""

    async def ask(state: RegistryState) -> dict[str, Any]:
        return await _checked(asked, state, state.versions(asked.subject), state.level(asked.subject))

    return await asked.registry.read(ask)


async def _checked(
    asked: Asked, state: RegistryState, earlier: list[StoredVersion], level: CompatibilityLevel
) -> dict[str, Any]:
    wanted, schemas = asked.registration(), asked.registry.schemas
    new = await schemas.parse(state, wanted.schema, normalize=wanted.normalize, is_new=True)
    problems = await compatibility_problems(schemas, state, asked.subject, new, earlier, level)
    messages = {"messages": problems} if asked.is_set("verbose") else {}
    return {"is_compatible": not problems, **messages}
