"""Schemas of the three types, parsed: what is stored of one, and what makes two equal.

A schema is parsed in a thread, and what comes out is kept: a registry sees the same few schemas at the start of every producer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from barnabas.registry.avro_parser import InvalidAvro, parse_avro
from barnabas.registry.avro_text import avro_text
from barnabas.registry.avro_types import AvroType
from barnabas.registry.json_schema import InvalidJsonSchema, json_schema_text
from barnabas.registry.problems import Problem, invalid_schema
from barnabas.registry.protobuf_compiler import CompiledSchema, InvalidProtobuf, compile_protobuf
from barnabas.registry.state import RegistryState
from barnabas.schemas.schema import AVRO, JSON, KINDS, PROTOBUF, Reference, Schema

__all__ = ["ParsedSchema", "ParsedSchemas"]

_KEPT = 5_000
_REFERENCES_MAX = 1_000


class ParsedSchema(NamedTuple):
    """A schema that is valid.

    Attributes:
        schema: as it is stored.
        identity: equal for schemas that are one schema.
        avro: None for the other types.
        compiled: the compiled file; None for the other types.
    """

    schema: Schema
    identity: object
    avro: AvroType | None = None
    compiled: CompiledSchema | None = None


class ParsedSchemas:
    """Parses schemas, and keeps what it parsed last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], ParsedSchema] = OrderedDict()

    def __repr__(self) -> str:
        return f"<ParsedSchemas kept={len(self._kept)}>"

    async def parse(
        self, state: RegistryState, schema: Schema, *, normalize: bool = False, is_new: bool = False
    ) -> ParsedSchema:
        """Return a schema, parsed.

        Args:
            state: has the schemas that it refers to.
            normalize: sort what has no order.
            is_new: it is to be stored, so everything of it is checked.

        Raises:
            Problem: 42201.
        """
        needed = _needed(state, schema)
        key = (schema, normalize, is_new, *needed)
        found = self._kept.get(key)
        if found is None:
            found = await asyncio.to_thread(_parsed, schema, needed, normalize, is_new)
            self._kept[key] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found


def _parsed(schema: Schema, needed: list[tuple[str, Schema]], normalize: bool, is_new: bool) -> ParsedSchema:
    references = tuple(sorted(schema.references, key=lambda each: each.name)) if normalize else schema.references
    try:
        if schema.kind == AVRO:
            avro = parse_avro(schema.text, [each.text for _, each in needed], checks_defaults=is_new)
            stored = Schema(avro_text(avro, normalize=normalize), AVRO, references)
            return ParsedSchema(stored, stored, avro=avro)
        if schema.kind == JSON:
            text = json_schema_text(schema.text, {name: each.text for name, each in needed}, normalize=normalize)
            stored = Schema(text, JSON, references)
            return ParsedSchema(stored, stored)
        compiled = compile_protobuf(schema.text, {name: each.text for name, each in needed})
        stored = Schema(compiled.text, PROTOBUF, references)
        return ParsedSchema(stored, (PROTOBUF, compiled.content, references), compiled=compiled)
    except (InvalidAvro, InvalidJsonSchema, InvalidProtobuf) as error:
        raise invalid_schema(str(error)) from None


def _needed(state: RegistryState, schema: Schema) -> list[tuple[str, Schema]]:
    """Return the schemas that a schema needs, each behind those that it needs itself, each name once."""
    if schema.kind not in KINDS:
        raise invalid_schema(f"{schema.kind} is not a type of schemas: {', '.join(KINDS)}")
    found: dict[str, Schema] = {}
    _collect(state, schema, found, ())
    return list(found.items())


def _collect(state: RegistryState, schema: Schema, found: dict[str, Schema], within: tuple[Reference, ...]) -> None:
    for reference in schema.references:
        if reference.name in found:
            continue
        if reference in within:
            raise invalid_schema(f"version {reference.version} of subject {reference.subject} refers to itself")
        try:
            # A deleted version still serves the schemas that refer to it.
            needed = state.version(reference.subject, reference.version, deleted=True).schema
        except Problem:
            raise invalid_schema(
                f"it refers to version {reference.version} of subject {reference.subject}, which does not exist"
            ) from None
        if needed.kind != schema.kind:
            raise invalid_schema(f"it refers to {reference.subject}, which is {needed.kind}")
        _collect(state, needed, found, (*within, reference))
        found[reference.name] = needed
        if len(found) > _REFERENCES_MAX:
            raise invalid_schema(f"it needs more than {_REFERENCES_MAX} other schemas")
