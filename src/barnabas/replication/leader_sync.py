"""The syncs of a leader's log, for a topic with `barnabas.flush.before.ack`: one after the other, each for all that waits.

    append ─► begin ─► sync up to 10          append, append, append          sync up to 13 ─► …
                            └──────── in another thread ────────┘ on_end ─► begin ┘

A record counts at the leader when the recovery point has passed it (`Partition`). So the producers that append during a sync share the
next one: under load there are as many syncs as the disk allows, and each is for more records.

- A sync that began before a truncation moves no recovery point (`log_flusher`). If this replica leads again when it ends, the next sync
  begins then.
- A failed sync is the end: the log takes no writes until it is opened again. Who waits gets KAFKA_STORAGE_ERROR, as after a failed write.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.partition_log import PartitionLog

__all__ = ["LeaderSync"]


class LeaderSync:
    """The syncs of one log.

    Args:
        on_end: called after each sync, with the error if it failed; the caller begins the next one. Not called for a deleted log.

    Attributes:
        failure: the error of the sync that failed; None until then.
    """

    __slots__ = ("_is_under_way", "_log", "_on_end", "failure")

    def __init__(self, log: PartitionLog, on_end: Callable[[KafkaStorageError | None], None]) -> None:
        self._log = log
        self._on_end = on_end
        self._is_under_way = False
        self.failure: KafkaStorageError | None = None

    def __repr__(self) -> str:
        return f"<LeaderSync of={self._log.name} is_under_way={self._is_under_way}>"

    def begin(self) -> None:
        """Begin to sync up to the log's present end, unless a sync is under way or has failed."""
        if self._is_under_way or self.failure is not None or self._log.recovery_point >= self._log.log_end_offset:
            return
        self._is_under_way = True
        self._log.flush_elsewhere(self._ended)

    def forget(self) -> None:
        """Report no end any more: the log has moved to another directory."""
        self._on_end = lambda _: None

    def _ended(self, error: BaseException | None) -> None:
        self._is_under_way = False
        if isinstance(error, FileNotFoundError):
            return
        if error is not None:
            self.failure = KafkaStorageError(f"a sync of {self._log.name} failed: {in_words(error)}")
        self._on_end(self.failure)
