"""Which columns a query reads."""

from __future__ import annotations

import pytest

from barnabas.spark.given_options import GivenOptions
from barnabas.spark.source.columns import DEFAULT, TYPES, chosen_columns, schema


def chosen(**options: str) -> tuple[str, ...]:
    return chosen_columns(GivenOptions(options))


def test_all_but_headers_without_an_option():
    assert chosen() == DEFAULT == tuple(TYPES)[:-1]
    assert chosen(INCLUDEHEADERS="true") == tuple(TYPES)


def test_columns_come_in_the_order_of_the_option():
    assert chosen(columns="value , OFFSET,timestamptype") == ("value", "offset", "timestampType")
    assert chosen(columns="headers,key", includeHeaders="true") == ("headers", "key")
    assert schema(("offset", "value")) == "offset bigint, value binary"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "key,valeu"}, "columns has 'valeu', and the source has key, .*, headers; did you mean value"),
        ({"columns": "key,"}, "columns has '', and the source has key"),
        ({"columns": "key,value,KEY"}, "columns has key twice"),
        ({"columns": "key", "includeHeaders": "true"}, "add headers to columns"),
    ],
)
def test_a_mistake_is_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        chosen(**options)
