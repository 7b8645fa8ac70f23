"""The stream reader: `spark.readStream.format("barnabas")`.

Spark keeps one reader in one Python process while the query runs. In each trigger it calls `initialOffset` (where the
query begins), `latestOffset` (where the next batch ends), `partitions` (the tasks of the batch) and `commit` (the batch
is done). `read` runs on executors, on a pickled copy. `admission` and `ranges` make the decisions.

Spark passes positions as `{"topic": {"0": 42}}` and stores them in this form in the checkpoint, as for its own Kafka
source. The end of a batch also has where the batch begins in partitions that are new, and the topics' ids; see
`stored_offset`. So a repeated batch has the same records, even hours later.

A position alone does not show these changes, so the reader checks for them:

- **A new partition** (the topic grew, or a pattern matches a new topic) is read from its beginning. If the beginning is
  not offset 0, earlier records are gone: data loss.
- **A partition of a topic that grew in order** waits until an earlier batch has read its parent up to the fence; see `growth_holds`.
- **A partition that is gone**: data loss. Without `failOnDataLoss` the query drops it.
- **A partition that ends before the query's position**: the log was cut, or the topic was deleted and created again:
  data loss. Without `failOnDataLoss` the query continues at the partition's new end.
- **A topic that was deleted and created again** has a new id, even if it has already grown past the position: data loss.
  Without `failOnDataLoss` the new topic is read from its beginning; a batch that was planned before, and is repeated,
  reads nothing of it.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.protocol.primitives import ZERO_UUID, uuid_to_str
from barnabas.spark.plain_errors import plain_errors
from barnabas.spark.source.admission import MinimumOffsets, take_at_most
from barnabas.spark.source.batch import RangePartition, plan_tasks, read_task
from barnabas.spark.source.data_loss import Loss, LossReports
from barnabas.spark.source.group_progress import GroupProgress
from barnabas.spark.source.growth_holds import GrowthHolds
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.offsets import Latest, Position, SparkOffsets, TopicPartition, from_spark, to_spark
from barnabas.spark.source.options import SourceOptions
from barnabas.spark.source.stored_offset import StoredOffset

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("barnabas.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Moves a query through its topics, batch by batch."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._losses = LossReports(options)
        self._offset_reader: OffsetReader | None = None
        self._minimum = (
            None
            if options.min_offsets_per_trigger is None
            else MinimumOffsets(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        )
        self._initial: SparkOffsets | None = None
        self._no_beginning: ValueError | None = None
        self._target: Position | None = None
        self._ends: Position | None = None
        self._planned: SparkOffsets | None = None
        self._group = GroupProgress(options.group_id, uuid.uuid4().hex[:12]) if options.group_id else None
        self._holds = GrowthHolds()
        self._topic_ids: dict[str, str] = {}
        self._ids_at_start: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<StreamReader servers={self._options.bootstrap_servers} topics={self._options.topics}>"

    def __getstate__(self) -> dict[str, Any]:
        # Executors get a copy without the driver's connections.
        return {**self.__dict__, "_offset_reader": None, "_losses": LossReports(self._options)}

    @plain_errors()
    def initialOffset(self) -> SparkOffsets:
        """Return where a query without a checkpoint begins.

        Spark asks again if it repeats the first batch, whose end has the beginning. So a beginning that cannot be found
        is an error only when `latestOffset` plans a first batch.
        """
        partitions = self._partitions()
        try:
            first = self._reader.start(partitions)
        except ValueError as error:
            self._no_beginning = error
            first = self._reader.latest(partitions)
        if self._target is not None and self._options.starting == Latest():
            # The latest offsets may be past the end that prepareForTriggerAvailableNow fixed.
            first = {each: min(offset, self._target.get(each, offset)) for each, offset in first.items()}
        self._initial = to_spark(first)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that Spark passes to `latestOffset` in triggers with a limit."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end: the next run reads records that arrive from now on."""
        self._target = self._reader.latest(self._partitions())

    @plain_errors()
    def reportLatestOffset(self) -> SparkOffsets | None:
        """Return the partitions' ends for the progress report, which computes the query's lag from them.

        They are the ends that `latestOffset` has just seen.
        """
        return to_spark(self._ends if self._ends is not None else self._reader.latest(self._partitions()))

    @plain_errors()
    def latestOffset(self, start: SparkOffsets, limit: ReadLimit) -> SparkOffsets:
        """Return where the next batch ends; `start` if there are no new offsets, or not enough yet.

        Raises:
            DataLoss: records between the query's position and the topics' ends are gone, and `failOnDataLoss` is true.
        """
        is_first = start == self._initial
        if is_first and self._no_beginning is not None:
            raise self._no_beginning
        before = StoredOffset.from_json(start)
        self._check_selection(before.position)
        # Every batch before `start` is done. Spark calls `commit` only when it plans the next batch, which may never
        # happen on a quiet topic.
        self._show_progress(before.position)
        if self._target is None:
            self._ends = end = self._look(before)
        else:
            if not self._is_whole(before, self._target):
                self._target = self._look(before)
            end = self._target
        position = self._without_topics_created_again(before)
        self._check_partitions(position, end)
        new = self._begin_of_new(position, end)
        known = {**new, **position}
        self._check_never_back(known, end)
        end = self._holds.held_back(known, end, has_new=bool(new), look=self._reader.growth)
        if self._is_held_back(limit, known, end):
            return start
        if isinstance(limit, ReadMaxRows):
            end = take_at_most(limit.max_rows, known, end)
        if end == before.position and not new and not is_first:
            return start
        self._planned = StoredOffset(end, known if is_first else new, self._topic_ids).to_json()
        return self._planned

    def _look(self, before: StoredOffset) -> Position:
        """Return the partitions' ends; look again for a while if records seem to be gone, as a broker may lag behind.

        Otherwise a topic that a broker does not know for a moment would be read again from its beginning.
        """
        return self._reader.settled(
            lambda: self._reader.latest(self._partitions(), before.position), lambda end: self._is_whole(before, end)
        )

    def _is_whole(self, before: StoredOffset, end: Position) -> bool:
        """Return whether the partitions of the offset before are all there, and reach their positions."""
        is_there = all(end.get(each, -1) >= offset for each, offset in before.position.items())
        return is_there and not self._created_again(before)

    def _created_again(self, before: StoredOffset) -> set[str]:
        # Where a query begins, and what an older version of this source stored, has no ids.
        stored_ids = before.topic_ids or self._ids_at_start
        return {topic for topic, stored in stored_ids.items() if self._topic_ids.get(topic, stored) != stored}

    def _is_held_back(self, limit: ReadLimit, start: Position, end: Position) -> bool:
        # With a fixed end no more offsets will come. ReadAllAvailable means everything.
        if self._minimum is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        return self._minimum.holds_back(start, end, time.time_ns() // 1_000_000)

    def _check_selection(self, position: Position) -> None:
        """Check that the position is that of a query of these topics.

        Raises:
            ValueError: the query reads none of its partitions, so the checkpoint is of another query.
        """
        selection = self._options.topics
        if position and not any(map(selection.includes, position)):
            topics = ", ".join(sorted({topic for topic, _ in position}))
            raise ValueError(
                f"the checkpoint is of a query of {topics}, and this query reads {selection}: use the checkpointLocation that "
                "belongs to this query, or a new one"
            )

    def _check_partitions(self, position: Position, there: Iterable[TopicPartition]) -> None:
        if gone := sorted(set(position).difference(there)):
            names = ", ".join(f"{topic}-{partition}" for topic, partition in gone)
            is_read = all(map(self._options.topics.includes, gone))
            what = "are gone" if is_read else f"of the checkpoint are gone, or no longer among {self._options.topics}"
            self._losses.report(f"Partitions {names} {what}", _losses(position, gone))

    def _begin_of_new(self, position: Position, end: Position) -> Position:
        """Return the beginnings of the partitions that are new to the query."""
        new = [each for each in end if each not in position]
        begin = self._reader.earliest(new) if new else {}
        for (topic, partition), offset in begin.items():
            if offset > 0:
                self._losses.report(
                    f"Added partition {topic}-{partition} starts from {offset} instead of 0",
                    [Loss(topic, partition, 0, offset)],
                )
        return begin

    def _check_never_back(self, start: Position, end: Position) -> None:
        for (topic, partition), offset in end.items():
            before = start[topic, partition]
            if offset < before:
                self._losses.report(
                    f"Partition {topic}-{partition}'s offset was changed from {before} to {offset}: "
                    "the topic was created again or its log was cut",
                    [Loss(topic, partition, offset, before)],
                )

    def _without_topics_created_again(self, before: StoredOffset) -> Position:
        """Return the position before, without the topics that have another id now."""
        again = self._created_again(before)
        for topic in sorted(again):
            old = sorted(each for each in before.position if each[0] == topic)
            self._losses.report(f"Topic {topic} was deleted and created again", _losses(before.position, old))
        return {each: offset for each, offset in before.position.items() if each[0] not in again}

    @plain_errors()
    def partitions(self, start: SparkOffsets, end: SparkOffsets) -> list[InputPartition]:
        """Return the tasks of the batch between two positions."""
        if start == end:
            return []
        since, until = StoredOffset.from_json(start), StoredOffset.from_json(end)
        position = until.position
        if end != self._planned:
            # A batch of an earlier run is repeated; the topics and the options may have changed since.
            self._check_selection(position)
            there = self._reader.settled(
                lambda: set(self._partitions()),
                lambda there: there.issuperset(position) and not self._created_again(until),
            )
            self._check_partitions(position, there)
            position = {each: offset for each, offset in position.items() if each in there}
        begin = {**since.position, **until.first}
        # Only an older version of this source stored an end without the beginning of every new partition.
        begin.update(self._reader.earliest(each for each in position if each not in begin))
        if start == self._initial and not until.first:
            self._check_first_batch(begin, position)
        tasks = plan_tasks(self._reader, self._options, begin, position)
        return list(self._without_other_topics(tasks, until.topic_ids))

    def _without_other_topics(self, tasks: list[RangePartition], ids: Mapping[str, str]) -> list[RangePartition]:
        """Return the tasks of a batch without those whose topic was created again after the batch was planned."""
        other = {
            task.wanted.topic
            for task in tasks
            if uuid_to_str(task.leader.topic_id) != ids.get(task.wanted.topic, uuid_to_str(task.leader.topic_id))
        }
        for topic in sorted(other):
            self._losses.report(
                f"Topic {topic} was deleted and created again after the batch was planned",
                [Loss(topic, r.partition, r.start, r.end) for r in (t.wanted for t in tasks) if r.topic == topic],
            )
        return [task for task in tasks if task.wanted.topic not in other]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one task's rows; on an executor."""
        return read_task(self._options, partition)

    @plain_errors()
    def commit(self, end: SparkOffsets) -> None:
        """Record that everything before `end` is done."""
        self._show_progress(from_spark(end))

    def _show_progress(self, position: Position) -> None:
        if self._group is not None:
            self._group.show(self._reader, position)

    def stop(self) -> None:
        """Close the driver's connections."""
        if self._offset_reader is not None:
            self._offset_reader.close()
            self._offset_reader = None

    def _check_first_batch(self, begin: Position, until: Position) -> None:
        """Check a repeated first batch of an older version of this source, which did not store its beginning."""
        if self._no_beginning is not None:
            raise self._no_beginning
        if any(until[each] < offset for each, offset in begin.items() if each in until):
            logger.warning("the first batch's start was not stored; the query continues at the batch's end")

    @property
    def _reader(self) -> OffsetReader:
        if self._offset_reader is None:
            self._offset_reader = OffsetReader(self._options)
        return self._offset_reader

    def _partitions(self) -> list[TopicPartition]:
        if not self._ids_at_start:
            self._losses.check()
        found = self._reader.partitions()
        none = bytes(ZERO_UUID)
        self._topic_ids = {t: uuid_to_str(each) for t, each in self._reader.topic_ids().items() if each != none}
        self._ids_at_start = self._ids_at_start or self._topic_ids
        return found


def _losses(position: Position, gone: Iterable[TopicPartition]) -> list[Loss]:
    """Return the losses of partitions that are gone: everything from the query's position on."""
    return [Loss(topic, partition, position[topic, partition], None) for topic, partition in gone]
