"""Checks JSON values by the JSON Schema that wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import referencing.exceptions

from barnabas.schemas.schema import JSON, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.confluent_frame import split_frame
from barnabas.spark.decoding.json_schemas import json_schema_of, validator
from barnabas.spark.decoding.row_decoder import BadValue, shortened
from barnabas.spark.decoding.writer_schemas import WriterSchemas

__all__ = ["invalid", "json_check"]


def json_check(source: SchemaSource) -> Callable[[bytes | None], str | None]:
    """Return the function from a value to why it is bad, or None if it is not.

    Raises:
        ValueError: a schema of a folder is not valid.
    """
    writers = WriterSchemas(source, JSON, _validator)
    writers.parse_known()

    def check(value: bytes | None) -> str | None:
        if value is None:
            return None
        try:
            schema_id, body = split_frame(value)
            checked = writers.of_id(schema_id)
        except BadValue as error:
            return shortened(str(error))
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            return f"the value is not JSON (schema {schema_id})"
        why = invalid(checked, parsed)
        return shortened(f"the value is not of schema {schema_id}: {why}") if why else None

    return check


def invalid(checked: Any, value: Any) -> str | None:
    """Return why a value is not valid; None if it is.

    Args:
        checked: the validator.
        value: parsed JSON.
    """
    try:
        error = next(checked.iter_errors(value), None)
    except referencing.exceptions.Unresolvable as missing:
        return f"the schema refers to {missing.ref}, which is not among its references"
    except RecursionError:
        return "the value is nested too deeply"
    if error is None:
        return None
    return f"{error.json_path.removeprefix('$.')}: {error.message}" if error.path else str(error.message)


def _validator(source: SchemaSource, schema: Schema, what: str) -> Any:
    return validator(json_schema_of(source, schema), what)
