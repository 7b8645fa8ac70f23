"""Which offsets of which partitions a search wants, fixed when it begins; and how far each was read.

The end is the last stable offset with read_committed, and the high watermark with read_uncommitted, both as they are at the start: a
search does not follow a log that grows. `barnabas.cli.log_bounds` asks for them, as for `barnabas consume`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.cli.log_bounds import Bounds, log_bounds, offsets_of
from barnabas.client.admin import Admin, TopicMetadata, TopicPartition, result
from barnabas.client.log_points import Anchor, Point
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.client.partitioner import partition_for
from barnabas.console.search.query import BadQuery, Query

PARTITIONS_MAX = 256
"""A search holds a batch of each partition in memory, and its cursor names each."""
UNKNOWN = -1


@dataclass(slots=True)
class PartitionSpan:
    """The wanted offsets of a partition, and how they were accounted for.

    Attributes:
        begin, end: the wanted offsets, the end exclusive; both are `UNKNOWN` if the partition had no leader at the start.
        stable_end: the records below are decided: committed or aborted.
        held_back: offsets of the range above the last stable offset, which read_committed does not read.
        position: the next offset forwards, the offset above the next one backwards.
        edge_ms: the time that the last record counted as; None before the first.
        records, control: records below or above the position, and those of control batches.
        removed: offsets that were gone before they were read.
        damaged: offsets in batches that cannot be read.
    """

    partition: int
    begin: int
    end: int
    stable_end: int
    held_back: int
    position: int
    edge_ms: int | None = None
    records: int = 0
    control: int = 0
    removed: int = 0
    damaged: int = 0

    def passed(self, *, newest_first: bool) -> int:
        """Return how many offsets are accounted for."""
        return self.end - self.position if newest_first else self.position - self.begin

    @property
    def wanted(self) -> int:
        """How many offsets the span has."""
        return self.end - self.begin

    @property
    def is_known(self) -> bool:
        """Whether its bounds are known."""
        return self.begin != UNKNOWN


def chosen_partitions(query: Query, topic: TopicMetadata) -> list[int]:
    """Return the partitions that a search reads.

    Raises:
        BadQuery: the topic has no such partition, or too many.
    """
    count = len(topic.partitions)
    for each in query.partitions:
        if each >= count:
            raise BadQuery(f"Topic {query.topic} has no partition {each}: it has {count}, from 0 on.")
    chosen = list(query.partitions or range(count))
    key = query.key_bytes()
    if query.partitioner and key is not None:
        only = partition_for(key, count, query.partitioner)
        if only is not None and only not in chosen:
            raise BadQuery(
                f"{query.partitioner} puts this key in partition {only}, which is not among the chosen ones."
            )
        chosen = chosen if only is None else [only]
    if len(chosen) > PARTITIONS_MAX:
        raise BadQuery(
            f"Topic {query.topic} has {count} partitions, and a search reads {PARTITIONS_MAX} side by side: choose some."
        )
    return chosen


def spans_of_query(
    admin: Admin, query: Query, now_ms: int, partitions: Sequence[int], begins: Mapping[int, int] | None = None
) -> list[PartitionSpan]:
    """Return where a search begins and ends in each partition.

    Args:
        begins: the first offsets, in place of the query's; a new partition begins at 0.

    Raises:
        BadQuery: the part of the log is not of the grammar.
        KafkaError: no broker answers.
    """
    wanted = query.range(now_ms)
    where = [TopicPartition(query.topic, each) for each in partitions]
    stable = log_bounds(admin, where, READ_COMMITTED)
    marks = log_bounds(admin, where, READ_UNCOMMITTED)
    known: dict[TopicPartition, Bounds] = {
        each: (stable[each][0], marks[each][1]) for each in where if None not in (*stable[each], *marks[each])
    }
    # A distance from the end counts from the end that the search has, as in `consume`.
    ends = stable if query.isolation == READ_COMMITTED else marks
    begin_at = offsets_of(admin, wanted.begin, _bounds(known, ends))
    end_at = offsets_of(admin, wanted.end, _bounds(known, ends)) if wanted.end is not None else {}
    since, _ = query.times(now_ms)
    if since is not None:
        # All records before the first one that is late enough are too early.
        late = offsets_of(admin, Point(Anchor.TIME, since), _bounds(known, ends))
        begin_at = {each: max(begin_at[each], late[each]) for each in begin_at}
    return [_span(query, each, stable[each], marks[each], begin_at, end_at, begins) for each in where]


def _span(
    query: Query,
    where: TopicPartition,
    stable: Bounds,
    marks: Bounds,
    begin_at: Mapping[TopicPartition, int],
    end_at: Mapping[TopicPartition, int],
    begins: Mapping[int, int] | None,
) -> PartitionSpan:
    last_stable, mark = stable[1], marks[1]
    if where not in begin_at or last_stable is None or mark is None:
        return PartitionSpan(where.partition, UNKNOWN, UNKNOWN, UNKNOWN, 0, UNKNOWN)
    asked_begin = begin_at[where] if begins is None else begins.get(where.partition, 0)
    asked_end = min(end_at.get(where, mark), mark)
    end, held_back = asked_end, 0
    if query.isolation == READ_COMMITTED:
        end = min(asked_end, last_stable)
        held_back = max(0, asked_end - max(end, asked_begin))
    begin = min(asked_begin, end)
    return PartitionSpan(
        where.partition, begin, end, min(end, last_stable), held_back, end if query.is_newest_first else begin
    )


def _bounds(
    known: Mapping[TopicPartition, Bounds], ends: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, Bounds]:
    return {each: (start, ends[each][1]) for each, (start, _) in known.items()}


def topic_of(admin: Admin, name: str) -> TopicMetadata:
    """Return a topic.

    Raises:
        KafkaError: it does not exist, or no broker answers.
    """
    found: TopicMetadata = result(admin.describe_topics([name])[name])
    return found
