"""The arguments of `decode` and `encode`: rows that each of them takes, beside those that both reject by way of this."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.spark.decoding.given_columns import check_columns, check_words

DF: Any = SimpleNamespace(columns=["key", "value"])


def test_words_that_go_together():
    check_words("json", ("json",), "plain", None, None)
    check_words("protobuf", ("avro", "protobuf"), "confluent", "M", "folder")
    with pytest.raises(ValueError, match="schemas= is for framing confluent"):
        check_words("avro", ("avro",), "plain", None, "folder")


def test_columns_that_are_there_and_two_that_are_not():
    check_columns(DF, ["key", "value"], "into", "error")
    with pytest.raises(ValueError, match=r"there is no column 'keys'; did you mean key\?"):
        check_columns(DF, ["value", "keys"], "into", "error")
    with pytest.raises(ValueError, match="there is already a column 'value'"):
        check_columns(DF, ["key"], "into", "value")
