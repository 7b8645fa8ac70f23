"""Offsets are dense: from the log start to the log end each one is a record, as nothing here is compacted or transactional."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    for partition, records in history.final_logs.items():
        start, end = history.final_bounds[partition]
        offsets = [offset for offset, _ in records]
        if offsets != list(range(start, end)):
            where = f"{partition.topic}-{partition.index}"
            found.append(
                f"{where} has offsets {offsets[:5]}…{offsets[-5:]} between log start {start} and log end {end}"
            )
    return found
