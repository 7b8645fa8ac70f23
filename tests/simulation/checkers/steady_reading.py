"""What a reader saw at any time is in the log at the end, at the same offset: it was committed, or it should not have been shown."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = list(history.shown_early)
    for partition, seen in history.seen.items():
        if partition not in history.final_logs:
            continue  # the run broke off before
        start, log = history.final_bounds[partition][0], dict(history.final_logs[partition])
        found += [
            f"a reader saw {value!r} at {partition.topic}-{partition.index} offset {offset}: {log.get(offset)!r} is there"
            for offset, value in sorted(seen.items())
            if offset >= start and log.get(offset) != value
        ]
    return found
