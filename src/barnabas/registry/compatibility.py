"""Whether a schema may become a subject's next version.

Avro schemas are compared by the specification's rules (`avro_resolution`). No kept library for Python compares JSON or Protobuf schemas, so
a new one is refused unless the level is NONE: a registry that guessed would let through what breaks readers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.registry.avro_resolution import unreadable_parts
from barnabas.registry.levels import CompatibilityLevel
from barnabas.registry.parsed_schemas import ParsedSchema, ParsedSchemas
from barnabas.registry.problems import Problem
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredVersion
from barnabas.words.printable import printable

__all__ = ["compatibility_problems"]


async def compatibility_problems(
    schemas: ParsedSchemas,
    state: RegistryState,
    subject: str,
    new: ParsedSchema,
    earlier: Sequence[StoredVersion],
    level: CompatibilityLevel,
) -> list[str]:
    """Return a sentence for each reason why a schema is not compatible; nothing if it is.

    Args:
        earlier: the versions in question, by number; a level that is not transitive takes the last one.

    Raises:
        Problem: 42203 if the level cannot be decided for this type of schemas.
    """
    if level is CompatibilityLevel.NONE or not earlier:
        return []
    found: list[str] = []
    for each in reversed(earlier if level.is_transitive else earlier[-1:]):
        old = await schemas.parse(state, each.schema)
        if old.identity == new.identity:
            continue
        if old.schema.kind != new.schema.kind:
            found.append(f"version {each.version} is {old.schema.kind}, and this schema is {new.schema.kind}")
            continue
        if old.avro is None or new.avro is None:
            raise _not_decided(subject, new, level)
        if level.is_backward:
            found += _named(each, "it cannot read", await asyncio.to_thread(unreadable_parts, old.avro, new.avro))
        if level.is_forward:
            found += _named(each, "it cannot be read by", await asyncio.to_thread(unreadable_parts, new.avro, old.avro))
    return found


def _named(version: StoredVersion, relation: str, reasons: Sequence[str]) -> list[str]:
    return [f"{relation} version {version.version}: {reason}" for reason in dict.fromkeys(reasons)]


def _not_decided(subject: str, new: ParsedSchema, level: CompatibilityLevel) -> Problem:
    return Problem(
        422,
        42203,
        f"This registry does not decide whether {new.schema.kind} schemas are {level}: set the level of subject "
        f"'{printable(subject)}' to NONE, and compare them yourself.",
    )
