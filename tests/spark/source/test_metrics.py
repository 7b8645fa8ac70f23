"""The numbers of Spark's own source, from the offsets of a progress report."""

from __future__ import annotations

import pytest

from barnabas.spark.source.metrics import OffsetsBehindLatest, offsets_behind_latest


def test_least_most_and_average():
    read = '{"a": {"0": 10, "1": 4}, "b": {"0": 0}, "~ids": {"a": "pS1Cfv5xTVu5e9IDLZ0JZg"}}'
    assert offsets_behind_latest(read, '{"a": {"0": 10, "1": 14}, "b": {"0": 2}}') == OffsetsBehindLatest(0, 10, 4.0)


def test_partitions_that_the_query_does_not_read_yet_do_not_count():
    assert offsets_behind_latest('{"a": {"0": 1}}', '{"a": {"0": 3, "1": 100}}') == OffsetsBehindLatest(2, 2, 2.0)


def test_a_log_that_was_cut_is_not_ahead():
    assert offsets_behind_latest('{"a": {"0": 9}}', '{"a": {"0": 3}}') == OffsetsBehindLatest(0, 0, 0.0)


@pytest.mark.parametrize(("read", "latest"), [(None, "{}"), ("{}", None), ("{}", "{}"), ('{"a": {"0": 1}}', "{}")])
def test_without_offsets_there_is_nothing_to_say(read, latest):
    assert offsets_behind_latest(read, latest) is None


def test_offsets_of_another_source():
    with pytest.raises(ValueError, match="Expected"):
        offsets_behind_latest('{"logOffset": 3}', '{"logOffset": 4}')
