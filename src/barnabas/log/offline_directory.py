"""A data directory whose disk has failed, in the place of its `LogManager`: it has replicas, and no logs.

- The replicas that were in it when it failed are known by name. If the disk could not be read at the start, none is known: a replica is
  here if the metadata has it in a directory that the broker does not find (`LogDirectories.place`).
- Nothing here touches the disk. The files stay as they are, for the operator and the next start.
- A log that is asked for is a KafkaStorageError.

Source: KIP-112; Kafka's `LogManager.handleLogDirFailure`, `HostedPartition.Offline`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from barnabas.log.disk import DiskUsage
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.log_dir_failure import LogDirFailure
from barnabas.log.offset_checkpoints import Key
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid

__all__ = ["OfflineDirectory"]


class OfflineDirectory:
    """A directory without a disk.

    Args:
        reason: why it is offline, in words.
        names: the replicas in it; None if they are not known.
        id: None if it could not be read.

    Attributes:
        knows_its_replicas: whether names were given.
        failure: says that the disk takes no writes.
        is_cordoned: whether no new replica is to come here (KIP-1066).
    """

    def __init__(self, root_dir: str, reason: str, names: Iterable[Key] | None, id: Uuid | None) -> None:
        self.root_dir = root_dir
        self.reason = reason
        self.id = id
        self.knows_its_replicas = names is not None
        self.failure = LogDirFailure(root_dir)
        self.failure.is_offline = True
        self.is_cordoned = False
        self._names = dict.fromkeys(names or ())

    def __repr__(self) -> str:
        return f"<OfflineDirectory {self.root_dir} replicas={len(self._names)} {self.reason}>"

    @property
    def error(self) -> KafkaStorageError:
        return KafkaStorageError(f"the data directory {self.root_dir} is offline: {self.reason}")

    def names(self) -> list[Key]:
        return list(self._names)

    def __contains__(self, key: Key) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[tuple[Key, PartitionLog]]:
        return iter(())

    def add(self, key: Key) -> None:
        """Note that a replica is here."""
        self._names[key] = None

    def get(self, topic: str, partition: int) -> NoReturn:
        """Raise: the log cannot be read.

        Raises:
            KafkaStorageError: always.
        """
        raise self.error

    def get_or_create(self, topic: str, partition: int, topic_id: Uuid | None, config: LogConfig) -> NoReturn:
        """Raise, as `get`."""
        raise self.error

    def delete(self, topic: str, partition: int) -> None:
        """Forget a replica. Its files stay; a start that finds them again sets them aside."""
        self._names.pop((topic, partition), None)

    def disk_usage(self) -> DiskUsage:
        """Raise: nothing is known of the disk.

        Raises:
            OSError: always.
        """
        raise OSError(self.reason)
