"""Which records `--filter` takes."""

import click
import pytest

from barnabas.cli.record_filter import RECORD_FILTERS, parse_filter
from barnabas.retries.record import Record

RECORD = Record("orders", 3, 0, 0, b"k", b"a value", (("h", b"1"), ("h", None)))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("key=k", True),
        ("key=kk", False),
        ("value=val", True),
        ("value=vals", False),
        ("header=h", True),
        ("header=h:1", True),
        ("header=h:2", False),
        ("header=g", False),
        ("partition=3", True),
        ("partition=0", False),
    ],
)
def test_one_filter(text: str, passes: bool) -> None:
    assert parse_filter((text,), RECORD_FILTERS)(RECORD) is passes


def test_all_filters_count() -> None:
    assert not parse_filter(("key=k", "partition=0"), RECORD_FILTERS)(RECORD)
    with pytest.raises(click.BadParameter, match="'kye' is not one of key, value, header, partition"):
        parse_filter(("kye=k",), RECORD_FILTERS)
