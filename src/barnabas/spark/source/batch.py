"""The batch reader: `spark.read.format("barnabas")`.

Spark creates the reader in a planning process, calls `partitions`, pickles the reader and calls `read` on executors. So
it holds only values; connections are opened where they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from barnabas.spark.plain_errors import plain_errors
from barnabas.spark.source.batch_range import batch_range
from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.offsets import Position
from barnabas.spark.source.options import SourceOptions
from barnabas.spark.source.pushed_filters import PushedFilters
from barnabas.spark.source.ranges import OffsetRange, cut_ranges

if TYPE_CHECKING:
    import pyarrow as pa


class RangePartition(InputPartition):
    """One task: a range, and the partition's leader when the task was planned."""

    def __init__(self, wanted: OffsetRange, leader: Leader) -> None:
        self.wanted = wanted
        self.leader = leader

    def __repr__(self) -> str:
        r = self.wanted
        leader = f"{self.leader.host}:{self.leader.port}"
        return f"<RangePartition partition={r.topic}-{r.partition} start={r.start} end={r.end} leader={leader}>"


def plan_tasks(reader: OffsetReader, options: SourceOptions, start: Position, end: Position) -> list[RangePartition]:
    """Split the offsets between two positions into tasks.

    Partitions that are not in both positions, or have no offsets between them, are left out.
    """
    whole = [
        OffsetRange(topic, partition, start[topic, partition], offset)
        for (topic, partition), offset in sorted(end.items())
        if start.get((topic, partition), offset) < offset
    ]
    ranges = cut_ranges(whole, options.min_partitions, options.max_records_per_partition)
    leaders = reader.leaders((r.topic, r.partition) for r in whole)
    return [RangePartition(r, leaders[r.topic, r.partition]) for r in ranges]


def read_task(options: SourceOptions, task: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield a task's rows; on an executor. If nothing was planned, Spark passes a partition without a range."""
    # Only executors need pyarrow and numpy, not the process that plans a query.
    from barnabas.spark.source.fetcher import RangeFetcher

    if isinstance(task, RangePartition):
        with plain_errors():
            yield from RangeFetcher(options, task.wanted, task.leader)


class BatchReader(DataSourceReader):
    """Reads between two positions, both fixed when the query is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @plain_errors()
    def partitions(self) -> list[InputPartition]:
        """Find where the query begins and ends, and split it into tasks."""
        reader = OffsetReader(self._options)
        try:
            start, end = self._narrow(reader, *batch_range(reader, self._options))
            tasks: Iterable[InputPartition] = plan_tasks(reader, self._options, start, end)
            return list(tasks)
        finally:
            reader.close()

    def _narrow(self, reader: OffsetReader, start: Position, end: Position) -> tuple[Position, Position]:
        """Return the part of the batch that filters leave; here all of it."""
        return start, end

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one task's rows."""
        return read_task(self._options, partition)


class FilteringBatchReader(BatchReader):
    """A batch reader that takes filters. Spark rejects one unless `spark.sql.python.filterPushdown.enabled` is true."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._pushed = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that narrow what is read; return those that Spark must still apply."""
        return self._pushed.push(filters)

    def _narrow(self, reader: OffsetReader, start: Position, end: Position) -> tuple[Position, Position]:
        since = self._pushed.since_ms
        wanted = self._pushed.partitions(start)
        return self._pushed.narrow(start, end, {} if since is None else reader.at_moment(wanted, since))
