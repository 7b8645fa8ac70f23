"""How a partition's copy begins, or goes on: what must be true at both clusters before its first record is copied.

- The topic has the id in the notes, at both: one that was deleted and created again is another topic.
- The source still has the position in the notes.
- The target has no record after the last copied one: only this mirror writes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Consumer

from barnabas.client.admin import EARLIEST, LATEST, Admin, TopicMetadata, TopicPartition, results
from barnabas.mirror.notes import Note, Where
from barnabas.mirror.progress import Progress
from barnabas.mirror.stopped import MirrorStopped
from barnabas.protocol.primitives import uuid_to_str
from barnabas.retries.committed_records import read_committed


def offsets_at(admin: Admin, partitions: Iterable[Where], timestamp: int) -> dict[Where, int]:
    """Return an offset of each partition, as `Admin.list_offsets`; -1 if no record is that late.

    Raises:
        KafkaError: a partition has no leader for the cluster's timeout.
    """
    wanted = {TopicPartition(*where): timestamp for where in partitions}
    found = admin.cluster.retry(lambda: results(admin.list_offsets(wanted)))
    return {(where.topic, where.partition): each.offset for where, each in found.items()}


def begin_offsets(source: Admin, partitions: Iterable[Where], since_ms: int | None) -> dict[Where, int]:
    """Return where partitions without notes begin: at their log's start, or at the first record of a time.

    Raises:
        KafkaError: as `offsets_at`.
    """
    partitions = list(partitions)
    starts = offsets_at(source, partitions, EARLIEST)
    if since_ms is None:
        return starts
    found = offsets_at(source, partitions, since_ms)
    late = offsets_at(source, [where for where, offset in found.items() if offset < 0], LATEST)
    return {**starts, **{where: offset for where, offset in found.items() if offset >= 0}, **late}


def check_ids(source: TopicMetadata, target: TopicMetadata, notes: Iterable[Note]) -> None:
    """Check that topics are those that the notes tell of.

    Raises:
        MirrorStopped: one was deleted and created again.
    """
    for note in notes:
        check_id(source, note.source_id, "source")
        check_id(target, note.target_id, "target")


def check_id(topic: TopicMetadata, wanted: str, side: str) -> None:
    """Check that a topic has an id.

    Raises:
        MirrorStopped: it was deleted and created again.
    """
    if uuid_to_str(topic.topic_id) != wanted:
        hint = f"delete it at the target, and begin another mirror with --name, or leave {topic.name} out with --topics"
        raise MirrorStopped(
            f"topic {topic.name} was deleted and created again at the {side} since the mirror began to copy it", hint
        )


def place_at_source(
    source: Admin, partitions: Mapping[Where, Progress], *, skip_deleted: bool, say: Callable[[str], None]
) -> list[Where]:
    """Check that the source has the positions; move those before its log's start if `skip_deleted`, and return which.

    Raises:
        MirrorStopped: records were deleted before they were copied, or the source has lost records.
    """
    starts, ends = (offsets_at(source, partitions, each) for each in (EARLIEST, LATEST))
    skipped = []
    for where, progress in partitions.items():
        name, position = TopicPartition(*where), progress.next
        if position > ends[where]:
            raise MirrorStopped(
                f"partition {name} of the source ends at offset {ends[where]}, and was copied up to {position}:"
                " the source has lost records",
                "begin another mirror into other topics, or leave the topic out with --topics",
            )
        deleted = starts[where] - position
        if deleted <= 0:
            continue
        words = f"{deleted} offset{'' if deleted == 1 else 's'} of partition {name} ({position} to {starts[where] - 1})"
        if not skip_deleted:
            raise MirrorStopped(
                f"{words} {'was' if deleted == 1 else 'were'} deleted at the source before being copied",
                "--skip-deleted goes on after them",
            )
        say(f"{words} {'is' if deleted == 1 else 'are'} skipped: deleted at the source before being copied")
        progress.pass_over(starts[where])
        skipped.append(where)
    return skipped


def check_target(target: Admin, consumer: Consumer, partitions: Mapping[Where, Progress]) -> dict[Where, int]:
    """Check that the target has no record but those of the mirror; return where its logs end.

    Raises:
        MirrorStopped: it has others, or has lost some.
        KafkaException: a partition cannot be read.
    """
    starts, ends = (offsets_at(target, partitions, each) for each in (EARLIEST, LATEST))
    for where, progress in partitions.items():
        if progress.runs.end > ends[where]:
            raise MirrorStopped(
                f"partition {TopicPartition(*where)} of the target ends at offset {ends[where]}, and was written up to"
                f" {progress.runs.end}: the target has lost records",
                "delete its topic at the target, and begin another mirror with --name",
            )
    begin = {where: max(progress.runs.end, starts[where]) for where, progress in partitions.items()}
    check_is_ours(consumer, {where: (offset, ends[where]) for where, offset in begin.items() if offset < ends[where]})
    return ends


def check_is_ours(consumer: Consumer, ranges: Mapping[Where, tuple[int, int]]) -> None:
    """Check that ranges of the target, between records of the mirror, have no committed record.

    Args:
        consumer: with `READER_SETTINGS`.

    Raises:
        MirrorStopped: one has.
        KafkaException: a partition cannot be read.
    """
    if not ranges:
        return
    begin = {where: offset for where, (offset, _) in ranges.items()}
    ends = {where: end for where, (_, end) in ranges.items()}
    for record in read_committed(consumer, begin, ends):
        raise MirrorStopped(
            f"partition {record.topic}-{record.partition} of the target has a record at offset {record.offset} that the"
            " mirror did not write",
            f"delete topic {record.topic} at the target if it is of no use, or leave it out with --topics",
        )
