"""Encodes rows as JSON, and checks each by the JSON Schema, as Confluent's serializer does.

A null field is left out, unless the schema's `required` names it: so an optional field needs no union with null. Dates and times are text
in ISO 8601, bytes are base64, decimals are numbers.
"""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

from pyspark.sql.types import DataType, StructType

from barnabas.schemas.schema import JSON
from barnabas.spark.decoding.json_checks import invalid
from barnabas.spark.decoding.json_schemas import JsonSchema, json_schema_of, object_of, validator
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.row_encoder import Encoder
from barnabas.spark.encoding.text_schema import TextSchema
from barnabas.words.nearest import did_you_mean

__all__ = ["json_encoder", "row_format"]


def _check_rows(rows: DataType, schema: JsonSchema) -> None:
    """Compare the names of the outermost object; all else is checked in each row."""
    validator(schema, "the schema")
    if not isinstance(rows, StructType):
        return
    described = object_of(schema)
    properties = described.get("properties") or {}
    for name in described.get("required", ()):
        if name not in rows.names:
            raise ValueError(f"the schema's field {name} has no column{did_you_mean(name, rows.names)}")
    if described.get("additionalProperties") is False and not described.get("patternProperties"):
        for name in rows.names:
            if name not in properties:
                raise ValueError(f"the schema has no field for column {name}{did_you_mean(name, properties)}")


def json_encoder(schema: JsonSchema) -> Encoder:
    """Return the encoder of rows.

    Raises:
        ValueError: the schema is not a valid JSON Schema.
    """
    checked = validator(schema, "the schema")
    required = _required(schema.definition) | {name for _, each in schema.needed for name in _required(each)}

    def encode(row: dict[str, Any]) -> bytes:
        value = _json(row, required)
        if why := invalid(checked, value):
            raise BadValue(f"the row is not of the schema: {why}")
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except ValueError as error:  # NaN and infinities, and half of a surrogate pair
            raise BadValue(f"the row is not JSON: {error}") from None

    return encode


def _required(schema: Any) -> set[str]:
    """Return every name that is required anywhere in a schema."""
    if isinstance(schema, list):
        return set().union(*map(_required, schema))
    if not isinstance(schema, dict):
        return set()
    names = schema.get("required", ())
    own = {each for each in names if isinstance(each, str)} if isinstance(names, list) else set()
    return own.union(*map(_required, schema.values()))


def _json(value: Any, required: set[str]) -> Any:
    if isinstance(value, dict):
        fields = value.items()
        return {name: _json(each, required) for name, each in fields if each is not None or name in required}
    if isinstance(value, list):
        return [_json(each, required) for each in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _title(schema: JsonSchema) -> str | None:
    return schema.definition.get("title") if isinstance(schema.definition, dict) else None


row_format = TextSchema(JSON, json_schema_of, _check_rows, _title, json_encoder).row_format
