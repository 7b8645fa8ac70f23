"""Several data directories of one broker: a `LogManager` for each, and in which of them a replica's log is.

- A log that exists stays where it is. A new one goes where the metadata says, if the broker has told the controller before; else into the
  directory with the fewest logs, the first of those in the order of `log.dirs`. A cordoned directory gets none, unless all are.
- A log is made on its first use, so a replica may have a place (`place`) long before it has files.
- Each directory has its lock, its checkpoints, its marker of a clean stop and its cleaner. A broker claims to have all that its last run
  wrote only if all directories say so, of the same run: a new disk among them takes the claim away.
- All directories share one limit of open files.
- A log moves from one to another on demand (`moving_logs`).
- A broker with one directory has none of this: its `LogManager` answers the same calls by itself.

A directory whose disk fails goes offline for good (`take_offline`): an `OfflineDirectory` takes the manager's place, with the replicas that
were there. New replicas go into the others. If the disk could not even be read at the start, the metadata says what is in it: each
replica whose directory the broker does not find. While such a directory is missing, no log is made for a replica whose place the
metadata has not said (`place`): it may be there, full of records.

If two of them have a log of one partition, one is of an older topic of that name, or what a move has left. The metadata names the topic by
its id, and the directory; the other log becomes a stray (`settle`).

A broker that has lost a directory claims nothing of this run at its next start, even if the disk is back.

Sources: Kafka's `LogManager.nextLogDirs`, `readBrokerEpochFromCleanShutdownFiles`; KIP-112, KIP-858, KIP-1066.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from barnabas.log.clean_shutdown_file import UNKNOWN_EPOCH
from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_cleaner import CleanerStats, LogCleaner
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.moving_logs import MovingLogs
from barnabas.log.offline_directory import OfflineDirectory
from barnabas.log.offset_checkpoints import Key
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid

__all__ = ["LogDirectories", "Logs"]

logger = logging.getLogger(__name__)

PREFERENCES_MAX = 10_000
"""How many replicas that are not here yet may have a preferred directory; the oldest gives way."""

Directory = LogManager | OfflineDirectory


class LogDirectories:
    """The logs of several directories; each directory must be opened before use.

    Attributes:
        directories: in the order of `log.dirs`.
        ids: of the directories that are online, in the same order; set when their owners are known.
        moving: the logs that move between them.
    """

    def __init__(self, directories: Sequence[LogManager]) -> None:
        self.directories: tuple[Directory, ...] = tuple(directories)
        self.ids: Sequence[Uuid] = ()
        self.cleaner = Cleaners(self)
        self.claim = Claims(self)
        self.moving = MovingLogs(lambda: self.online, self._has_unread, self._note_move)
        self._homes: dict[Key, Directory] = {}
        self._preferred: dict[Key, LogManager] = {}
        # Logs that are in several directories, until `settle`.
        self._doubles: dict[Key, list[LogManager]] = {}
        self._counts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<LogDirectories {' '.join(each.root_dir for each in self.directories)} replicas={len(self._homes)}>"

    # Those that are offline

    @property
    def online(self) -> list[LogManager]:
        return [each for each in self.directories if isinstance(each, LogManager)]

    @property
    def offline(self) -> list[OfflineDirectory]:
        return [each for each in self.directories if isinstance(each, OfflineDirectory)]

    def take_offline(self, directory: LogManager, reason: str, *, are_replicas_known: bool = True) -> OfflineDirectory:
        """Use a directory no longer; the caller closes its manager, without marks of a clean stop.

        Args:
            reason: in words.
            are_replicas_known: False for a directory that could not be read.
        """
        number = self.online.index(directory)
        replicas: dict[Key, None] | None = None
        if are_replicas_known:
            placed = (key for key, home in self._homes.items() if home is directory)
            replicas = dict.fromkeys((*directory.names(), *placed))
        lost = OfflineDirectory(directory.root_dir, reason, replicas, self.ids[number] if self.ids else None)
        if self.ids:
            self.ids = [*self.ids[:number], *self.ids[number + 1 :]]
        self.directories = tuple(lost if each is directory else each for each in self.directories)
        self._homes.update(dict.fromkeys(replicas or (), lost))
        self.moving.promised = {key: each for key, each in self.moving.promised.items() if each is not directory}
        for each in self.online:
            each.claim.give_up()
        return lost

    def offline_home(self, topic: str, index: int) -> OfflineDirectory | None:
        """Return the directory of a replica if it is offline; None for any other replica, also one without a place."""
        home = self._homes.get((topic, index))
        return home if isinstance(home, OfflineDirectory) else None

    # All of them together

    @property
    def is_locked(self) -> bool:
        return all(each.is_locked for each in self.online)

    @property
    def is_recovered(self) -> bool:
        return all(each.is_recovered for each in self.online)

    @property
    def broker_epoch(self) -> int:
        """The epoch on which all directories agree, else -1; also -1 if one is offline."""
        epochs = {each.broker_epoch for each in self.online}
        return epochs.pop() if len(epochs) == 1 and not self.offline else UNKNOWN_EPOCH

    @broker_epoch.setter
    def broker_epoch(self, epoch: int) -> None:
        for each in self.online:
            each.broker_epoch = epoch

    def check(self) -> None:
        """Note, once all directories are open, which logs are in two of them; and decide about the copies of moves.

        Raises:
            KafkaStorageError: the disk of a copy failed.
        """
        found: dict[Key, LogManager] = {}
        for directory in self.online:
            for key in directory.names():
                other = found.setdefault(key, directory)
                if other is not directory:
                    self._doubles.setdefault(key, [other]).append(directory)
        self.moving.check()

    def settle(self, topic: str, index: int, topic_id: Uuid, assigned: bytes) -> None:
        """Make all but one log of a partition strays, if several directories have one.

        Args:
            assigned: the directory that the metadata has for it.

        Raises:
            KafkaStorageError: several are of this topic, and the metadata has none of their directories; or the disk failed.
        """
        key = (topic, index)
        holders = [each for each in self._doubles.get(key, ()) if each in self.online]
        if not holders:
            return
        of_topic = [each for each in holders if each.is_of(topic, index, topic_id)]
        named = [each for each in of_topic if self._id_of(each) == assigned]
        if len(of_topic) > 1 and not named:
            roots = " and in ".join(each.root_dir for each in of_topic)
            raise KafkaStorageError(
                f"{topic}-{index} is in {roots}, and the metadata has it elsewhere (stop, and move the older one away)"
            )
        chosen = next(iter(named or of_topic), None)
        for each in holders:
            if each is not chosen:
                try:
                    path = each.set_aside(key)
                except OSError as error:
                    raise KafkaStorageError(f"cannot set {topic}-{index} aside: {in_words(error)}") from error
                logger.warning("%s is in two directories; this one is set aside and kept: %s", f"{topic}-{index}", path)
        del self._doubles[key]
        self._homes.pop(key, None)
        self._counts.clear()

    def _id_of(self, directory: LogManager) -> Uuid:
        return self.ids[self.online.index(directory)]

    # Where a log is

    def place(self, topic: str, index: int, assigned: bytes, *, is_new: bool = False) -> bytes:
        """Return the id of the directory that has a replica, or will have it; `assigned` if that is offline and its id unknown.

        Args:
            assigned: the directory that the metadata has for it, which may be none of these.
            is_new: the metadata has not named a directory yet, so no log can be in one that is offline.
        """
        wanted = next((d for each, d in zip(self.ids, self.online, strict=True) if each == assigned), None)
        key = (topic, index)
        preferred = self._preferred.pop(key, None)
        if wanted is None and not is_new and key not in self._homes and not self._has(key):
            unread = self._unread(assigned)
            if unread is not None:
                unread.add(key)
                self._homes[key] = unread
        if preferred in self.online and (wanted is None or is_new):
            wanted = preferred
        home = self._home(key, wanted or self._fewest())
        if isinstance(home, OfflineDirectory):
            return home.id or assigned
        promised = self.moving.promised.get(key)
        return self._id_of(promised if promised in self.online else home)

    def prefer(self, topic: str, index: int, directory: LogManager) -> None:
        """Remember where a replica shall go that is not here yet, unless the metadata then says otherwise."""
        self._preferred[topic, index] = directory
        if len(self._preferred) > PREFERENCES_MAX:
            del self._preferred[next(iter(self._preferred))]

    def _note_move(self, key: Key, home: LogManager) -> None:
        """Note that a log is in another directory now."""
        self._homes[key] = home
        self._counts.clear()

    def _has_unread(self, key: Key) -> bool:
        """Return whether a replica without a log here may have it in a directory that cannot be read; note that it is there."""
        unread = self._unread()
        if unread is not None:
            unread.add(key)
            self._homes[key] = unread
        return unread is not None

    def directory_of(self, topic: str, index: int) -> Directory:
        """Return the directory that has a replica, or will have it."""
        return self._home((topic, index))

    def _has(self, key: Key) -> bool:
        return any(key in each for each in self.online)

    def _unread(self, assigned: bytes | None = None) -> OfflineDirectory | None:
        """Return an offline directory that may hold replicas the broker has not read, or None.

        Args:
            assigned: it has this id, or its id is not known; None for any.
        """
        unread = [each for each in self.offline if not each.knows_its_replicas]
        if assigned is not None:
            unread = sorted((each for each in unread if each.id in (None, assigned)), key=lambda each: each.id is None)
        return unread[0] if unread else None

    def _home(self, key: Key, wanted: LogManager | None = None) -> Directory:
        """Return where a replica is or will be; in an unread directory until its place is known."""
        holder: Directory | None = next((each for each in self.online if key in each), None)
        home = holder or self._homes.get(key) or wanted
        if home is None:
            home = self._unread() or self._fewest()
            if isinstance(home, OfflineDirectory):
                return home
        if self._homes.get(key) is not home:
            self._left(key)
            if holder is None:
                self._count(home, 1)
            self._homes[key] = home
        return home

    def _fewest(self) -> LogManager:
        offered = [each for each in self.online if not each.is_cordoned]
        return min(offered or self.online[:1], key=lambda each: self._count(each, 0))

    def _count(self, directory: Directory, more: int) -> int:
        """Change how many logs a directory has, with those that have only a place yet; return it."""
        root = directory.root_dir
        known = self._counts.get(root)
        if known is None:
            placed = (key for key, home in self._homes.items() if home is directory)
            known = len({*directory.names(), *placed})
        self._counts[root] = known + more
        return known + more

    def _left(self, key: Key) -> None:
        home = self._homes.pop(key, None)
        if home is not None:
            self._count(home, -1)

    # Logs

    def __iter__(self) -> Iterator[tuple[Key, PartitionLog]]:
        return iter([each for directory in self.directories for each in directory])

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """Return a log, opened if need be; None if it does not exist.

        Raises:
            KafkaStorageError: the disk failed, or the log is, or may be, in a directory that is offline.
        """
        key = (topic, partition)
        online = next((each for each in self.online if key in each), None)
        if online is not None:
            return online.get(topic, partition)
        home = self._homes.get(key) or self._unread()
        return home.get(topic, partition) if isinstance(home, OfflineDirectory) else None

    def is_of(self, topic: str, partition: int, topic_id: Uuid) -> bool:
        """Return whether there is a log of a partition, and its directory belongs to the topic with this id."""
        return any(each.is_of(topic, partition, topic_id) for each in self.online)

    def get_or_create(self, topic: str, partition: int, topic_id: Uuid | None, config: LogConfig) -> PartitionLog:
        """Return the log of a partition, opened or created in its place; errors as in `LogManager`."""
        return self._home((topic, partition)).get_or_create(topic, partition, topic_id, config)

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log and forget its place; errors as in `LogManager`."""
        self._left((topic, partition))
        self.moving.give_up((topic, partition))
        for each in self.directories:
            each.delete(topic, partition)

    async def set_strays_aside(self, is_assigned: Callable[[str, int, Uuid | None], bool]) -> list[Key]:
        """Rename the logs that the metadata does not assign to this broker; return their keys, errors as in `LogManager`."""
        strays = [key for each in self.online for key in await each.set_strays_aside(is_assigned)]
        self._counts.clear()
        return strays

    async def housekeeping(self) -> None:
        """Do the work that is due in each directory."""
        for each in self.online:
            await each.housekeeping()

    async def close(self, *, clean: bool = True) -> None:
        """Close and unlock all directories that are online; see `LogManager.close`."""
        for each in self.online:
            await each.close(clean=clean)


