"""The notes of a mirror as records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from barnabas.mirror.notes import Kept, Note, Origin, forgotten_note, origin_note, partition_note, read_notes
from barnabas.mirror.runs import Run
from barnabas.retries.record import Output, Record

NOTE = Note(10, 17, "one", "two", (Run(10, 0, 3), Run(15, 4, 2)))


def stored(*outputs: Output) -> list[Record]:
    return [Record(each.topic, 0, offset, 0, each.key, each.value) for offset, each in enumerate(outputs)]


def test_notes_come_back() -> None:
    first, second = NOTE, replace(NOTE, first=17, next=30, runs=())
    written = stored(
        origin_note("m", Origin("cluster", "--mask a.py:b")),
        origin_note("other", Origin("cluster 2", "")),
        partition_note("m", ("orders", 3), replace(first, next=13, runs=first.runs[:1])),
        partition_note("m", ("orders", 3), second),
        partition_note("m", ("orders", 3), first),
        partition_note("other", ("orders", 3), second),
    )
    assert read_notes(written, "m") == Kept(Origin("cluster", "--mask a.py:b"), {("orders", 3): [first, second]})
    assert read_notes(written, "unknown") == Kept()


def test_a_forgotten_note_is_gone() -> None:
    written = stored(partition_note("m", ("orders", 0), NOTE), forgotten_note("m", ("orders", 0), 10))
    assert read_notes(written, "m") == Kept()


def test_a_note_of_another_version() -> None:
    record = stored(partition_note("m", ("orders", 0), NOTE))[0]
    value = json.dumps({**json.loads(record.value or b""), "version": 2}).encode()
    with pytest.raises(ValueError, match="mirror m was begun by another version of barnabas"):
        read_notes([replace(record, value=value)], "m")
