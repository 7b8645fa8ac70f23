"""A query's progress as the offsets of a consumer group, for lag tools (`kafka.group.id`).

Only the checkpoint decides where a query resumes, so a failed commit is only logged.

The mark beside each offset names the run of the query that committed it (`commit_mark`). Another run's mark, where this
run has already committed, shows that two queries commit to one group and overwrite each other's offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from barnabas.protocol.errors import KafkaError
from barnabas.spark.source.commit_mark import CommitMark, parse_mark
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.offsets import Position, TopicPartition

logger = logging.getLogger("barnabas.spark")


class GroupProgress:
    """Commits the positions of one run of a query.

    Args:
        group_id: the group.
        run_id: distinguishes this run from every other.
        clock_ns: nanoseconds since 1970.
    """

    def __init__(self, group_id: str, run_id: str, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._group_id = group_id
        self._run_id = run_id
        self._clock_ns = clock_ns
        self._shown: Position | None = None
        self._commit_failed = False
        self._warned = False

    def __repr__(self) -> str:
        return f"<GroupProgress group={self._group_id} run={self._run_id}>"

    def show(self, reader: OffsetReader, position: Position) -> None:
        """Commit a position, unless it is the last one."""
        if position == self._shown:
            return
        try:
            if self._shown is not None and not self._warned:
                self._look_for_others(reader, self._shown)
            mark = CommitMark(self._clock_ns() // 1_000_000, self._run_id)
            reader.commit(self._group_id, position, str(mark))
            self._commit_failed = False
        except KafkaError as error:
            if not self._commit_failed:
                logger.warning("cannot commit progress to group %s: %s", self._group_id, error)
            self._commit_failed = True
        self._shown = position

    def _look_for_others(self, reader: OffsetReader, committed: Mapping[TopicPartition, int]) -> None:
        marks = [parse_mark(note) for note in reader.committed_notes(self._group_id, committed)]
        if {mark.run_id for mark in marks if mark} - {self._run_id, None}:
            logger.warning(
                "another running query commits to group %s too, so that its offsets are those of the query that was last; "
                "give each query a kafka.group.id of its own",
                self._group_id,
            )
            self._warned = True
