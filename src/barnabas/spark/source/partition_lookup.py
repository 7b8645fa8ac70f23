"""A task's questions about its one partition: where its leader is, where its log begins and ends.

A task asks only when a fetch has failed, so each question opens its connection and closes it again. It asks for the
metadata of its own topic alone: another topic of the query may be gone, and a pattern may match the whole cluster.

`RangeFetcher` decides how long to continue asking. A lookup is therefore not retried here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.options import Assign, SourceOptions

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Where a log begins and ends, according to the leader of one epoch; `end` is its high watermark."""

    leader: Leader
    earliest: int
    end: int


class PartitionLookup:
    """Answers questions about one partition.

    Args:
        options: the query's options.
        topic, partition: the only partition that is asked about.
        offset_reader: a seam for tests.
    """

    def __init__(
        self, options: SourceOptions, topic: str, partition: int, offset_reader: Callable[[SourceOptions], OffsetReader]
    ) -> None:
        self._partition = (topic, partition)
        self._options = replace(options, topics=Assign((self._partition,)), fetch_offset_retries=0, api_timeout_ms=0)
        self._offset_reader = offset_reader

    def __repr__(self) -> str:
        return f"<PartitionLookup partition={self._partition[0]}-{self._partition[1]}>"

    def leader(self) -> Leader:
        """Return the partition's leader.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION if the broker that was asked knows no such topic.
        """
        return self._ask(self._find_leader)

    def bounds(self) -> LogBounds:
        """Return where the log begins and ends.

        Raises:
            KafkaError: as for `leader`, or because the leader cannot tell now.
        """
        return self._ask(
            lambda reader: LogBounds(
                self._find_leader(reader),
                reader.earliest([self._partition])[self._partition],
                reader.high_watermarks([self._partition])[self._partition],
            )
        )

    def _find_leader(self, reader: OffsetReader) -> Leader:
        reader.partitions()
        return reader.leaders([self._partition])[self._partition]

    def _ask(self, question: Callable[[OffsetReader], ResultT]) -> ResultT:
        reader = self._offset_reader(self._options)
        try:
            return question(reader)
        finally:
            reader.close()
