"""Compaction keeps the last committed value of each key, at its offset; no aborted record; a tombstone for delete.retention.ms."""

from __future__ import annotations

from tests.simulation.history import History
from tests.simulation.keyed_history import Found, KeyedHistory, Reading


def check(history: History) -> list[str]:
    known = history.keyed
    found: list[str] = []
    at: dict[int, Found] = {}
    for reading in known.readings:
        for each in reading.found:
            if at.setdefault(each.offset, each) != each:
                found.append(f"offset {each.offset} has {at[each.offset]}, and for {reading.who} {each}")
            entry = known.entries.get(each.number)
            if entry is None or (entry.key, entry.value) != (each.key, each.value):
                found.append(f"{reading.who} saw {each}, which nobody sent")
            elif not entry.is_committed:
                found.append(f"{reading.who} saw {each}, which was not committed")
        found += judge(known, reading)
    return found


def judge(known: KeyedHistory, reading: Reading) -> list[str]:
    """Return the keys whose last committed value this reading misses."""
    found = []
    last = {each.key: each.number for each in reading.found}
    for key, number in reading.required.items():
        entry, seen = known.entries[number], last.get(key)
        if seen is not None and seen >= number:
            continue
        if entry.offset >= reading.end:
            continue  # Its marker was not written yet.
        is_gone = any(
            each.key == key
            and each.number >= number
            and reading.ended_ms - each.sent_ms >= known.delete_retention_ms - known.skew_ms
            for each in known.last_tombstones()
        )
        if not is_gone or (seen is not None and not reading.is_of_late_replicas):
            what = "nothing" if seen is None else f"entry {seen}"
            found.append(f"{reading.who} has {what} of {key!r}, and {entry} was committed before")
    return found
