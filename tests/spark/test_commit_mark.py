"""What a query writes beside its committed offsets, and who reads it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from barnabas.spark import stream
from barnabas.spark.commit_mark import CommitMark, parse_mark
from barnabas.spark.options import parse_stream_options


def test_there_and_back():
    mark = CommitMark(1_795_000_000_063)
    assert str(mark) == "spark at=2026-11-18T11:06:40.063Z"
    assert parse_mark(str(mark)) == mark


def test_words_of_a_newer_version_are_ignored():
    assert parse_mark("spark by=a1 at=2026-11-18T11:06:40.063Z reader=7") == CommitMark(1_795_000_000_063)


@pytest.mark.parametrize("metadata", ["spark", "spark by=7", "spark at=soon", "spark at=2026-11-18T11:06:40"])
def test_a_mark_without_a_time(metadata):
    assert parse_mark(metadata) == CommitMark(None)
    assert str(CommitMark(None)) == "spark"


@pytest.mark.parametrize(
    "metadata", [None, "", "at=2026-11-18T11:06:40Z", "sparkle at=2026-11-18T11:06:40Z", "spark  "]
)
def test_other_metadata(metadata):
    assert parse_mark(metadata) is None


def test_a_query_marks_what_it_commits(monkeypatch):
    monkeypatch.setattr(stream.time, "time_ns", lambda: 1_795_000_000_063_000_000)
    options = {"kafka.bootstrap.servers": "h:9092", "subscribe": "a", "kafka.group.id": "g"}
    reader = stream.StreamReader(parse_stream_options(options, 0))
    committed: list[tuple[object, ...]] = []
    reader._offset_reader = SimpleNamespace(commit=lambda *given: committed.append(given))  # type: ignore[assignment]
    reader.commit({"a": {"0": 3}})
    assert committed == [("g", {("a", 0): 3}, "spark at=2026-11-18T11:06:40.063Z")]
