"""A leader answers a time with the offset of the first record at or after it. It answers -1 only if it knew no such record before.

Nothing is said of records before the log start that somebody has asked for, nor of records whose timestamp nobody has seen.
"""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    for partition, timestamp, known_end, offset, said in history.lookups:
        stamps, start = history.stamps[partition], history.trims_asked.get(partition, 0)
        end = known_end if offset < 0 else offset
        missed = [at for at, stamp in stamps.items() if start <= at < end and stamp >= timestamp]
        where = f"{partition.topic}-{partition.index}"
        if missed:
            found.append(f"{where} at {timestamp}: offset {offset} was named, and {min(missed)} is the first")
        if offset >= 0 and (said < timestamp or stamps.get(offset, said) != said):
            found.append(f"{where} at {timestamp}: offset {offset} was named with the time {said}")
    return found
