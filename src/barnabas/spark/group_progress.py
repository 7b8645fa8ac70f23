"""A query's progress as the offsets of a consumer group, for lag tools (`kafka.group.id`).

Only the checkpoint decides where a query resumes, so a failed commit is only logged.

Beside each offset stands which run of a query committed it, and when, as Kafka tells no reader:

    spark by=5f2c01ab9d3e at=2026-11-22T10:49:54.063Z

Another run's note, where this run has already committed, shows that two queries commit to one group and overwrite each
other's offsets. Readers ignore words that they do not know.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from barnabas.protocol.errors import KafkaError
from barnabas.spark.offset_reader import OffsetReader
from barnabas.spark.offsets import Position, TopicPartition

logger = logging.getLogger("barnabas.spark")

_NOTE = re.compile(r"spark(?: \S+)*? by=(\S+)")


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
            reader.commit(self._group_id, position, self._note())
            self._commit_failed = False
        except KafkaError as error:
            if not self._commit_failed:
                logger.warning("cannot commit progress to group %s: %s", self._group_id, error)
            self._commit_failed = True
        self._shown = position

    def _note(self) -> str:
        moment = datetime.fromtimestamp(self._clock_ns() // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")
        return f"spark by={self._run_id} at={moment.replace('+00:00', 'Z')}"

    def _look_for_others(self, reader: OffsetReader, committed: Mapping[TopicPartition, int]) -> None:
        notes = [_NOTE.match(note) for note in reader.committed_notes(self._group_id, committed)]
        if {note[1] for note in notes if note} - {self._run_id}:
            logger.warning(
                "another running query commits to group %s too, so that its offsets are those of the query that was last; "
                "give each query a kafka.group.id of its own",
                self._group_id,
            )
            self._warned = True
