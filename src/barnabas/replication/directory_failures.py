"""One of several data directories fails: the broker goes on without it.

    failed write, sync or checkpoint ──► the directory is offline ──► its replicas have no log ──► the next heartbeat names it
                                                                                                       └──► other leaders

- Each request for such a replica gets KAFKA_STORAGE_ERROR, also while the metadata still has it as the leader. It is neither led nor
  followed, and the broker does not try its disk again: a directory that works again is used by the next start.
- The directory of the metadata log cannot be missed, and neither can the last one: then the broker stops. It stops too if the controller
  does not answer for `log.dir.failure.timeout.ms`: it would keep the leadership of partitions that it cannot serve.
- A directory counts as failed after each failed write that another broker could take, and after each one that room or memory would not
  have helped (`is_of_a_bad_disk`). A leader alone in the ISR on a full disk continues and serves reads.
- A failed read is an answer of KAFKA_STORAGE_ERROR, and no more. In Kafka it takes the directory offline too.

Source: KIP-112, KIP-858; Kafka's `ReplicaManager.handleLogDirFailure`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_manager import LogManager
from barnabas.metadata.directory_ids import MIGRATING, UNASSIGNED
from barnabas.steps import in_background
from barnabas.turns import REPLICA, pace

if TYPE_CHECKING:
    from barnabas.log.log_directories import LogDirectories
    from barnabas.log.offline_directory import OfflineDirectory
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.replication.partition import Partition
    from barnabas.replication.replica_manager import ReplicaManager

__all__ = ["DirectoryFailures"]

logger = logging.getLogger(__name__)


class DirectoryFailures:
    """The failures of a broker's directories.

    Args:
        metadata_dir: the directory of the metadata log.
        tell: sends the next heartbeat soon.
        timeout_ms: `log.dir.failure.timeout.ms`.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        logs: LogDirectories,
        metadata_dir: str,
        tell: Callable[[], None],
        timeout_ms: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._replicas = replicas
        self._logs = logs
        self._metadata_dir = os.path.normpath(metadata_dir)
        self._tell = tell
        self._timeout_ms = timeout_ms
        self._loop = loop
        self._closing: dict[asyncio.Future[None], None] = {}
        # The controller learns of these later: it must know first where the replicas are that were to move there.
        self._unnamed: list[OfflineDirectory] = []
        self._timers: list[asyncio.TimerHandle] = []
        replicas.place, replicas.on_bad_write = self._place, self._write_failed
        for each in logs.online:
            each.failure.on_bad_disk = partial(self._failed_soon, each)

    def __repr__(self) -> str:
        return f"<DirectoryFailures offline={[each.root_dir for each in self._logs.offline]}>"

    @property
    def offline_ids(self) -> list[bytes]:
        """The ids of the directories that are offline, as far as they are known, and the controller may learn of them."""
        return [each.id for each in self._logs.offline if each.id is not None and each not in self._unnamed]

    def _place(self, partition: Partition, registration: PartitionRegistration) -> None:
        """Choose the directory of a replica; the replica is lost if that is offline."""
        position = registration.replicas.index(self._replicas.node_id)
        is_named = position < len(registration.directories)
        assigned = registration.directories[position] if is_named else MIGRATING
        topic, index = partition.topic.name, partition.index
        try:
            self._logs.settle(topic, index, partition.topic.topic_id, assigned)
        except KafkaStorageError as error:
            logger.error("%s is offline until the next start: %s", partition.name, error.message)
            partition.lose_log(error)
            return
        self._logs.place(topic, index, assigned, is_new=assigned == UNASSIGNED)
        offline = self._logs.offline_home(topic, index)
        if self._replicas.moves is not None:
            self._replicas.moves.wake()
        if offline is not None:
            partition.lose_log(offline.error)

    def _write_failed(self, partition: Partition, error: KafkaStorageError) -> None:
        """Take the directory of a replica offline, because it rejected a write."""
        if partition.lost is None:
            directory = self._logs.directory_of(partition.topic.name, partition.index)
            if isinstance(directory, LogManager):
                self._failed_soon(directory, error.message)

    def _failed_soon(self, directory: LogManager, reason: str) -> None:
        # Not in this turn: the caller is in the middle of a write.
        self._loop.call_soon(self._failed, directory, reason)

    def _failed(self, directory: LogManager, reason: str) -> None:
        if directory not in self._logs.online or self._replicas.is_closed:
            return
        root = directory.root_dir
        if os.path.normpath(root) == self._metadata_dir or len(self._logs.online) == 1:
            what = f"{root}, without which this node cannot go on, has failed: {reason}"
            self._replicas.stop_for_disk(KafkaStorageError(what))
        else:
            self._take_offline(directory, reason)

    def _take_offline(self, directory: LogManager, reason: str) -> None:
        offline = self._logs.take_offline(directory, reason)
        logger.error(
            "The data directory %s is offline until the next start, and its %d replicas with it: %s",
            offline.root_dir,
            len(offline.names()),
            reason,
        )
        self._unnamed.append(offline)
        for ending in (self._name(directory, offline), self._end(directory, offline)):
            running = in_background(ending, self._loop)
            self._closing[running] = None
            running.add_done_callback(self._closing.pop)
        self._timers.append(self._loop.call_later(self._timeout_ms / 1000, self._check_is_known, offline))

    async def _name(self, directory: LogManager, offline: OfflineDirectory) -> None:
        if self._replicas.moves is not None:
            await self._replicas.moves.leave(directory)
        self._unnamed.remove(offline)
        self._tell()

    async def _end(self, directory: LogManager, offline: OfflineDirectory) -> None:
        replicas = self._replicas
        for topic, index in offline.names():
            await pace(REPLICA)
            hosted = replicas.topics.get(topic)
            partition = None if hosted is None else hosted.partitions.get(index)
            # A replica that has left meanwhile is in no directory.
            if partition is not None and self._logs.offline_home(topic, index) is offline:
                self._lose(partition, offline)
        try:
            await directory.close(clean=False)
        except OSError as error:
            logger.error("%s: cannot be closed: %s", directory.root_dir, in_words(error))

    def _lose(self, partition: Partition, offline: OfflineDirectory) -> None:
        partition.lose_log(offline.error)
        if self._replicas.replicated_partitions is not None:
            self._replicas.replicated_partitions.gone(partition)
        self._replicas.notify_changed(partition)

    def _check_is_known(self, offline: OfflineDirectory) -> None:
        """Stop this broker if its registration still has a directory that failed long ago."""
        image, node_id = self._replicas.image, self._replicas.node_id
        broker = None if image is None else image.cluster.brokers.get(node_id)
        if broker is not None and offline.id in broker.directories and not self._replicas.is_closed:
            what = f"the controller does not know after {self._timeout_ms} ms that {offline.root_dir} has failed"
            self._replicas.stop_for_disk(KafkaStorageError(f"{what}: {offline.reason}"))

    def close(self) -> None:
        """Wait for nothing any more."""
        for each in self._timers:
            each.cancel()
