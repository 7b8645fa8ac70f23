"""The stream reader: `spark.readStream.format("barnabas")`.

Spark keeps one reader in one Python process while the query runs. In each trigger it calls `initialOffset` (where the
query begins), `latestOffset` (where the next batch ends), `partitions` (the tasks of the batch) and `commit` (the batch
is done). `read` runs on executors, on a pickled copy. `admission` and `ranges` make the decisions.

Spark passes positions as `{"topic": {"0": 42}}` and stores them in this form in the checkpoint, as for its own Kafka
source.

A position alone does not show these changes, so the reader checks for them:

- **A new partition** (the topic grew, or a pattern matches a new topic) is read from its beginning. If the beginning is
  not offset 0, earlier records are gone: data loss.
- **A partition that is gone**: data loss. Without `failOnDataLoss` the query drops it.
- **A partition that ends before the query's position**: the log was cut, or the topic was deleted and created again:
  data loss. Without `failOnDataLoss` the query continues at the partition's new end.
- **A topic that was deleted and created again while the query runs** has a new id, even if it has already grown past
  the position: data loss. Without `failOnDataLoss` the new topic is read from its beginning.

Limits: Spark gives a Python source no place for its first position. If a query that begins at the end (`latest`) is
killed in its first batch, it begins at the end again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.protocol.errors import KafkaError
from barnabas.spark.admission import MinimumOffsets, take_at_most
from barnabas.spark.commit_mark import CommitMark
from barnabas.spark.data_loss import report_data_loss
from barnabas.spark.offset_reader import OffsetReader
from barnabas.spark.offsets import Position, SparkOffsets, TopicPartition, from_spark, to_spark
from barnabas.spark.options import SourceOptions
from barnabas.spark.source import plan_tasks, read_task

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("barnabas.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Moves a query through its topics, batch by batch."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._offset_reader: OffsetReader | None = None
        self._minimum = (
            None
            if options.min_offsets_per_trigger is None
            else MinimumOffsets(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        )
        self._first: Position | None = None
        self._target: Position | None = None
        self._ends: Position | None = None
        self._shown: Position | None = None
        self._topic_ids: dict[str, bytes] = {}
        self._created_again: set[str] = set()
        self._commit_failed = False

    def __repr__(self) -> str:
        return f"<StreamReader servers={self._options.bootstrap_servers} topics={self._options.topics}>"

    def __getstate__(self) -> dict[str, Any]:
        # Executors get a copy without the driver's connections.
        return {**self.__dict__, "_offset_reader": None}

    def initialOffset(self) -> SparkOffsets:
        """Return where a query without a checkpoint begins."""
        first = self._reader.start(self._partitions())
        if self._target is not None:
            # The latest offsets may be past the end that prepareForTriggerAvailableNow fixed.
            first = {each: min(offset, self._target.get(each, offset)) for each, offset in first.items()}
        self._first = first
        return to_spark(first)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that Spark passes to `latestOffset` in triggers with a limit."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end: the next run reads records that arrive from now on."""
        self._target = self._reader.latest(self._partitions())

    def reportLatestOffset(self) -> SparkOffsets | None:
        """Return the partitions' ends for the progress report, which computes the query's lag from them.

        They are the ends that `latestOffset` has just seen.
        """
        return to_spark(self._ends if self._ends is not None else self._reader.latest(self._partitions()))

    def latestOffset(self, start: SparkOffsets, limit: ReadLimit) -> SparkOffsets:
        """Return where the next batch ends; `start` if there are no new offsets, or not enough yet.

        Raises:
            DataLoss: records between the query's position and the topics' ends are gone, and `failOnDataLoss` is true.
        """
        position = from_spark(start)
        # Every batch before `start` is done. Spark calls `commit` only when it plans the next batch, which may never
        # happen on a quiet topic.
        self._show_progress(position)
        if self._target is not None:
            end = self._target
        else:
            self._ends = end = self._reader.latest(self._partitions())
            self._notice_topics_created_again()
        self._check_partitions(position, end)
        known = {**self._begin_of_new(position, end), **position}
        self._check_never_back(known, end)
        if self._is_held_back(limit, known, end):
            return start
        if isinstance(limit, ReadMaxRows):
            end = take_at_most(limit.max_rows, known, end)
        return to_spark(end)

    def _is_held_back(self, limit: ReadLimit, start: Position, end: Position) -> bool:
        # With a fixed end no more offsets will come. ReadAllAvailable means everything.
        if self._minimum is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        return self._minimum.holds_back(start, end, time.time_ns() // 1_000_000)

    def _check_partitions(self, position: Position, end: Position) -> None:
        if gone := sorted(set(position) - set(end)):
            names = ", ".join(f"{topic}-{partition}" for topic, partition in gone)
            report_data_loss(f"Partitions {names} are gone", fail=self._options.fail_on_data_loss)

    def _begin_of_new(self, position: Position, end: Position) -> Position:
        """Return the beginnings of the partitions that are new to the query."""
        new = [each for each in end if each not in position]
        begin = self._reader.earliest(new) if new else {}
        for (topic, partition), offset in begin.items():
            if offset > 0:
                report_data_loss(
                    f"Added partition {topic}-{partition} starts from {offset} instead of 0",
                    fail=self._options.fail_on_data_loss,
                )
        return begin

    def _check_never_back(self, start: Position, end: Position) -> None:
        for (topic, partition), offset in end.items():
            before = start[topic, partition]
            if offset < before and topic not in self._created_again:
                report_data_loss(
                    f"Partition {topic}-{partition}'s offset was changed from {before} to {offset}: "
                    "the topic was created again or its log was cut",
                    fail=self._options.fail_on_data_loss,
                )

    def _notice_topics_created_again(self) -> None:
        for topic, topic_id in self._reader.topic_ids().items():
            if self._topic_ids.setdefault(topic, topic_id) != topic_id:
                report_data_loss(f"Topic {topic} was deleted and created again", fail=self._options.fail_on_data_loss)
                self._topic_ids[topic] = topic_id
                self._created_again.add(topic)

    def partitions(self, start: SparkOffsets, end: SparkOffsets) -> list[InputPartition]:
        """Return the tasks of the batch between two positions."""
        begin, until = from_spark(start), from_spark(end)
        new = [each for each in until if each not in begin or each[0] in self._created_again]
        if new:
            begin.update(self._reader.earliest(new))
            self._created_again.clear()
        self._check_first_batch(begin, until)
        return list(plan_tasks(self._reader, self._options, begin, until))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one task's rows; on an executor."""
        return read_task(self._options, partition)

    def commit(self, end: SparkOffsets) -> None:
        """Record that everything before `end` is done."""
        self._show_progress(from_spark(end))

    def _show_progress(self, position: Position) -> None:
        """Show the query's progress as a consumer group's offsets, if `kafka.group.id` is set.

        Only the checkpoint counts; the group is for lag tools. So a failed commit is only logged.
        """
        if self._options.group_id is None or position == self._shown:
            return
        self._shown = position
        try:
            mark = CommitMark(time.time_ns() // 1_000_000)
            self._reader.commit(self._options.group_id, position, str(mark))
            self._commit_failed = False
        except KafkaError as error:
            if not self._commit_failed:
                logger.warning("cannot commit progress to group %s: %s", self._options.group_id, error)
            self._commit_failed = True

    def stop(self) -> None:
        """Close the driver's connections."""
        if self._offset_reader is not None:
            self._offset_reader.close()
            self._offset_reader = None

    def _check_first_batch(self, begin: Position, until: Position) -> None:
        """Log a warning if a restarted first batch begins past its stored end (see the limits above)."""
        if self._first is not None and any(
            until[each] < offset for each, offset in self._first.items() if each in until
        ):
            logger.warning("the first batch's start was not stored; the query continues at the batch's end")

    @property
    def _reader(self) -> OffsetReader:
        if self._offset_reader is None:
            self._offset_reader = OffsetReader(self._options)
        return self._offset_reader

    def _partitions(self) -> list[TopicPartition]:
        found = self._reader.partitions()
        for topic, topic_id in self._reader.topic_ids().items():
            self._topic_ids.setdefault(topic, topic_id)
        return found
