"""A query's progress as the offsets of a consumer group, for lag tools (`kafka.group.id`).

Only the checkpoint decides where a query resumes, so a failed commit is only logged.

Beside each offset stands which run of a query committed it: `spark by=5f2c01ab9d3e`. Another run's note, where this run
has already committed, shows that two queries commit to one group and overwrite each other's offsets.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

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
    """

    def __init__(self, group_id: str, run_id: str) -> None:
        self._group_id = group_id
        self._run_id = run_id
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
            reader.commit(self._group_id, position, f"spark by={self._run_id}")
            self._commit_failed = False
        except KafkaError as error:
            if not self._commit_failed:
                logger.warning("cannot commit progress to group %s: %s", self._group_id, error)
            self._commit_failed = True
        self._shown = position

    def _look_for_others(self, reader: OffsetReader, committed: Mapping[TopicPartition, int]) -> None:
        notes = [_NOTE.match(note) for note in reader.committed_notes(self._group_id, committed)]
        if {note[1] for note in notes if note} - {self._run_id}:
            logger.warning(
                "another running query commits to group %s too, so that its offsets are those of the query that was last; "
                "give each query a kafka.group.id of its own",
                self._group_id,
            )
            self._warned = True
