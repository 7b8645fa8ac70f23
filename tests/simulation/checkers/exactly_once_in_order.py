"""An idempotent producer's records are in the log at most once, in the order it sent them, whatever was retried."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    order: dict[bytes, int] = {}
    producer_of: dict[bytes, str] = {}
    for batch in history.batches:
        for value in batch.values:
            order[value] = len(order)
            producer_of[value] = batch.producer
    for partition, records in history.final_logs.items():
        seen: set[bytes] = set()
        latest: dict[str, int] = {}
        where = f"{partition.topic}-{partition.index}"
        for offset, value in records:
            if value not in order:
                found.append(f"{where} offset {offset} holds {value!r}, which nobody sent")
                continue
            if value in seen:
                found.append(f"{where} offset {offset} holds {value!r} again")
            seen.add(value)
            producer = producer_of[value]
            if order[value] < latest.get(producer, -1):
                found.append(f"{where} offset {offset}: {value!r} of {producer} stands after a later one")
            latest[producer] = max(order[value], latest.get(producer, -1))
    return found
