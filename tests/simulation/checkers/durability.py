"""Nothing that was acknowledged, and flushed where the power failed, is lost; and it stands at the offset the producer was told."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    logs = {partition: dict(records) for partition, records in history.final_logs.items()}
    for batch in history.batches:
        if batch.acknowledged_at is None or not batch.survives:
            continue
        log = logs.get(batch.partition, {})
        start = history.final_bounds.get(batch.partition, (0, 0))[0]
        for place, value in enumerate(batch.values):
            offset = batch.base_offset + place
            if offset >= start and log.get(offset) != value:
                where = f"{batch.partition.topic}-{batch.partition.index} offset {offset}"
                found.append(f"acknowledged {value!r} of {batch.producer} is not at {where}: {log.get(offset)!r} is")
    return found
