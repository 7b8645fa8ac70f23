"""The notes of a mirror: records of the compacted topic `__barnabas_mirrors` at the target.

    key    ["NAME"]
    value  {"version": 1, "source": CLUSTER-ID, "choice": "--mask mask.py:mask"}

    key    ["NAME", "orders", 3, 1200]                                  topic, partition, the first source offset of this note
    value  {"version": 1, "source_id": …, "target_id": …, "next": 1417, "runs": [[1200, 871, 200], …]}

A partition has a row of notes. The last one is written again with each transaction that has records of the partition, until it has
`RUNS_PER_NOTE` runs; then the next one begins. So a trickle of records does not leave a note for each, and a note stays small. The
position is the greatest `next`. Topic ids are kept, because a topic that is deleted and created again begins at offset 0.

Crash argument: a note is in the transaction of the records that it tells of. Compaction may drop older versions of a note only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.mirror.runs import Run
from barnabas.retries.record import Output, Record
from barnabas.retries.versioned_notes import read, written

STATE_TOPIC = "__barnabas_mirrors"
RUNS_PER_NOTE = 64

Where = tuple[str, int]


@dataclass(frozen=True)
class Origin:
    """The note of a whole mirror: the cluster it copies, and the options that change records."""

    source: str
    choice: str


@dataclass(frozen=True)
class Note:
    """A note of a partition.

    Attributes:
        first: the source offset that the note begins with.
        next: the source's next offset.
    """

    first: int
    next: int
    source_id: str
    target_id: str
    runs: tuple[Run, ...] = ()


@dataclass
class Kept:
    """The notes of one mirror; those of a partition by their first offset."""

    origin: Origin | None = None
    partitions: dict[Where, list[Note]] = field(default_factory=dict)


def origin_note(name: str, origin: Origin) -> Output:
    """Return the record of a mirror's note."""
    value = {"source": origin.source, "choice": origin.choice}
    return Output(STATE_TOPIC, written(value), _key(name), (), 0)


def partition_note(name: str, where: Where, note: Note) -> Output:
    """Return the record of a partition's note."""
    value = {
        "source_id": note.source_id,
        "target_id": note.target_id,
        "next": note.next,
        "runs": note.runs,
    }
    return Output(STATE_TOPIC, written(value), _key(name, *where, note.first), (), 0)


def forgotten_note(name: str, where: Where, first: int) -> Output:
    """Return the record that deletes a partition's note."""
    return Output(STATE_TOPIC, None, _key(name, *where, first), (), 0)


def read_notes(records: Iterable[Record], name: str) -> Kept:
    """Return the notes of a mirror.

    Args:
        records: of the whole state topic, in their order.

    Raises:
        ValueError: another version of barnabas wrote one.
    """
    kept = Kept()
    found: dict[Where, dict[int, Note]] = {}
    for record in records:
        whose, *place = json.loads(record.key or b"[null]")
        if whose != name:
            continue
        value = None if record.value is None else read(record.value, f"mirror {name}")
        if not place:
            kept.origin = None if value is None else Origin(value["source"], value["choice"])
            continue
        topic, partition, first = place
        notes = found.setdefault((topic, partition), {})
        if value is None:
            notes.pop(first, None)
        else:
            runs = tuple(Run(*each) for each in value["runs"])
            notes[first] = Note(first, value["next"], value["source_id"], value["target_id"], runs)
    kept.partitions = {where: [notes[first] for first in sorted(notes)] for where, notes in found.items() if notes}
    return kept


def _key(*parts: str | int) -> bytes:
    return json.dumps(parts).encode()
