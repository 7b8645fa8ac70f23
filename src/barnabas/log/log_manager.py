"""One data directory and the logs in it.

    <root>/.lock                                held while a broker owns the directory
    <root>/meta.properties                      whose directory it is
    <root>/.kafka_cleanshutdown                 the last owner closed everything; its broker epoch, as JSON
    <root>/.barnabas_running                    the epoch of the run that goes on, or went on last; which file on which machine, as JSON
    <root>/recovery-point-offset-checkpoint     up to where each log was flushed
    <root>/log-start-offset-checkpoint          log starts that lie inside a segment
    <root>/replication-offset-checkpoint        high watermarks
    <root>/cleaner-offset-checkpoint            up to where each log was compacted
    <root>/<topic>-<partition>/                 one log each
    <root>/<topic>-<partition>.<id>-delete/     deleted, its files are removed later
    <root>/<topic>-<partition>.<id>-stray/      not assigned to this broker, or of a deleted topic of that name; kept
    <root>/<topic>-<partition>.<id>-future/     a copy of a log that moves here from another directory (`future_logs`)

Opening. After a clean stop the directories are only listed, and each log is opened on first use. After an unclean stop
every log is recovered during the start, so that the marker of a later clean stop holds for all of them. The marker is removed,
durably, before the first log is opened, so that a crash from then on leaves none. If the last owner was killed, and its machine has gone
on since, its logs have all that it wrote: `run_claim`.

Durability of names. Creating a partition syncs nothing, so that a second is enough for thousands. The first flush of
a log syncs its directory and the root; a power cut before that may lose the directory, with nothing in it that was flushed.

Durability of checkpoints. They are written after the syncs that they count. A lost or broken recovery point or high watermark costs
time but no data, so these two files are replaced without a sync while the broker runs. Log starts, which DeleteRecords has promised, and
all files at a clean stop are synced.

The server calls `housekeeping` about once a second. It flushes logs whose flush.ms has passed, applies retention to some logs at a time,
writes the checkpoints, removes deleted files and begins compactions, each at its own interval (`housekeeping`). Work that may block for
long (syncs of logs, removals) runs through `run_blocking`; a worker compacts (`cleaner_worker`).

The quorum's `__cluster_metadata-0` is in the same directory and has another owner; it is neither opened nor listed here.

Source: Kafka's `LogManager`, `CleanShutdownFileHandler`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.log import clean_shutdown_file, log_files, partition_metadata, stray_logs
from barnabas.log.clean_shutdown_file import CLEAN_SHUTDOWN_FILE
from barnabas.log.deleted_logs import DeletedLogs
from barnabas.log.directory_lock import DirectoryLock
from barnabas.log.disk import Disk, DiskUsage
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.future_logs import FutureLogs
from barnabas.log.housekeeping import Housekeeping, Intervals
from barnabas.log.log_cleaner import LogCleaner, inline_worker
from barnabas.log.log_config import LogConfig
from barnabas.log.log_dir_failure import LogDirFailure
from barnabas.log.log_flusher import RunBlocking, run_in_future, run_inline
from barnabas.log.offset_checkpoints import Key, OffsetCheckpoints
from barnabas.log.open_files import OpenFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.log.recovery import Recovery
from barnabas.log.run_claim import RunClaim
from barnabas.protocol.primitives import Uuid
from barnabas.turns import READ, REPLICA, next_turn, pace

if TYPE_CHECKING:
    from barnabas.log.cleanable_log import CleanerConfig
    from barnabas.log.cleaner_worker import CleanerWorker

logger = logging.getLogger(__name__)

CLUSTER_METADATA_TOPIC = "__cluster_metadata"


class LogManager:
    """The logs of one data directory. `open` it before use.

    Attributes:
        had_clean_shutdown: whether the last owner closed everything.
        is_recovered: whether the logs are whole: nothing had to be recovered, or all of them are. A start that is given up may then
            close them cleanly.
        broker_epoch: the epoch that a clean stop writes down. At first the last owner's, if its logs have all that it wrote; else -1.
        claim: whether the logs have all that an owner wrote that was killed.
        failure: whether the disk takes writes.
        is_cordoned: whether no new replica is to come here (KIP-1066).
        ids: of this directory, alone; empty if it has none, or until its owner is known.
        futures: the copies of logs that move here; checkpoints and the end of the run treat them as logs.
    """

    def __init__(
        self,
        disk: Disk,
        root_dir: str,
        *,
        now_ms: Callable[[], int],
        run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]] | None = None,
        config_for: Callable[[str], LogConfig] | None = None,
        retention_check_interval_ms: int = 300_000,
        producer_expiration_check_interval_ms: int = 600_000,
        checkpoint_interval_ms: int = 60_000,
        high_watermark_interval_ms: int = 5_000,
        make_cleaner_worker: Callable[[RunBlocking], CleanerWorker] | None = None,
        cleaner_config: CleanerConfig | None = None,
        open_files: OpenFiles | None = None,
    ) -> None:
        """
        Args:
            run_blocking: runs a function elsewhere and returns its future; None runs it in this turn.
            config_for: a topic's settings, for logs that recovery opens before the broker hosts them.
            checkpoint_interval_ms: between two checkpoints of recovery points and log starts.
            high_watermark_interval_ms: between two checkpoints of high watermarks.
            make_cleaner_worker: called when there is something to compact; None compacts inline.
            open_files: shared with other directories; None for a queue of its own.
        """
        self._disk = disk
        self.root_dir = root_dir
        self._now_ms = now_ms
        self._run_blocking: RunBlocking = run_inline if run_blocking is None else run_in_future(run_blocking)
        self._config_for = config_for or (lambda _: LogConfig())
        self._open_files = OpenFiles(disk.max_open_files()) if open_files is None else open_files
        self._lock = DirectoryLock(disk, root_dir)
        self._logs: dict[Key, PartitionLog] = {}
        self._topic_ids: dict[Key, Uuid | None] = {}
        # Directories that were listed but not opened yet.
        self._unopened: dict[Key, str] = {}
        self._checkpoints = OffsetCheckpoints(disk, root_dir)
        self._deleted = DeletedLogs(disk, now_ms, self._run_blocking)
        self.futures = FutureLogs(disk, root_dir, self._load_future, self._forget_checkpoints, self._deleted)
        self._all_logs: Mapping[Key, PartitionLog] = ChainMap(self._logs, self.futures.opened)
        self._all_unopened: Mapping[Key, str] = ChainMap(self._unopened, self.futures.unopened)
        self._renames = 0
        self._is_closing = False
        self.had_clean_shutdown = False
        self.is_recovered = False
        # Called when retention has deleted segments of a log.
        self.on_retained: Callable[[Key], None] = lambda _: None
        self.failure = LogDirFailure(root_dir)
        self.is_cordoned = False
        self.ids: Sequence[Uuid] = ()
        self.broker_epoch = clean_shutdown_file.UNKNOWN_EPOCH
        self.claim = RunClaim(disk, root_dir, run_blocking)
        self.cleaner = LogCleaner(
            disk,
            root_dir,
            self._logs,
            now_ms=now_ms,
            make_worker=lambda: (make_cleaner_worker or inline_worker(disk))(self._run_blocking),
            config=cleaner_config,
            on_cleaned=self._cleaned,
        )
        self._housekeeping = Housekeeping(
            root_dir,
            self._all_logs,
            self._all_unopened,
            self._checkpoints,
            self.failure,
            self._apply_retention_to,
            Intervals(
                retention_check_interval_ms,
                producer_expiration_check_interval_ms,
                checkpoint_interval_ms,
                high_watermark_interval_ms,
            ),
            now_ms,
        )

    def __repr__(self) -> str:
        return f"<LogManager {self.root_dir} logs={len(self._logs)} unopened={len(self._unopened)}>"

    # Opening

    @property
    def is_locked(self) -> bool:
        """Whether this manager holds the directory's lock."""
        return self._lock.is_locked

    def lock(self) -> None:
        """Lock the directory; errors as in `DirectoryLock.lock`."""
        self._lock.lock()

    async def open(self, on_recovery: Callable[[Recovery], None] | None = None) -> None:
        """Lock the directory, and recover its logs if the last owner did not close them.

        After an error the directory is still locked: the caller must `close` it.

        Args:
            on_recovery: is called before the recovery, and after each log that had to be recovered: how far it is.

        Raises:
            DiskLocked: another broker owns the directory.
            OSError: the directory cannot be created or written.
            KafkaStorageError: the disk failed.
        """
        self.lock()
        self._is_closing = self.is_recovered = False
        try:
            await self._take_over()
            self.is_recovered = self.had_clean_shutdown
            recovery = Recovery(len(self._unopened))
            if on_recovery is not None:
                on_recovery(recovery)
            if not self.had_clean_shutdown:
                await self._recover(recovery, on_recovery)
                self.is_recovered = True
                self.broker_epoch = self.claim.decide(recovery.damaged)
        except OSError as error:
            raise KafkaStorageError(f"cannot open {self.root_dir}: {in_words(error)}") from error
        self._housekeeping.begin()

    async def _take_over(self) -> None:
        """Read the checkpoints, and list the logs."""
        self.had_clean_shutdown = False
        self._checkpoints.load()
        self.cleaner.load()
        for name in self._disk.listdir(self.root_dir):
            await pace(REPLICA)
            path = f"{self.root_dir}/{name}"
            if name.endswith(log_files.DELETE_DIR_SUFFIX):
                self._deleted.add(path)
                continue
            if self.futures.found(name):
                continue
            if name.endswith(".tmp") and not self._disk.is_dir(path):
                self._disk.remove(path)
                continue
            key = log_files.parse_partition_dir_name(name)
            if key is None or key[0] == CLUSTER_METADATA_TOPIC:
                continue
            if self._disk.is_dir(path):
                self._unopened[key] = path
        # At last: a start that ends before it knows all logs must not write their checkpoints, and leaves the directory as it was.
        marker = f"{self.root_dir}/{CLEAN_SHUTDOWN_FILE}"
        if self._disk.exists(marker):
            self.broker_epoch = clean_shutdown_file.decode(self._disk.read_file(marker))
            self._disk.remove(marker)
            self._disk.sync_dir(self.root_dir)
            self.had_clean_shutdown = True

    async def _recover(self, recovery: Recovery, on_recovery: Callable[[Recovery], None] | None) -> None:
        # A topic's settings are the same for all of its partitions, and finding them takes as long as opening a log.
        configs = {topic: self._config_for(topic) for topic in {topic for topic, _ in self._unopened}}
        recovery.damaged += self.claim.missing(
            self._checkpoints.with_records(), self._all_unopened, self._deleted.entries
        )
        for key in list(self._unopened):
            log = self._open_listed(key, configs[key[0]])
            recovery.add(log.recovered)
            if log.recovered.is_damaged or log.log_end_offset < self._checkpoints.of(key).high_watermark:
                recovery.damaged.append(log.name)
            if on_recovery is not None:
                on_recovery(recovery)
            # It may have taken long: a signal may end the start between two logs.
            await next_turn()
        for key in self.futures.names():
            self.futures.get(key)
            await next_turn()

    def _open_listed(self, key: Key, config: LogConfig) -> PartitionLog:
        path = self._unopened[key]
        self._topic_ids[key] = self._topic_id_of(key)
        log = self._logs[key] = self._load(key, path, config, clean=self.had_clean_shutdown)
        del self._unopened[key]
        return log

    def _load_future(self, key: Key, path: str) -> PartitionLog:
        return self._load(key, path, self._config_for(key[0]), clean=self.had_clean_shutdown)

    def _load(self, key: Key, path: str, config: LogConfig, *, clean: bool) -> PartitionLog:
        known = self._checkpoints.of(key)
        log = PartitionLog(
            self._disk,
            path,
            config,
            now_ms=self._now_ms,
            open_files=self._open_files,
            run_blocking=self._run_blocking,
            log_start_offset=known.log_start,
            recovery_point=known.recovery_point,
            high_watermark=known.high_watermark,
            clean=clean,
            cleaned_to=self.cleaner.cleaned_to(key),
            on_sync_failure=self._sync_failed,
        )
        log.on_truncate = lambda offset: self._truncating(key, offset)
        return log

    def _sync_failed(self, reason: str) -> None:
        self.claim.give_up()
        self.failure.is_bad(reason)

    def _truncating(self, key: Key, offset: int) -> None:
        self.cleaner.truncated(key, offset)
        self._checkpoints.lower_recovery_point(key, offset)

    # Logs

    @property
    def directories(self) -> tuple[LogManager, ...]:
        return (self,)

    def directory_of(self, topic: str, partition: int) -> LogManager:
        """Return the directory that has a replica, or will have it: this one."""
        return self

    def names(self) -> list[Key]:
        return [*self._logs, *self._unopened]

    def __contains__(self, key: Key) -> bool:
        return key in self._logs or key in self._unopened

    @property
    def logs(self) -> dict[Key, PartitionLog]:
        """The open logs by topic and partition; the caller must not change them."""
        return self._logs

    def __iter__(self) -> Iterator[tuple[Key, PartitionLog]]:
        return iter(list(self._logs.items()))

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """Return a log, opened if need be; None if it does not exist."""
        key = (topic, partition)
        log = self._logs.get(key)
        if log is None and key in self._unopened:
            log = self._open_listed(key, self._config_for(topic))
        return log

    def is_of(self, topic: str, partition: int, topic_id: Uuid) -> bool:
        """Return whether there is a log of a partition, and its directory belongs to the topic with this id."""
        key = (topic, partition)
        return key in self and self._topic_id_of(key) == topic_id

    def get_or_create(self, topic: str, partition: int, topic_id: Uuid | None, config: LogConfig) -> PartitionLog:
        """Return the log of a partition, opened or created.

        A directory of the same name with another topic id belongs to a deleted topic: it becomes a stray. So does one without an id, of
        which nothing was ever synced: its topic may be deleted too.

        Raises:
            KafkaStorageError: the disk failed.
        """
        key = (topic, partition)
        try:
            log = self._logs.get(key)
            if log is None and key in self._unopened:
                log = self._open_listed(key, config)
            if log is not None:
                known_id = self._topic_ids.get(key)
                if topic_id is None or known_id == topic_id:
                    if log.config != config:
                        log.reconfigure(config)
                    return log
                why = "has lost its topic id" if known_id is None else "belongs to a deleted topic of the same name"
                logger.warning("%s %s; it is renamed to a stray directory", log.directory, why)
                self.set_aside(key)
            return self._create(key, topic_id, config)
        except OSError as error:
            raise KafkaStorageError(f"cannot create {topic}-{partition}: {error.strerror or error}") from error

    def _create(self, key: Key, topic_id: Uuid | None, config: LogConfig) -> PartitionLog:
        path = f"{self.root_dir}/{log_files.partition_dir_name(*key)}"
        self._forget_checkpoints(key)
        self._disk.mkdir(path)
        if topic_id is not None:
            self._write_topic_id(key, path, topic_id)
        log = self._logs[key] = self._load(key, path, config, clean=True)
        return log

    def _write_topic_id(self, key: Key, path: str, topic_id: Uuid) -> None:
        self._disk.write_file_atomic(
            f"{path}/{log_files.PARTITION_METADATA}", partition_metadata.encode(topic_id), sync=False
        )
        self._topic_ids[key] = topic_id

    def _forget_checkpoints(self, key: Key) -> None:
        """Make sure that after a crash the new log does not get offsets of a deleted log of the same name."""
        self.cleaner.removed(key)
        self._checkpoints.forget(key)

    def delete(self, topic: str, partition: int, then: Callable[[], None] = lambda: None) -> None:
        """Delete a log: its directory is renamed now and removed after file.delete.delay.ms.

        Args:
            then: the next step; if it fails, the log stays.

        Raises:
            KafkaStorageError: the disk failed.
        """
        key = (topic, partition)
        if key not in self:
            return
        log = self._logs.get(key)
        delay_ms = log.config.file_delete_delay_ms if log is not None else 0
        try:
            target = self._move_away(key, log_files.DELETE_DIR_SUFFIX, then)
        except OSError as error:
            raise KafkaStorageError(f"cannot delete {topic}-{partition}: {error.strerror or error}") from error
        self._deleted.add(target, delay_ms)

    def take_in(self, key: Key) -> PartitionLog:
        """Return a future log, which is the directory's log of this partition from now on.

        Raises:
            OSError, KafkaStorageError: the disk failed; nothing has changed.
        """
        moved = self.futures.move_in(key)
        self._topic_ids[key] = moved.topic_id
        self._logs[key] = moved.log
        return moved.log

    def new_id(self) -> str:
        """Return what makes the name of a directory another one than all others."""
        self._renames += 1
        return f"{self._now_ms():016x}{self._renames:016x}"

    def _move_away(self, key: Key, suffix: str, then: Callable[[], None] = lambda: None) -> str:
        """Rename a log's directory, and return its new path; reads that have begun can still finish. If `then` fails, rename it back."""
        target = f"{self.root_dir}/{log_files.moved_dir_name(*key, self.new_id(), suffix)}"
        path = f"{self.root_dir}/{log_files.partition_dir_name(*key)}"
        self._disk.rename(path, target)
        try:
            then()
        except (KafkaStorageError, OSError):
            self._disk.rename(target, path)
            raise
        self.cleaner.removed(key)
        log = self._logs.pop(key, None)
        if log is not None:
            log.directory_renamed(target)
            log.close(clean=False)
        self._unopened.pop(key, None)
        self._topic_ids.pop(key, None)
        return target

    def set_aside(self, key: Key) -> str:
        """Make a log a stray; return its new path. OSError if the disk failed."""
        return self._move_away(key, log_files.STRAY_DIR_SUFFIX)

    async def set_strays_aside(self, is_assigned: Callable[[str, int, Uuid | None], bool]) -> list[Key]:
        """Rename the logs that the metadata does not assign to this broker, after a restart; return their keys.

        Raises:
            KafkaStorageError: the disk failed.
        """

        def is_stray(key: Key) -> bool:
            # In between a log may have been deleted, or opened.
            return key in self and not is_assigned(*key, self._topic_id_of(key))

        return await stray_logs.set_aside(self.root_dir, self.names(), is_stray, self.set_aside)

    def _topic_id_of(self, key: Key) -> Uuid | None:
        """Return the topic id in a log's directory, without opening the log."""
        if key in self._logs:
            return self._topic_ids[key]
        return partition_metadata.read(self._disk, f"{self._unopened[key]}/{log_files.PARTITION_METADATA}")

    def disk_usage(self) -> DiskUsage:
        return self._disk.disk_usage(self.root_dir)

    # Housekeeping

    async def housekeeping(self) -> None:
        """Do the work that is due. If a disk fails, write the error to the log and continue with the next partition.

        It ends early if the logs are closed meanwhile.
        """
        await self._housekeeping.do(lambda: self._is_closing, are_logs_removed=self._deleted.is_due())
        if not self._is_closing:
            await self._deleted.remove_due(lambda: self._is_closing)
        if not self._is_closing:
            self.cleaner.poll()

    def apply_retention(self) -> int:
        """Apply retention to every log in one go; return how many segments were deleted."""
        return sum(self._apply_retention_to(key) for key in self.names())

    def _apply_retention_to(self, key: Key) -> int:
        try:
            log = self.get(*key)
            # A log that is being cleaned follows at the end of its cleaning.
            if log is not None and not self.cleaner.is_cleaning(key) and (count := log.apply_retention()):
                self.on_retained(key)
                return count
        except (KafkaStorageError, OSError) as error:
            if not self.failure.is_offline:
                logger.error("%s: cannot apply retention to %s-%d: %s", self.root_dir, *key, in_words(error))
            self.failure.noticed(error, f"cannot apply retention to {key[0]}-{key[1]}")
        return 0

    def _cleaned(self, key: Key) -> None:
        if key in self._logs:
            self._apply_retention_to(key)

    async def checkpoint(self, *, sync: bool = False) -> bool:
        """Write recovery points, log starts and high watermarks; unchanged files are not written.

        Args:
            sync: make all of them durable; log starts always are.

        Returns: False if nothing was written because another write began, or a log was deleted, meanwhile.

        Raises:
            KafkaStorageError, OSError: the disk failed; the old checkpoints stand.
        """
        return await self._checkpoints.write(self._all_logs, self._all_unopened, sync=sync)

    # The end

    async def close(self, *, clean: bool = True) -> None:
        """Close every log and unlock the directory; write the marker of a clean stop if all logs closed cleanly.

        Args:
            clean: False leaves the directory as a crash would.
        """
        self._is_closing = True
        # Housekeeping that waits for its turn must not write when another broker may have the directory.
        self._checkpoints.give_up()
        self.cleaner.close()
        try:
            if await self._close_logs(clean):
                marker = clean_shutdown_file.encode(self.broker_epoch)
                self._disk.write_file_atomic(f"{self.root_dir}/{CLEAN_SHUTDOWN_FILE}", marker)
        except (KafkaStorageError, OSError) as error:
            logger.error("%s: closed, but not marked as clean: %s", self.root_dir, in_words(error))
        for logs in (self._logs, self._unopened, self.futures.opened, self.futures.unopened):
            logs.clear()
        self._lock.release()

    async def _close_logs(self, clean: bool) -> bool:
        """Close every log; if all closed cleanly, write the checkpoints, and return True.

        A log that is opened meanwhile is closed too, and then the checkpoints are written again.
        """
        closed: list[PartitionLog] = []
        is_written = False
        while not is_written or closed != list(self._all_logs.values()):
            closed = list(self._all_logs.values())
            for log in closed:
                await pace(READ)
                clean &= _closes(log, clean)
            is_written = not clean or await self.checkpoint(sync=True)
        return clean


def _closes(log: PartitionLog, clean: bool) -> bool:
    """Close a log; return False if the disk failed."""
    try:
        log.close(clean=clean)
    except (KafkaStorageError, OSError) as error:
        logger.error("%s: closed without flushing: %s", log.directory, in_words(error))
        return False
    return True
