"""Values encoded by the latest schema of a subject, and decoded again."""

from __future__ import annotations

import base64
import json

import pytest

from barnabas.decoding.framed_values import FramedValues
from barnabas.decoding.value_encoders import framed_encoder
from barnabas.schemas.errors import SchemaError
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import Reference, Schema
from barnabas.spark.decoding.bad_value import BadValue
from tests.decoding.test_framed_values import file_of

QTY = {"type": "object", "properties": {"qty": {"$ref": "qty.json"}}}
KNOWN = KnownSchemas(
    "schemas",
    {
        1: Schema('{"type": "record", "name": "R", "fields": [{"name": "f", "type": "long"}]}'),
        2: Schema(base64.b64encode(file_of().SerializeToString()).decode(), "PROTOBUF"),
        3: Schema(json.dumps(QTY), "JSON", (Reference("qty.json", "qty", 1),)),
        4: Schema('{"type": "integer"}', "JSON"),
        5: Schema('{"type": "teapot"}', "JSON"),
        6: Schema(json.dumps(QTY), "JSON"),
        7: Schema('"string"'),
        8: Schema('["null", "string"]'),
        9: Schema('{"type": "string", "maxLength": 4}', "JSON"),
    },
    {
        "a": {1: 1},
        "p": {1: 2},
        "j": {1: 3},
        "qty": {1: 4},
        "wrong": {1: 5},
        "alone": {1: 6},
        "s": {1: 7},
        "n": {1: 8},
        "js": {1: 9},
    },
)


@pytest.mark.parametrize(
    ("kind", "subject", "text", "begins"),
    [
        ("AVRO", "a", '{"f": 7}', b"\0\0\0\0\x01"),
        ("PROTOBUF", "p", '{"id": "7"}', b"\0\0\0\0\x02\0"),
        ("JSON", "j", '{"qty": 7}', b"\0\0\0\0\x03{"),
    ],
)
def test_there_and_back(kind: str, subject: str, text: str, begins: bytes) -> None:
    made = framed_encoder(KNOWN, kind, subject)(text.encode())
    assert made.startswith(begins)
    assert FramedValues(KNOWN).decode(made) == (kind.lower(), json.loads(text))


@pytest.mark.parametrize(
    ("kind", "subject", "text", "why"),
    [
        ("AVRO", "a", "{", "it is not JSON"),
        ("AVRO", "a", '{"f": "x"}', "f: 'x' is not a value of long"),
        ("PROTOBUF", "p", '{"no": 1}', "it is not a message shop.Order"),
        ("PROTOBUF", "p", "[]", "it is not a message shop.Order"),
        ("JSON", "j", '{"qty": "x"}', "qty: 'x' is not of type 'integer'"),
        ("JSON", "j", "1", "it: 1 is not of type 'object'"),
        ("JSON", "alone", '{"qty": "x"}', "the schema refers to qty.json, which is not among its references"),
    ],
)
def test_why_not(kind: str, subject: str, text: str, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        framed_encoder(KNOWN, kind, subject)(text.encode())


@pytest.mark.parametrize(("kind", "subject"), [("AVRO", "s"), ("AVRO", "n"), ("JSON", "js")])
def test_text_without_quotes(kind: str, subject: str) -> None:
    encode, framed = framed_encoder(KNOWN, kind, subject), FramedValues(KNOWN)
    found = [framed.decode(encode(text))[1] for text in (b"k1", b'"k2"', b"12", "\u00e9".encode())]
    assert found == ["k1", "k2", "12", "\u00e9"]
    with pytest.raises(BadValue, match="it is not text in UTF-8"):
        encode(b"\xff")


def test_subjects_that_cannot_be_used() -> None:
    with pytest.raises(SchemaError, match="the schema of subject a is AVRO, and not JSON"):
        framed_encoder(KNOWN, "JSON", "a")
    with pytest.raises(SchemaError, match="schema 5 is not a valid JSON Schema"):
        framed_encoder(KNOWN, "JSON", "wrong")
    with pytest.raises(SchemaError, match="no subject absent"):
        framed_encoder(KNOWN, "AVRO", "absent")
