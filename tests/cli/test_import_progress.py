from __future__ import annotations

import json

import pytest

from barnabas.cli.import_progress import STATE_TOPIC, ImportProgress, read_import_progress
from barnabas.retries.record import Record

PROGRESS = ImportProgress("name", "ab" * 32, "orders", "id", 7, 3)


def as_record(value: bytes | None) -> Record:
    return Record(STATE_TOPIC, 0, 0, 0, b"name", value)


def test_it_reads_what_it_writes() -> None:
    note = PROGRESS.note()
    assert (note.topic, note.key, note.partition) == (STATE_TOPIC, b"name", 0)
    assert read_import_progress(as_record(note.value)) == PROGRESS
    assert read_import_progress(as_record(None)) is None
    assert not PROGRESS.is_finished


def test_a_newer_one_is_an_error() -> None:
    value = json.dumps(json.loads(PROGRESS.note().value or b"") | {"version": 2}).encode()
    with pytest.raises(ValueError, match="import name was begun by another version of barnabas"):
        read_import_progress(as_record(value))
