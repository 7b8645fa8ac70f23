"""Changes of any size: batches of records, one appended in a turn of the loop.

An event of a broker changes as many partitions as the broker has. Such a change is not atomic. Its manager returns a generator instead of
records; each list of records that it yields becomes a batch, and the list that it returns is the last batch.

- Each list is computed when it is asked for, from the view at the beginning, and is little enough work for one turn.
- Nothing else is appended in between, so this view stays true.
- If the controller fails half-way, the change is half done. The record that fences or registers the broker comes last, so the next
  controller finishes the change.

Source: Kafka's `ControllerResult.of`, and the `maxRecordsPerBatch` of its `QuorumController`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable

from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.turns import TURN, next_turn

CHANGE = 16
"""The cost to compute, replay and encode the change of a partition. 8 MB leave each of a batch's records 32 KB."""

Batches = Generator[list[MetadataRecord], None, list[MetadataRecord]]


def in_batches(changes: Iterable[MetadataRecord | None], *first: MetadataRecord) -> Batches:
    """Split the changes of partitions into batches; a change is None if its partition stays as it is.

    Args:
        first: begin the first batch.
    """
    batch, looked_at = [*first], 0
    for change in changes:
        if looked_at == TURN // CHANGE:
            yield batch
            batch, looked_at = [], 0
        looked_at += 1
        if change is not None:
            batch.append(change)
    return batch


async def append_batches(
    batches: Batches,
    append: Callable[[list[MetadataRecord]], None],
    may_go_on: Callable[[], bool],
    loop: asyncio.AbstractEventLoop | None,
) -> list[MetadataRecord]:
    """Append all batches but the last, one in a turn of the loop, and return the records of the last.

    Args:
        append: appends one batch.
        may_go_on: returns whether the controller still leads the epoch in which it began; called after each turn.
        loop: None for a controller without one, which appends everything on the spot.

    Raises:
        KafkaError: NOT_CONTROLLER; else what `append` raises. The batches before were appended.
    """
    while True:
        try:
            records = next(batches)
        except StopIteration as last:
            remaining: list[MetadataRecord] = last.value
            return remaining
        if records:
            append(records)
        if loop is not None:
            await next_turn()
        if not may_go_on():
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller any more.")
