"""Schemas that are JSON: their text reaches the registry as the caller wrote it, after the rows were checked."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from pyspark.sql.types import StructType

from barnabas.schemas.schema import AVRO, RegisteredSchema, Schema
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.encoding.schema_ids import SubjectNaming
from barnabas.spark.encoding.text_schema import TextSchema

ROWS = StructType([])


class Registry:
    """Registers whatever it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []

    def register(self, subject: str, schema: Schema) -> int:
        self.got.append((subject, schema.text))
        return 7

    def version(self, subject: str, version: int | str) -> RegisteredSchema:
        return RegisteredSchema(subject, 1, 9, Schema('{"a": 2}', AVRO))


def text_schema(rows_fit: bool = True) -> TextSchema[str]:
    def check(rows: Any, schema: str) -> None:
        if not rows_fit:
            raise ValueError("the rows do not fit")

    return TextSchema(
        AVRO,
        lambda source, schema: schema.text,
        check,
        lambda schema: "Name",
        lambda schema: partial(str.encode, schema),
    )


@pytest.mark.parametrize(
    ("given", "text"), [('{"a":  1}', '{"a":  1}'), (b'{"a":1}', '{"a":1}'), ({"a": 1}, '{"a": 1}')]
)
def test_the_text_is_registered_under_its_name(given: Any, text: str):
    registry: Any = Registry()
    naming = SubjectNaming(strategy="RecordName")
    found = text_schema().row_format(ROWS, GivenSchema(given, True, source=registry), naming, (), register=True)
    assert registry.got == [("Name", text)]
    assert (found.prefix, found.make()()) == (b"\0\0\0\0\x07", text.encode())


def test_a_subjects_schema_has_its_id_and_one_without_a_frame_has_none():
    registry: Any = Registry()
    of_subject = text_schema().row_format(
        ROWS, GivenSchema(None, True, source=registry, subject="s"), SubjectNaming(), (), register=False
    )
    assert (of_subject.prefix, of_subject.make()()) == (b"\0\0\0\0\x09", b'{"a": 2}')
    plain = text_schema().row_format(ROWS, GivenSchema("{}"), SubjectNaming(), (), register=False)
    assert plain.prefix == b""


def test_rows_that_do_not_fit_are_an_error_before_anything_is_registered():
    registry: Any = Registry()
    with pytest.raises(ValueError, match="the rows do not fit"):
        text_schema(False).row_format(
            ROWS, GivenSchema("{}", True, source=registry), SubjectNaming("s"), (), register=True
        )
    assert registry.got == []
    with pytest.raises(ValueError, match="the schema is neither JSON nor the path of a file"):
        text_schema().row_format(ROWS, GivenSchema(b"\xff{"), SubjectNaming(), (), register=False)
