"""Values from JSON, as `framed_values` decodes them: behind the id of a schema.

A schema is the latest of a subject, as it is when the encoder is made. A message of Protobuf is the first one of its file. If a schema
takes a string, text that is not JSON of the schema is that string: keys are seldom written in quotes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import referencing
import referencing.exceptions
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message_factory import GetMessageClass
from jsonschema.validators import validator_for
from referencing.jsonschema import DRAFT202012

from barnabas.decoding.avro_of_json import avro_of_json, written
from barnabas.schemas.errors import SchemaError
from barnabas.schemas.references import needed_by_schema
from barnabas.schemas.schema import AVRO, JSON, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.avro_schemas import avro_schema_of, parsed_avro
from barnabas.spark.decoding.bad_value import BadValue
from barnabas.spark.decoding.confluent_frame import frame, message_indexes
from barnabas.spark.decoding.descriptor_sets import descriptor_set_of, message_at

Encoder = Callable[[bytes], bytes]
"""Takes JSON, returns the value.

Raises:
    BadValue: the JSON is not of the schema.
"""


def framed_encoder(source: SchemaSource, kind: str, subject: str) -> Encoder:
    """Return what encodes JSON by the latest schema of a subject, behind its id.

    Args:
        kind: AVRO, JSON or PROTOBUF.

    Raises:
        SchemaError: the registry does not give the schema, or it is of another kind, or not valid.
    """
    found = source.version(subject, "latest")
    if found.schema.kind != kind:
        raise SchemaError(f"the schema of subject {subject} is {found.schema.kind}, and not {kind}")
    prefix, what = frame(found.schema_id), f"schema {found.schema_id}"
    make = {AVRO: _avro, JSON: _json}.get(kind, _protobuf)
    try:
        return make(source, found.schema, what, prefix)
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(str(error)) from None


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadValue("it is not JSON") from None


def _text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise BadValue("it is not text in UTF-8") from None


def _avro(source: SchemaSource, schema: Schema, what: str, prefix: bytes) -> Encoder:
    parsed = parsed_avro(avro_schema_of(source, schema), what)

    branches = parsed.schema if isinstance(parsed.schema, list) else [parsed.schema]
    takes_text = any(each == "string" or each == {"type": "string"} for each in branches)

    def encode(text: bytes) -> bytes:
        out = io.BytesIO()
        out.write(prefix)
        try:
            value = avro_of_json(parsed.schema, parsed.names, _parsed(text))
        except BadValue:
            if not takes_text:
                raise
            value = _text(text)
        written(parsed.schema, value, out)
        return out.getvalue()

    return encode


def _json(source: SchemaSource, schema: Schema, what: str, prefix: bytes) -> Encoder:
    definition = json.loads(schema.text)
    kind = validator_for(definition, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(definition)
    except jsonschema.SchemaError as error:
        raise ValueError(f"{what} is not a valid JSON Schema: {error.message}") from None
    needed = [
        (name, referencing.Resource.from_contents(json.loads(each.text), default_specification=DRAFT202012))
        for name, each in needed_by_schema(source, schema)
    ]
    registry: Any = referencing.Registry().with_resources(needed)
    checked = kind(definition, registry=registry)
    takes_text = isinstance(definition, dict) and definition.get("type") == "string"

    def encode(text: bytes) -> bytes:
        try:
            value = _parsed(text)
        except BadValue:
            if not takes_text:
                raise
            value = None
        if takes_text and not isinstance(value, str):
            value = _text(text)
            text = json.dumps(value, ensure_ascii=False).encode()
        try:
            wrong = next(checked.iter_errors(value), None)
        except referencing.exceptions.Unresolvable as missing:
            raise BadValue(f"the schema refers to {missing.ref}, which is not among its references") from None
        if wrong is not None:
            raise BadValue(f"{'.'.join(map(str, wrong.absolute_path)) or 'it'}: {wrong.message}")
        return prefix + text.strip()

    return encode


def _protobuf(source: SchemaSource, schema: Schema, what: str, prefix: bytes) -> Encoder:
    message_class = GetMessageClass(message_at(descriptor_set_of(source, schema, what), (0,)))
    before = prefix + message_indexes((0,))

    def encode(text: bytes) -> bytes:
        value = _parsed(text)
        try:
            if not isinstance(value, dict):
                raise TypeError("it is not an object")
            data: bytes = ParseDict(value, message_class()).SerializeToString()
        except (ParseError, AttributeError, TypeError, ValueError) as error:
            raise BadValue(f"it is not a message {message_class.DESCRIPTOR.full_name}: {error}") from None
        return before + data

    return encode
