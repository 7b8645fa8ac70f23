"""The data directories of a node that starts: one, or several of `log.dirs`.

- One directory is formatted by the start, if it is empty. Several are not: `barnabas storage format` gives each its id, and a start that
  finds an empty one among them would not know whether its disk was lost. This is Kafka's rule too.
- Several belong to one node of one cluster, each with an id of its own. The metadata log is in `metadata.log.dir`, or in
  the first of them. If `log.dirs` does not name `metadata.log.dir`, that directory has no replicas: the broker has a lock on it, and no
  `LogManager`.
- A directory that cannot be read is offline, if it is not the one with the metadata log and another can be read; so is one whose recovery
  fails because of its disk. The node starts without it. This is Kafka's rule too.

Source: Kafka's `KafkaRaftServer.initializeLogDirs`, `MetaPropertiesEnsemble.verify`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random as random_module
from collections.abc import Callable, Iterator, Sequence

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.data_directory import DataDirectory, UnreadableDirectory
from barnabas.log.directory_lock import DirectoryLock
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_directories import LogDirectories, Logs
from barnabas.log.log_manager import LogManager
from barnabas.log.meta_properties import MetaProperties
from barnabas.protocol.primitives import uuid_from_str
from barnabas.quorum.metadata_log import DIRECTORY

__all__ = ["DataDirectories"]

logger = logging.getLogger(__name__)


class DataDirectories:
    """One start's view of its directories, in the order of `log.dirs`."""

    def __init__(self, disk: Disk, config: BrokerConfig) -> None:
        self._disk = disk
        self._config = config
        metadata = os.path.normpath(config.metadata_dir)
        self._each = [
            DataDirectory(disk, config, root, has_metadata=os.path.normpath(root) == metadata)
            for root in config.all_dirs
        ]
        is_apart = len(config.all_dirs) > len(config.log_dirs)
        # The lock of the directory with the metadata log, if that is not one of log.dirs.
        self._apart: DirectoryLock | None = DirectoryLock(disk, config.metadata_dir) if is_apart else None
        # Those that cannot be read, with the reason; and their managers, to be closed.
        self._lost: dict[DataDirectory, UnreadableDirectory] = {}
        self._to_close: list[LogManager] = []

    def __repr__(self) -> str:
        return f"<DataDirectories {' '.join(self.roots)}>"

    @property
    def roots(self) -> Sequence[str]:
        """The directories that can be read."""
        return [each.root for each in self._online]

    @property
    def was_formatted(self) -> bool:
        """Whether all had an identity before this start."""
        return all(each.was_formatted for each in self._online)

    @property
    def _online(self) -> list[DataDirectory]:
        return [each for each in self._each if each not in self._lost]

    def check(self) -> None:
        """Look at the directories without changing anything.

        Raises:
            CannotStart: one is not this node's, not formatted, or cannot be read.
        """
        for each in self._each:
            with self._tolerant_of(each):
                each.check()
        if len(self._each) > 1:
            self._check_together()

    def _check_together(self) -> None:
        first = self._online[0]
        known: dict[str, str] = {}
        for each in self._online:
            assert first.meta is not None, first
            assert each.meta is not None, each
            if each.meta.cluster_id != first.meta.cluster_id:
                raise CannotStart(f"{first.root} and {each.root} belong to different clusters (correct log.dirs)")
            if each.meta.directory_id is None:
                raise CannotStart(f"{each.root}/meta.properties has no directory.id (start Kafka 3.7 or later once)")
            other = known.setdefault(each.meta.directory_id, each.root)
            if other != each.root:
                raise CannotStart(f"{other} and {each.root} have the same directory.id: one is a copy of the other")
            if not each.has_metadata and self._disk.exists(f"{each.root}/{DIRECTORY}"):
                raise CannotStart(
                    f"{each.root}/{DIRECTORY} is a metadata log, but the metadata log is in {self._config.metadata_dir}"
                    f" (set metadata.log.dir={each.root} if that one is the node's)"
                )

    @contextlib.contextmanager
    def _tolerant_of(self, directory: DataDirectory) -> Iterator[None]:
        """Note that a directory cannot be read.

        Raises:
            UnreadableDirectory: the node cannot start without it.
        """
        try:
            yield
        except UnreadableDirectory as error:
            left = [each for each in self._online if each is not directory and self._has_logs(each)]
            if directory.has_metadata or not left:
                raise
            self._lost[directory] = error

    def _has_logs(self, directory: DataDirectory) -> bool:
        return self._apart is None or not directory.has_metadata

    def lock(self, logs: Logs) -> None:
        """Take the lock of each directory; errors as in `DataDirectory.lock`."""
        for each, manager in self._with(logs):
            with self._tolerant_of(each):
                each.lock(manager or self._lock_apart)
        self._take_offline(logs)

    @property
    def _lock_apart(self) -> DirectoryLock:
        assert self._apart is not None, "a directory without logs has the metadata log"
        return self._apart

    def open(self, logs: Logs, random: random_module.Random, now_ms: int) -> MetaProperties:
        """Return the identity of the directory with the metadata log; errors as in `DataDirectory.open`."""
        owners: dict[DataDirectory, MetaProperties] = {}
        for each, manager in self._with(logs):
            with self._tolerant_of(each):
                owners[each] = each.open(manager or self._lock_apart, random, now_ms)
        self._take_offline(logs)
        if len(self._each) > 1:
            self._check_together()
        ids = [owner.directory_id for each, owner in owners.items() if self._has_logs(each)]
        logs.ids = [uuid_from_str(each) for each in ids if each is not None]
        return next(owner for each, owner in owners.items() if each.has_metadata)

    def _take_offline(self, logs: Logs) -> None:
        """Let the logs know which directories cannot be read."""
        managers = {each.root_dir: each for each in logs.directories if isinstance(each, LogManager)}
        for directory, error in self._lost.items():
            manager = managers.get(directory.root)
            if manager is not None and isinstance(logs, LogDirectories):
                offline = logs.take_offline(manager, error.reason, are_replicas_known=False)
                if directory.meta is not None and directory.meta.directory_id is not None:
                    offline.id = uuid_from_str(directory.meta.directory_id)
                self._to_close.append(manager)
                logger.error("The data directory %s is offline until the next start: %s", directory.root, error.reason)

    async def recover(self, logs: Logs, monotonic_ns: Callable[[], int]) -> None:
        """Recover the logs of each directory.

        Raises:
            CannotStart: the disk of the only directory, or of one that the node needs, failed.
        """
        for each, manager in self._with(logs):
            with self._tolerant_of(each):
                await each.recover(manager, monotonic_ns)
        self._take_offline(logs)
        for manager in self._to_close:
            await manager.close(clean=False)
        if isinstance(logs, LogDirectories):
            try:
                logs.check()
            except KafkaStorageError as error:
                raise CannotStart(error.message) from None

    def undo(self, logs: Logs) -> None:
        """Remove what this start has made; see `DataDirectory.undo`."""
        for each, manager in self._with(logs):
            each.undo(is_locked=(manager or self._lock_apart).is_locked)

    def release(self) -> None:
        """Let others have a directory that has the metadata log only; the managers of the logs release theirs."""
        if self._apart is not None:
            self._apart.release()

    def _with(self, logs: Logs) -> list[tuple[DataDirectory, LogManager | None]]:
        """Return the directories that can be read, with their managers; None for one without logs."""
        managers = {each.root_dir: each for each in logs.directories if isinstance(each, LogManager)}
        return [
            (each, managers.get(each.root))
            for each in self._online
            if each.root in managers or not self._has_logs(each)
        ]
