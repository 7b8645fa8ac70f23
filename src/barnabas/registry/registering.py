"""Registers a schema: finds the version that it is, or makes it the next one.

A schema has one id in all subjects. A schema that was deleted, and not permanently, keeps its id, and gets a new number when it is
registered again.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.registry.compatibility import compatibility_problems
from barnabas.registry.levels import Mode
from barnabas.registry.parsed_schemas import ParsedSchema, ParsedSchemas
from barnabas.registry.problems import id_taken, incompatible, invalid_schema, not_permitted
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion, version_record
from barnabas.registry.writing import Decision
from barnabas.schemas.schema import Schema
from barnabas.words.printable import printable

__all__ = ["Registration", "found_version", "register"]

_LARGEST = 2**31 - 1


class Registration(NamedTuple):
    """A schema for a subject.

    Attributes:
        schema_id, version: with the mode IMPORT; None to choose the next ones.
    """

    subject: str
    schema: Schema
    normalize: bool = False
    schema_id: int | None = None
    version: int | None = None


async def found_version(
    schemas: ParsedSchemas, state: RegistryState, wanted: Registration, *, deleted: bool = False
) -> StoredVersion | None:
    """Return the last version of the subject that the schema is; None if it is none.

    Raises:
        Problem: 42201.
    """
    versions = state.versions(wanted.subject, deleted=deleted)
    if not versions:
        return None
    new = await _parsed(schemas, state, wanted, is_new=False)
    return await _equal(schemas, state, new, versions)


async def register(schemas: ParsedSchemas, state: RegistryState, wanted: Registration) -> Decision[StoredVersion]:
    """Return the version that a schema is, or the record that makes it one.

    Raises:
        Problem: 42201, 409, 42203, 42205, 42207.
    """
    mode = state.mode(wanted.subject)
    new = await _parsed(schemas, state, wanted, is_new=True)
    versions = state.versions(wanted.subject)
    if mode is Mode.IMPORT or wanted.schema_id is None:
        found = await _equal(schemas, state, new, versions)
        if (
            found is not None
            and wanted.schema_id in (None, found.schema_id)
            and wanted.version in (None, found.version)
        ):
            return Decision(found)
    _check_mode(mode, wanted)
    if mode is Mode.IMPORT:
        return await _import(schemas, state, wanted, new)
    level = state.level(wanted.subject)
    if problems := await compatibility_problems(schemas, state, wanted.subject, new, versions, level):
        raise incompatible(problems)
    known = await _with_same_schema(schemas, state, new)
    schema_id = state.max_id + 1 if known is None else known.schema_id
    if schema_id > _LARGEST:
        raise invalid_schema("no id is left")
    made = StoredVersion(wanted.subject, state.next_version(wanted.subject), schema_id, new.schema)
    return Decision(made, [version_record(made)])


def _check_mode(mode: Mode, wanted: Registration) -> None:
    subject = printable(wanted.subject)
    if mode in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        raise not_permitted(f"Subject '{subject}' is in read-only mode")
    if mode is Mode.IMPORT and wanted.schema_id is None:
        raise not_permitted(f"Subject '{subject}' is in import mode, so a schema comes with its id and version")
    if mode is not Mode.IMPORT and (wanted.schema_id is not None or wanted.version is not None):
        raise not_permitted(f"Subject '{subject}' is not in import mode, so a schema comes without an id and a version")


async def _import(
    schemas: ParsedSchemas, state: RegistryState, wanted: Registration, new: ParsedSchema
) -> Decision[StoredVersion]:
    assert wanted.schema_id is not None
    for each in state.with_id(wanted.schema_id)[:1]:
        if (await schemas.parse(state, each.schema)).identity != new.identity:
            raise id_taken(wanted.schema_id)
    version = state.next_version(wanted.subject) if wanted.version is None else wanted.version
    made = StoredVersion(wanted.subject, version, wanted.schema_id, new.schema)
    return Decision(made, [version_record(made)])


async def _parsed(schemas: ParsedSchemas, state: RegistryState, wanted: Registration, *, is_new: bool) -> ParsedSchema:
    normalize = wanted.normalize or state.normalizes(wanted.subject)
    return await schemas.parse(state, wanted.schema, normalize=normalize, is_new=is_new)


async def _equal(
    schemas: ParsedSchemas, state: RegistryState, new: ParsedSchema, versions: list[StoredVersion]
) -> StoredVersion | None:
    for each in reversed(versions):
        if each.schema == new.schema:
            return each
    for each in reversed(versions):
        if each.schema.kind == new.schema.kind and (await schemas.parse(state, each.schema)).identity == new.identity:
            return each
    return None


async def _with_same_schema(schemas: ParsedSchemas, state: RegistryState, new: ParsedSchema) -> StoredVersion | None:
    """Return a version of any subject that has a schema."""
    found = state.with_schema(new.schema)
    if found is not None or new.compiled is None:
        return found
    # Two texts of Protobuf may be one schema.
    candidates = [each for each in state.schemas() if each.schema.kind == new.schema.kind]
    return await _equal(schemas, state, new, candidates)