Logs = LogManager | LogDirectories
"""The logs of a broker, in one directory or in several."""


class Cleaners:
    """The cleaners of all directories, as one for settings and metrics."""

    def __init__(self, logs: LogDirectories) -> None:
        self._logs = logs

    def __repr__(self) -> str:
        return f"<Cleaners {len(self._each)}>"

    @property
    def _each(self) -> list[LogCleaner]:
        return [each.cleaner for each in self._logs.online]

    @property
    def config(self) -> CleanerConfig:
        return self._each[0].config

    @config.setter
    def config(self, config: CleanerConfig) -> None:
        for each in self._each:
            each.config = config

    @property
    def stats(self) -> CleanerStats:
        """Sums, maxima, and the newest last cleaning."""
        parts = [each.stats for each in self._each]
        stats = CleanerStats(min(part.last_run_ms for part in parts))
        stats.last = max(
            (part.last for part in parts if part.last), key=lambda last: last.elapsed_seconds, default=None
        )
        for name in ("cleanings", "cancelled", "failed", "bytes_read", "bytes_written"):
            setattr(stats, name, sum(getattr(part, name) for part in parts))
        stats.dirtiest_ratio = max(part.dirtiest_ratio for part in parts)
        stats.max_compaction_delay_ms = max(part.max_compaction_delay_ms for part in parts)
        return stats

    @property
    def worker_deaths(self) -> int:
        return sum(each.worker_deaths for each in self._each)

    @property
    def uncleanable(self) -> frozenset[Key]:
        return frozenset().union(*(each.uncleanable for each in self._each))

    def close(self) -> None:
        for each in self._each:
            each.close()


class Claims:
    """The claims of all directories about the last run."""

    def __init__(self, logs: LogDirectories) -> None:
        self._logs = logs

    def __repr__(self) -> str:
        return f"<Claims of {self._logs!r}>"

    async def prepare(self, broker_epoch: int) -> None:
        """Write the file of this run into each directory."""
        for each in self._logs.online:
            await each.claim.prepare(broker_epoch)
