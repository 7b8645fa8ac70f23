"""Sends the records of a topic to another one, each of them once.

A batch of records and the note how far the replay is (`replayed`) are one transaction. The transactional id is made of the replay's name,
so a second run of the name fences the first, and reads its notes; the next run continues a killed one, to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.retries.committed_records import Where, last_of_key, read_committed
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.pace import Pace
from barnabas.retries.record import Output, Record
from barnabas.retries.replayed import STATE_TOPIC, Progress, read_progress

REPLAYED_FROM = "__replay.from"
"""On a replayed record: its topic, partition and offset, `orders-0@17`."""

Change = Callable[[Record], "Record | None"]
"""Returns the record to send, which may be another one, or None to leave it out."""


def transactional_id(name: str) -> str:
    """Return the transactional id of a replay."""
    return f"barnabas-replay-{name}"


def place_of(record: Record) -> str:
    """Return a record's topic, partition and offset, as `orders-0@17`."""
    return f"{record.topic}-{record.partition}@{record.offset}"


def stored_progress(consumer: Consumer, admin: AdminClient, name: str) -> Progress | None:
    """Return how far a replay is; None if it has not begun.

    Args:
        consumer: with `READER_SETTINGS`; the state topic exists.

    Raises:
        ValueError: another version of barnabas began it.
        KafkaException: the state topic cannot be read.
    """
    found = last_of_key(consumer, admin, STATE_TOPIC, name.encode())
    return None if found is None else read_progress(found)


def records_left(
    consumer: Consumer, progress: Progress, until: Mapping[int, int] | None = None
) -> Generator[Record, None, None]:
    """Yield the committed records of the source that were not taken yet.

    Args:
        until: by partition, an offset at which to stop before the end of the replay.

    Raises:
        KafkaException: a partition cannot be read, or a transaction stays open.
    """
    left = {(progress.source, each): places for each, places in progress.partitions.items()}
    begin: dict[Where, int] = {where: position for where, (position, _) in left.items()}
    stop = {} if until is None else until
    ends = {where: min(end, stop.get(where[1], end)) for where, (_, end) in left.items()}
    yield from read_committed(consumer, begin, ends)


def replay(
    consumer: Consumer,
    forwarder: Forwarder,
    progress: Progress,
    change: Change,
    pace: Pace | None = None,
    group: Any = None,
    until: Mapping[int, int] | None = None,
) -> None:
    """Send what is left of a replay.

    Args:
        consumer: with `READER_SETTINGS`.
        forwarder: of a producer with `transactional_id`; it was made before `progress` was read, so that this is final.
        group: the metadata of a group that commits the positions in the source, too; None for none.
        until: by partition, an offset at which to stop before the end; another run goes on there.

    Raises:
        GroupWentOn: the group has members.
        KafkaException: the batch that was being sent is not; the batches before it are.
        Exception: `change` raised it; likewise.
    """

    def positions() -> list[TopicPartition]:
        places = progress.partitions.items() if group is not None else ()
        return [TopicPartition(progress.source, partition, offset) for partition, (offset, _) in places]

    # The end is noted before the first record: a run that continues this one stops there too.
    forwarder.send([progress.note()], positions(), group)
    outputs = _outputs(progress, records_left(consumer, progress, until), change, pace)
    forwarder.send_noted(outputs, lambda: [progress.note()], positions, group)
    progress.finish(until)
    forwarder.send([progress.note()], positions(), group)


def _outputs(
    progress: Progress, records: Iterable[Record], change: Change, pace: Pace | None
) -> Iterator[Output | None]:
    for record in records:
        changed = change(record)
        if changed is not None and pace is not None and (wait_s := pace.wait_s(record.timestamp_ms)):
            yield None
            pace.sleep(wait_s)
        progress.take(record, is_written=changed is not None)
        if changed is not None:
            yield output_of(record, changed, progress.target)


def output_of(record: Record, changed: Record, target: str) -> Output:
    """Return a record as it is replayed: in its partition, unless its key was changed, with its time and a header of its origin."""
    headers = tuple(each for each in changed.headers if each[0] != REPLAYED_FROM)
    return Output(
        target,
        changed.value,
        changed.key,
        (*headers, (REPLAYED_FROM, place_of(record).encode())),
        record.partition if changed.key == record.key else None,
        max(changed.timestamp_ms, 0),
    )
