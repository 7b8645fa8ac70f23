"""What is compared before a batch is skipped."""

from __future__ import annotations

import logging

import pytest

from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decisions import Decision
from barnabas.spark.sink.repeated_batch import check_order, check_rows, check_topic
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch

LAST = Decision("q", 4, "run", 8, (), 0xABC, "orders")
OLDER_RELEASE = Decision("q", 4, "run", 8, ())


def test_the_same_batch(caplog):
    check_order(LAST, SinkBatch("p/q", "q", "r", 4))
    check_topic(LAST, "orders")
    check_rows(LAST, [Prepared(None, 5, digest=0xAB0), Prepared(None, 3, digest=0xC)], fail=True)
    assert not caplog.text


def test_an_older_batch():
    with pytest.raises(QueryError, match="batch 3 of query q is older than batch 4"):
        check_order(LAST, SinkBatch("p/q", "q", "r", 3))


@pytest.mark.parametrize(("rows", "digest"), [(9, 0xABC), (8, 0xABD)])
def test_other_rows(caplog, rows, digest):
    difference = rf"with 8 rows \(digest 0{{13}}abc\), and now it has {rows} rows \(digest 0{{13}}{digest:x}\)"
    with pytest.raises(QueryError, match=difference):
        check_rows(LAST, [Prepared(None, rows, digest=digest)], fail=True)
    with caplog.at_level(logging.WARNING):
        check_rows(LAST, [Prepared(None, rows, digest=digest)], fail=False)
    assert "these are dropped" in caplog.text


def test_another_topic():
    with pytest.raises(QueryError, match="into topic orders, and now it is to go into topic refunds"):
        check_topic(LAST, "refunds")
    with pytest.raises(QueryError, match="now it is to go into topics that the column topic named"):
        check_topic(LAST, None)


def test_an_older_release_compared_nothing():
    check_topic(OLDER_RELEASE, "refunds")
    check_rows(OLDER_RELEASE, [Prepared(None, 1, digest=1)], fail=True)
