"""Retention deletes what is old, or too much, and nothing else; and nothing comes back."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    known = history.retention
    found = [*known.started_back, *known.refused, *known.shown, *known.left_behind]
    for partition, node, before, start, youngest_ms, size in known.deletions:
        what = f"{node} has deleted the offsets from {before} to {start} of {partition.topic}-{partition.index}"
        if known.retention_ms >= 0 and youngest_ms is not None and youngest_ms <= known.retention_ms:
            found.append(f"{what}, and the youngest record was {youngest_ms} ms old, not {known.retention_ms}")
        if known.retention_bytes >= 0 and size is not None and size < known.retention_bytes:
            found.append(f"{what}, and {size} bytes are left, not {known.retention_bytes}")
    for batch in history.batches:
        if batch.acknowledged_at is None or not batch.survives or batch.partition not in known.partitions:
            continue
        seen = known.seen.get(batch.partition, {})
        for offset, value in enumerate(batch.values, batch.base_offset):
            if seen.get(offset, value) != value:
                found.append(f"acknowledged {value!r} is not what a reader saw at {offset}: {seen[offset]!r}")
    return found
