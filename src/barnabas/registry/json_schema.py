"""JSON schemas: checked against the drafts' own schemas, with their references.

A schema without `$schema` is one of draft 7, as for Confluent's registry. A `$ref` is resolved within the schema or by a reference of the
registry; no other address is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag

__all__ = ["InvalidJsonSchema", "json_schema_text"]

_DEEP = "its objects are nested too deeply"


class InvalidJsonSchema(ValueError):
    """The text is not a JSON schema; the message says why."""


def json_schema_text(text: str, needed: Mapping[str, str], *, normalize: bool = False) -> str:
    """Check a schema, and return the text that a registry stores: without white space, its names in the given order.

    Args:
        needed: by the address in `$ref`, the schemas that it refers to.
        normalize: put names into the order of letters.

    Raises:
        InvalidJsonSchema: it is not a valid schema.
    """
    try:
        schema = _parsed(text)
        _check(schema, needed)
        return json.dumps(schema, ensure_ascii=False, separators=(",", ":"), sort_keys=normalize)
    except RecursionError:
        raise InvalidJsonSchema(_DEEP) from None


def _parsed(text: str) -> Any:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise InvalidJsonSchema(f"it is not JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise InvalidJsonSchema("a JSON schema is an object, true or false")
    return schema


def _check(schema: Any, needed: Mapping[str, str]) -> None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft7Validator, validator_for

    validator = validator_for(schema, default=Draft7Validator)
    if isinstance(schema, dict) and "$schema" in schema and validator_for(schema, default=None) is None:
        raise InvalidJsonSchema(f"{str(schema['$schema'])[:80]} is not a known draft")
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidJsonSchema(f"{error.json_path}: {error.message[:200]}") from None
    own = {str(found) for key in ("$id", "id") for found in _values(schema, key) if isinstance(found, str)}
    for reference in _values(schema, "$ref"):
        address, _ = urldefrag(str(reference))
        if address and address not in needed and address not in own and not _is_draft(address):
            raise InvalidJsonSchema(f"$ref {address[:200]} is not one of the schema's references")


def _values(schema: Any, key: str) -> Iterator[Any]:
    """Yield the values of a name, at any depth; not in what holds values instead of schemas."""
    if isinstance(schema, list):
        for each in schema:
            yield from _values(each, key)
    elif isinstance(schema, dict):
        for name, each in schema.items():
            if name == key and isinstance(each, str):
                yield each
            elif name not in ("const", "enum", "default", "examples"):
                yield from _values(each, key)


def _is_draft(address: str) -> bool:
    return address.startswith(("http://json-schema.org/draft-", "https://json-schema.org/draft"))
