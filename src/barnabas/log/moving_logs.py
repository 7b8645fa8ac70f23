"""Logs on their way from one directory of a broker to another: where each is, what a start does with them, and the exchange at the end.

    /a/orders-3/                 current      /a/orders-3.<id>-delete/     deleted a minute later
    /b/orders-3.<id>-future/     its copy     /b/orders-3/                 current
                    during the move                        after `exchange`

The current log is the truth until the exchange: everything is appended to it. The copy follows (`directory_moves`). The current log knows
its copy (`PartitionLog.future`) and cuts it before itself.

Compaction. The cleaner leaves both alone: if it removed a tombstone before the copy has it, an older record of the copy would come back.
So the copy's directory notes up to where the log was clean when the copy began. If the log has been cleaned further in a run without the
copy's directory, the copy begins again.

Crashes. The exchange first renames the current log, then the copy, in one turn of the loop. The copy has all records, and has synced what
the current log had synced. What a start finds:

- both: the move goes on. The start cuts the copy back to the current log, before anything is appended to that: a power cut may have taken
  more from the current log than from its copy.
- only the copy: the crash came between the renames, or the directory of the current log is gone. The copy takes its place. If a
  directory cannot be read, the current log may be there: then the replica is offline, and the copy waits.
- two current logs: a power cut has undone the first rename only. The metadata decides (`LogDirectories.settle`), for the controller was
  told of the new directory before the exchange.

After a copy has taken the place of a log at a start, the broker claims nothing of its last run.

Difference from Kafka: at a start Kafka lets the copy take the place although the current log is there, if the metadata names the copy's
directory. Records that came after the copy are lost then.

Source: KIP-113, KIP-858; Kafka's `LogManager.replaceCurrentWithFutureLog`, `recoverAbandonedFutureLogs`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.log.clean_shutdown_file import UNKNOWN_EPOCH
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.offset_checkpoints import Key
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from barnabas.log.log_manager import LogManager

__all__ = ["MovingLogs"]

logger = logging.getLogger(__name__)


class MovingLogs:
    """The logs that move between the directories of a broker.

    Args:
        online: returns the directories that are online.
        has_unread: returns whether a log that none of them has may be in a directory that cannot be read.
        moved: called after an exchange, with the log's new directory.

    Attributes:
        promised: the directories that the controller knows, or is about to know, as those of replicas that move there.
    """

    def __init__(
        self,
        online: Callable[[], Sequence[LogManager]],
        has_unread: Callable[[Key], bool],
        moved: Callable[[Key, LogManager], None],
    ) -> None:
        self.promised: dict[Key, LogManager] = {}
        self._online = online
        self._has_unread = has_unread
        self._moved = moved

    def __repr__(self) -> str:
        return f"<MovingLogs {self.found()}>"

    def found(self) -> list[tuple[Key, LogManager]]:
        """Return each future log, with its directory."""
        return [(key, each) for each in self._online() for key in each.futures.names()]

    def check(self) -> None:
        """Decide about the future logs that a start has found, once all directories are open.

        Raises:
            KafkaStorageError: the disk failed.
        """
        kept: dict[Key, LogManager] = {}
        for key, target in self.found():
            source = next((each for each in self._online() if key in each), None)
            try:
                if source is target or kept.setdefault(key, target) is not target:
                    target.futures.delete(key)
                elif source is not None:
                    self._go_on(key, source, target)
                elif not self._has_unread(key):
                    self._take_place(target, key)
            except OSError as error:
                raise KafkaStorageError(f"cannot open the copy of {key[0]}-{key[1]}: {in_words(error)}") from error

    def _go_on(self, key: Key, source: LogManager, target: LogManager) -> None:
        if target.cleaner.cleaned_to(key) == source.cleaner.cleaned_to(key):
            source.cleaner.pause(key)
            self.cut_back(key, target)
            return
        logger.info("%s: %s-%d has been cleaned since its copy began; the copy begins again", target.root_dir, *key)
        topic_id = target.futures.topic_id_of(key)
        self.give_up(key)
        if topic_id is not None:
            self.begin(key, target, topic_id)

    def _take_place(self, target: LogManager, key: Key) -> None:
        log = target.take_in(key)
        target.broker_epoch = UNKNOWN_EPOCH
        logger.warning(
            "%s: there is no log of %s but the copy of a move that has not ended; the copy takes its place, and ends at offset %d",
            target.root_dir,
            log.name,
            log.log_end_offset,
        )

    def cut_back(self, key: Key, target: LogManager) -> PartitionLog:
        """Cut a copy to the part that it has in common with its log, and return it.

        Raises:
            KafkaStorageError: the disk failed.
        """
        source = next(each for each in self._online() if key in each)
        log, future = source.get(*key), target.futures.get(key)
        assert log is not None, key
        assert future is not None, key
        _cut_back(log, future)
        target.cleaner.inherit(key, source.cleaner.cleaned_to(key))
        log.future = future
        return future

    def begin(self, key: Key, target: LogManager, topic_id: Uuid) -> PartitionLog:
        """Return a new, empty copy of a log, in another directory.

        Raises:
            KafkaStorageError: the disk failed.
        """
        source = next(each for each in self._online() if key in each)
        log = source.get(*key)
        assert log is not None, key
        try:
            future = target.futures.create(key, topic_id, target.new_id())
        except OSError as error:
            reason = in_words(error)
            raise KafkaStorageError(f"cannot copy {key[0]}-{key[1]} to {target.root_dir}: {reason}") from error
        future.reconfigure(log.config)
        source.cleaner.pause(key)
        target.cleaner.inherit(key, source.cleaner.cleaned_to(key))
        log.future = future
        return future

    def give_up(self, key: Key) -> None:
        """Delete the copy of a log, if there is one; a directory that fails keeps it until the next start."""
        self.leave(key)
        for each in self._online():
            if key not in each.futures:
                continue
            each.cleaner.removed(key)
            try:
                each.futures.delete(key)
            except OSError as error:
                logger.error("%s: cannot delete the copy of %s-%d: %s", each.root_dir, *key, in_words(error))

    def leave(self, key: Key) -> None:
        """Let a log go on without its copy, which stays where it is."""
        self.promised.pop(key, None)
        for each in self._online():
            each.cleaner.resume(key)
            log = each.logs.get(key)
            if log is not None:
                log.future = None

    def exchange(self, key: Key, source: LogManager, target: LogManager) -> PartitionLog:
        """Let the copy take the place of the log, and return it; the copy must have all records.

        Raises:
            KafkaStorageError: a disk failed; the log is where it was.
        """
        log = source.get(*key)
        assert log is not None, key
        target.cleaner.inherit(key, source.cleaner.cleaned_to(key))
        moved: list[PartitionLog] = []
        try:
            source.delete(*key, lambda: moved.append(target.take_in(key)))
        except KafkaStorageError:
            target.cleaner.removed(key)
            raise
        log.future = None
        self.promised.pop(key, None)
        self._moved(key, target)
        return moved[0]


def _cut_back(log: PartitionLog, future: PartitionLog) -> None:
    end = min(log.log_end_offset, future.log_end_offset)
    epoch, epoch_end = log.end_offset_for_epoch(future.latest_epoch)
    if epoch >= 0:
        _, own_end = future.end_offset_for_epoch(epoch)
        end = min(end, epoch_end, own_end if own_end >= 0 else end)
    if end < future.log_end_offset:
        future.truncate_to(end)
