"""The future logs of one data directory: copies of logs that are in other directories of the same broker, and are to move here.

    <root>/<topic>-<partition>.<id>-future/     the copy, until it has all records
    <root>/<topic>-<partition>/                 the same files, once the log has moved

- A future log is a whole log with its indexes, snapshots and epochs. Checkpoints of its directory name it like any other log, so that
  recovery after a kill reads no more of it than of the others. The cleaner and retention do not see it.
- A start finds it again, and the move goes on (`moving_logs`).
- If a directory has two of one partition, the second is deleted: a crash may leave the copy of a move that was given up.

Source: KIP-113; Kafka's `LogManager.futureLogs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.log import log_files, partition_metadata
from barnabas.log.deleted_logs import DeletedLogs
from barnabas.log.disk import Disk
from barnabas.log.offset_checkpoints import Key
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid

__all__ = ["FutureLogs", "Moved"]


class Moved(NamedTuple):
    """A future log that is a log of its directory now."""

    log: PartitionLog
    path: str
    topic_id: Uuid | None


class FutureLogs:
    """The future logs of one directory.

    Args:
        load: opens the log in a directory.
        forget: takes the checkpoints of a log out of the directory's files; may raise OSError.
        deleted: removes directories.

    Attributes:
        opened, unopened: the future logs that are open, and the paths of the others.
    """

    def __init__(
        self,
        disk: Disk,
        root_dir: str,
        load: Callable[[Key, str], PartitionLog],
        forget: Callable[[Key], None],
        deleted: DeletedLogs,
    ) -> None:
        self.opened: dict[Key, PartitionLog] = {}
        self.unopened: dict[Key, str] = {}
        self._disk = disk
        self._root_dir = root_dir
        self._load = load
        self._forget = forget
        self._deleted = deleted
        self._paths: dict[Key, str] = {}

    def __repr__(self) -> str:
        return f"<FutureLogs {self._root_dir} {len(self._paths)}>"

    def __contains__(self, key: Key) -> bool:
        return key in self._paths

    def names(self) -> list[Key]:
        return list(self._paths)

    def found(self, name: str) -> bool:
        """Note a name in the directory, if it is that of a future log; return whether it is."""
        key = log_files.parse_future_dir_name(name)
        if key is None or not self._disk.is_dir(f"{self._root_dir}/{name}"):
            return False
        if key in self._paths:
            self._delete(key, f"{self._root_dir}/{name}")
        else:
            self._paths[key] = self.unopened[key] = f"{self._root_dir}/{name}"
        return True

    def get(self, key: Key) -> PartitionLog | None:
        """Return a future log, opened if need be; None if no replica of the partition moves here.

        Raises:
            KafkaStorageError: the disk failed.
        """
        log = self.opened.get(key)
        if log is None and key in self.unopened:
            log = self.opened[key] = self._load(key, self.unopened[key])
            del self.unopened[key]
        return log

    def topic_id_of(self, key: Key) -> Uuid | None:
        """Return the topic id in the directory of a future log."""
        return partition_metadata.read(self._disk, f"{self._paths[key]}/{log_files.PARTITION_METADATA}")

    def create(self, key: Key, topic_id: Uuid, unique: str) -> PartitionLog:
        """Return a new, empty future log.

        Args:
            unique: makes the name of its directory another one than all others.

        Raises:
            OSError, KafkaStorageError: the disk failed.
        """
        assert key not in self._paths, f"{self} has {key}"
        path = f"{self._root_dir}/{log_files.future_dir_name(*key, unique)}"
        self._forget(key)
        self._disk.mkdir(path)
        self._paths[key] = self.unopened[key] = path
        encoded = partition_metadata.encode(topic_id)
        self._disk.write_file_atomic(f"{path}/{log_files.PARTITION_METADATA}", encoded, sync=False)
        log = self.get(key)
        assert log is not None, key
        return log

    def delete(self, key: Key) -> None:
        """Delete a future log, if there is one.

        Raises:
            OSError: the disk failed; the log is closed, and the next start finds it again.
        """
        path = self._paths.pop(key, None)
        self.unopened.pop(key, None)
        log = self.opened.pop(key, None)
        if path is not None:
            try:
                target = self._delete(key, path)
                if log is not None:
                    log.directory_renamed(target)
            finally:
                if log is not None:
                    log.close(clean=False)

    def _delete(self, key: Key, path: str) -> str:
        unique = path.rpartition(".")[2].removesuffix(log_files.FUTURE_DIR_SUFFIX)
        name = log_files.moved_dir_name(*key, unique, log_files.DELETE_DIR_SUFFIX)
        target = f"{self._root_dir}/{name}"
        self._disk.rename(path, target)
        self._deleted.add(target)
        return target

    def move_in(self, key: Key) -> Moved:
        """Give the directory of a future log the plain name; the log is no future log any more.

        Raises:
            OSError, KafkaStorageError: the disk failed; nothing has changed.
        """
        log = self.get(key)
        assert log is not None, key
        topic_id = self.topic_id_of(key)
        path = f"{self._root_dir}/{log_files.partition_dir_name(*key)}"
        self._disk.rename(self._paths[key], path)
        log.directory_renamed(path)
        del self._paths[key], self.opened[key]
        return Moved(log, path, topic_id)
