"""JSON by Spark's own functions; why a row is bad."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from barnabas.spark import decode
from barnabas.spark.decoding.json_decoder import json_type
from tests.spark.session import SPARK

KIND = StructType([StructField("a", IntegerType())])


def test_schemas_that_are_not_valid():
    assert json_type(KIND) is KIND
    assert json_type(json.dumps(KIND.jsonValue()).encode()) == KIND
    for wrong in (IntegerType(), 7):
        with pytest.raises(ValueError, match="the schema of format json is DDL such as"):
            json_type(wrong)
    with pytest.raises(ValueError, match="the schema is neither DDL nor the JSON of a StructType"):
        json_type("{")
    with pytest.raises(ValueError, match="leave _corrupt_record out of the schema"):
        json_type(StructType([StructField("_corrupt_record", IntegerType())]))


class TestWithSpark:
    pytestmark = SPARK

    def test_rows_and_their_errors(self, spark):
        not_json, empty, no_object = "the value is not JSON", "the value is empty", "the value is not a JSON object"
        expected: list[tuple[str | None, dict[str, Any] | None, str | None]] = [
            ('{"a": 1, "b b": "x"}', {"a": 1, "b b": "x"}, None),
            (' {"b b": null, "c": []} ', {"a": None, "b b": None}, None),
            ('{"b b": 1}', {"a": None, "b b": "1"}, None),
            (None, None, None),
            ("", None, empty),
            ("{bad", None, not_json),
            ("[1]", None, no_object),
            ("5", None, no_object),
            ("null", None, no_object),
            ('{"a": "q", "b b": "x"}', None, "the value does not fit the schema: a"),
            ('{"a": 99999999999}', None, "the value does not fit the schema: a"),
            ('{"a": 1.5}', None, "the value does not fit the schema: a"),
        ]
        texts = [None if text is None else text.encode() for text, _, _ in expected]
        rows = list(enumerate(texts))
        rows += [(100 + each, None if value is None else b"\0\0\0\0\x07" + value) for each, value in rows]
        rows += [(200, b"{}"), (201, b"\0\0\0\0")]
        df = spark.createDataFrame(rows, "number int, value binary")
        plain = decode(df.where("number < 100"), schema="a int, `b b` string")
        framed = decode(df.where("number >= 100"), schema="a int, `b b` string", framing="confluent")
        found = plain.unionAll(framed).orderBy("number").collect()
        shown = [(each.decoded and each.decoded.asDict(), each.error) for each in found]
        wanted = [(decoded, error) for _, decoded, error in expected]
        no_id = (None, "the value has no schema id in front")
        assert shown == [*wanted, *wanted, no_id, no_id]
        plan = plain._jdf.queryExecution().optimizedPlan().toString()
        assert plan.count("from_json") == 1, "each row is parsed once"
