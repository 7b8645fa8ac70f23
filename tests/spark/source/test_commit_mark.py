"""What a query writes beside its committed offsets, and who reads it."""

from __future__ import annotations

import pytest

from barnabas.spark.source.commit_mark import CommitMark, parse_mark


def test_there_and_back():
    mark = CommitMark(1_795_000_000_063)
    assert str(mark) == "spark at=2026-11-18T11:06:40.063Z"
    assert parse_mark(str(mark)) == mark


def test_the_run_is_there_and_back():
    mark = CommitMark(1_795_000_000_063, "5f2c01ab9d3e")
    assert str(mark) == "spark by=5f2c01ab9d3e at=2026-11-18T11:06:40.063Z"
    assert parse_mark(str(mark)) == mark


def test_words_of_a_newer_version_are_ignored():
    assert parse_mark("spark as=a1 at=2026-11-18T11:06:40.063Z reader=7") == CommitMark(1_795_000_000_063)


@pytest.mark.parametrize("metadata", ["spark", "spark as=7", "spark at=soon", "spark at=2026-11-18T11:06:40"])
def test_a_mark_without_a_time(metadata):
    assert parse_mark(metadata) == CommitMark(None)
    assert str(CommitMark(None)) == "spark"


@pytest.mark.parametrize(
    "metadata", [None, "", "at=2026-11-18T11:06:40Z", "sparkle at=2026-11-18T11:06:40Z", "spark  "]
)
def test_other_metadata(metadata):
    assert parse_mark(metadata) is None
