"""How far a replay is, and what the next run reads of it."""

import json
from dataclasses import replace

import pytest

from barnabas.retries.record import Record
from barnabas.retries.replayed import STATE_TOPIC, Progress, read_progress

BEGUN = Progress("copy", "orders", "id-1", "test", "id-2", "--from start", {0: (0, 4), 1: (2, 2)})


def test_what_was_noted_is_read_again() -> None:
    progress = replace(BEGUN)
    progress.take(Record("orders", 0, 0, 0, None, b""), is_written=True)
    progress.take(Record("orders", 0, 2, 0, None, b""), is_written=False)
    note = progress.note()
    assert (note.topic, note.partition, note.key) == (STATE_TOPIC, 0, b"copy")
    again = read_progress(Record(STATE_TOPIC, 0, 0, 0, note.key, note.value))
    assert again == progress
    assert (progress.partitions, progress.read, progress.written) == ({0: (3, 4), 1: (2, 2)}, 2, 1)
    assert not progress.is_finished
    progress.finish()
    assert progress.is_finished


def test_another_version() -> None:
    value = json.loads(BEGUN.note().value or b"") | {"version": 2}
    with pytest.raises(ValueError, match="replay copy was begun by another version of barnabas"):
        read_progress(Record(STATE_TOPIC, 0, 0, 0, b"copy", json.dumps(value).encode()))
    assert read_progress(Record(STATE_TOPIC, 0, 0, 0, b"copy", None)) is None
