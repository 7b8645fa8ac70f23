"""The log start: what was deleted stays deleted on every leader, nobody is shown it, and nothing is deleted that nobody asked for."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    for partition, at_least, start, at_most, shown in history.starts_seen:
        where = f"{partition.topic}-{partition.index}"
        if not at_least <= start <= at_most:
            found.append(f"the log of {where} began at {start}: {at_least} was promised, {at_most} asked for")
        if 0 <= shown < at_least:
            found.append(f"a reader of {where} was shown offset {shown}, deleted up to {at_least}")
    for partition, (start, _) in history.final_bounds.items():
        if partition in history.retention.partitions:
            continue
        at_least, at_most = history.trims_promised.get(partition, 0), history.trims_asked.get(partition, 0)
        if not at_least <= start <= at_most:
            where = f"{partition.topic}-{partition.index}"
            found.append(
                f"in the end the log of {where} begins at {start}: {at_least} was promised, {at_most} asked for"
            )
    return found
