"""`consume --filter`: which records pass, and what of those that cannot be judged."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.consumed_filter import ConsumedFilter
from barnabas.cli.failure import Failure
from tests.cli.test_record_format import RECORD
from tests.cli.test_record_printer import message

pytest.importorskip("cel")

MESSAGES = [
    message(RECORD._replace(offset=1, key=b"a", value=b'{"qty": 2, "country": "DE"}', headers=[("source", b"shop")])),
    message(RECORD._replace(offset=2, key=b"a", value=b'{"qty": 1}', headers=[])),
    message(RECORD._replace(offset=3, key=b"b", value=b"no JSON", headers=[])),
    message(RECORD._replace(offset=4, key=None, value=None, headers=[])),
]


@pytest.mark.parametrize(
    ("texts", "offsets"),
    [
        (["key=a"], [1, 2]),
        (["header=source"], [1]),
        (["header=source:shop", "key=b"], []),
        (["value=JSON"], [3]),
        (["partition=3"], [1, 2, 3, 4]),
        (["value.qty > 0"], [1, 2]),
        (["key=a", "value.qty > 1"], [1]),
        (['key == "a" && has(value.country)'], [1]),
        (["value == null"], [4]),
        (["offset >= 3", "partition == 3"], [3, 4]),
        (['headers["source"] == "shop"'], [1]),
    ],
)
def test_which_pass(texts: list[str], offsets: list[int]) -> None:
    assert [each.offset() for each in ConsumedFilter(texts).passing(MESSAGES)] == offsets


def test_what_cannot_be_judged_is_counted() -> None:
    kept = ConsumedFilter(["value.schema == 1"])
    framed = message(RECORD._replace(value=b"\0\0\0\0\x07\x02a"))
    assert kept.passing([framed, *MESSAGES]) == []
    assert (kept.unjudged, "registry" in kept.why) == (1, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("value.qty >", "the filter cannot be read at"),
        ("vale == 1", "did you mean value"),
        ("offset + 1", "true or false"),
    ],
)
def test_an_expression_that_cannot_be_used_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(Failure, match=words):
        ConsumedFilter([text]).passing(MESSAGES)


def test_a_filter_with_an_unknown_name_is_an_expression() -> None:
    with pytest.raises((Failure, click.BadParameter)):
        ConsumedFilter(["keys=a"])
