"""The data directory of a node that starts: looked at first, formatted late, and as it was before if the start fails.

    check     before anything is written: is it a directory, this node's, Kafka's, or somebody else's?
    lock      no other broker may use it
    open      under the lock: recover the logs; read the identity, or format the directory
    undo      after a start that failed: remove what this start has made, unless the directory was formatted before

- A directory without `meta.properties` is formatted only if it holds nothing but traces of an interrupted formatting, or of a
  file system. A new cluster would delete partitions that it does not know, and other files do not belong to a broker.
- A node that is part of a cluster (`BrokerConfig.is_alone` is false) formats only a directory whose cluster it was told. It would
  found a second cluster otherwise, and a voter of a quorum that can change would take itself for the only one.
- A directory may change between `check` and the lock: `open` reads the identity again.
"""

from __future__ import annotations

import contextlib
import random as random_module
from collections.abc import Callable

from barnabas.config.cannot_start import CannotStart, remedies
from barnabas.config.config import BrokerConfig
from barnabas.directory.clock_check import last_written_ms, set_back
from barnabas.directory.start_report import RecoveryReport, say_start, say_what_is_left, warn_of_the_clock
from barnabas.directory.storage import format_directory
from barnabas.log import log_files, meta_properties
from barnabas.log.clean_shutdown_file import CLEAN_SHUTDOWN_FILE
from barnabas.log.directory_lock import LOCK_FILE, DirectoryLock
from barnabas.log.disk import Disk, DiskLocked, parent_dir
from barnabas.log.errors import KafkaStorageError, in_words, is_of_a_bad_disk
from barnabas.log.log_manager import LogManager
from barnabas.log.meta_properties import META_PROPERTIES, InvalidMetaProperties, MetaProperties
from barnabas.log.recovery import Recovery
from barnabas.metadata.bootstrap import BOOTSTRAP_CHECKPOINT
from barnabas.quorum.metadata_log import DIRECTORY, QUORUM_STATE
from barnabas.words.printable import printable

__all__ = ["DataDirectory", "UnreadableDirectory", "check_is_free"]

CLUSTER_PROPERTIES = "cluster.properties"
"""The folder of a cluster on this machine has it."""

SECURE_DEV = "secure-dev"
"""The folder of `barnabas start --secure-dev` in its directory, which then has `CLIENT_PROPERTIES` too."""
CLIENT_PROPERTIES = "client.properties"

# `lost+found` is in the root of a new file system; file browsers and version control leave the others.
_OF_NOBODY = frozenset({"lost+found", ".DS_Store", ".gitkeep"})
_OF_A_BROKER = frozenset({META_PROPERTIES, BOOTSTRAP_CHECKPOINT, DIRECTORY, LOCK_FILE, CLEAN_SHUTDOWN_FILE})
_CHECKPOINT = "-offset-checkpoint"
_NAMES_SHOWN = 3


def check_is_free(disk: Disk, root: str, remedy: str) -> None:
    """Check that a directory without `meta.properties` may be formatted.

    Raises:
        CannotStart: it is a file, or holds partitions or other people's files.
        OSError: it cannot be read.
    """
    if not disk.exists(root):
        return
    if not disk.is_dir(root):
        raise CannotStart(f"{root} is a file, not a directory ({remedy})")
    foreign = [name for name in disk.listdir(root) if not _may_be_formatted(name)]
    if CLUSTER_PROPERTIES in foreign:
        raise CannotStart(f"{root} holds a cluster on this machine (`barnabas start --nodes N` starts it, or {remedy})")
    partitions = [name for name in foreign if _is_partition(disk, root, name)]
    if partitions:
        raise CannotStart(
            f"{root} holds partitions ({_listed(partitions)}) but no {META_PROPERTIES}, which names their cluster"
            f" (restore that file, or {remedy})"
        )
    if foreign:
        raise CannotStart(f"{root} holds files that are not a broker's: {_listed(foreign)} ({remedy})")


def _may_be_formatted(name: str) -> bool:
    plain = name.removesuffix(".tmp")
    is_ours = plain in _OF_A_BROKER or plain in (SECURE_DEV, CLIENT_PROPERTIES)
    return name in _OF_NOBODY or is_ours or plain.endswith(_CHECKPOINT)


def _is_partition(disk: Disk, root: str, name: str) -> bool:
    path = f"{root}/{name}"
    return (
        log_files.parse_partition_dir_name(name) is not None
        and disk.is_dir(path)
        and any(log_files.parse_file_name(file) for file in disk.listdir(path))
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


class UnreadableDirectory(CannotStart):
    """The disk of a directory has failed; a node with several may start without it.

    Attributes:
        reason: without the remedy.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class DataDirectory:
    """One start's view of its directory.

    Args:
        root: one of `log.dirs`, or `metadata.log.dir`; None for the first of `log.dirs`.

    Attributes:
        has_metadata: whether the metadata log is in this directory.
        meta: the directory's identity; None before it is formatted.
        was_formatted: whether it had an identity before this start.
        was_used: whether a node has run here before. Noted when the identity is read, because a node of a cluster joins its quorum,
            and leaves the traces of a run, before its logs are recovered.
    """

    def __init__(self, disk: Disk, config: BrokerConfig, root: str | None = None, *, has_metadata: bool = True) -> None:
        self.root = config.log_dirs[0] if root is None else root
        self.has_metadata = has_metadata
        self.meta: MetaProperties | None = None
        self.was_formatted = False
        self.was_used = False
        self._disk = disk
        self._config = config
        self._remedy = remedies(config.embedded).other_directory
        self._clock_doubt = ""
        # The directories that this start makes, innermost first.
        self._missing: list[str] = []

    def __repr__(self) -> str:
        return f"<DataDirectory {self.root} {self.meta!r}>"

    def check(self) -> None:
        """Look at the directory without changing anything.

        Raises:
            UnreadableDirectory: the disk failed.
            CannotStart: it is not this node's, or must not be formatted.
        """
        try:
            self._check()
        except OSError as error:
            raise self._refused(error) from None

    def _check(self) -> None:
        path = self.root
        while not self._disk.exists(path):
            self._missing.append(path)
            path = parent_dir(path)
        self._read()
        if self.meta is None:
            self._check_may_be_formatted()

    def _check_may_be_formatted(self) -> None:
        check_is_free(self._disk, self.root, self._remedy)
        config = self._config
        command = "`barnabas storage format -t CLUSTER-ID -c FILE`"
        if len(config.all_dirs) > 1:
            raise CannotStart(
                f"{self.root} is not formatted: mount its disk if it has one; else `barnabas storage format -t CLUSTER-ID -c FILE`"
                " formats several directories, with --ignore-formatted a new one beside those that are formatted"
            )
        if config.is_controller and not config.is_alone and not config.quorum_voters:
            raise CannotStart(
                f"{self.root} is not formatted: {command} with --no-initial-controllers formats it for a quorum that exists, "
                "with --standalone or --initial-controllers for a new one (`barnabas cluster info` shows the id of a cluster that runs)"
            )
        if not config.is_alone and config.cluster_id is None:
            raise CannotStart(
                f"{self.root} is not formatted, and this node is not alone: {command} formats it"
                " (`barnabas cluster info` shows the id of a cluster that runs)"
            )

    def lock(self, lock: LogManager | DirectoryLock) -> None:
        """Take the directory's lock; create the directory if it is missing.

        Raises:
            CannotStart: another broker has it, or the disk does not take the lock's file.
        """
        try:
            lock.lock()
        except DiskLocked:
            raise CannotStart(
                f"{self.root} is in use by another broker (stop that broker, or {self._remedy})"
            ) from None
        except OSError as error:
            raise self._refused(error) from None

    def open(self, lock: LogManager | DirectoryLock, random: random_module.Random, now_ms: int) -> MetaProperties:
        """Return the directory's identity; format the directory first if it has none.

        Raises:
            CannotStart: it is not this node's, must not be formatted, or the disk failed.
        """
        self.lock(lock)
        try:
            if self.has_metadata:  # One directory of a node is enough, and this one is written to all the time.
                # Now, because a node of a cluster joins its quorum before its logs are recovered.
                self._clock_doubt = set_back(self.root, last_written_ms(self._disk, self.root), now_ms)
            return self._claim(random, now_ms)
        except (KafkaStorageError, OSError) as error:
            raise self._refused(error) from None

    async def recover(self, log_manager: LogManager | None, monotonic_ns: Callable[[], int]) -> None:
        """Recover the logs; without a manager there are none, only the metadata log.

        Raises:
            CannotStart: the disk failed.
        """
        if log_manager is None:
            self._say_start(Recovery(), was_clean=True)
            return
        try:
            await self._recover(log_manager, monotonic_ns)
        except (KafkaStorageError, OSError) as error:
            raise self._refused(error) from None
        if not self.was_formatted:
            self._say_start(Recovery(), was_clean=True)

    async def _recover(self, log_manager: LogManager, monotonic_ns: Callable[[], int]) -> None:
        report = RecoveryReport(monotonic_ns)

        def recovered(recovery: Recovery) -> None:
            if recovery.done:
                report.add(recovery)
            elif self.was_formatted:
                self._say_start(recovery, was_clean=log_manager.had_clean_shutdown)

        await log_manager.open(recovered)
        report.end()
        if report.has_recovered:
            say_what_is_left(log_manager.claim.doubt)

    def _say_start(self, recovery: Recovery, *, was_clean: bool) -> None:
        assert self.meta is not None, self
        was_formatted, was_used = self.was_formatted, self.was_used
        say_start(self.meta, self.root, recovery, was_formatted=was_formatted, was_used=was_used, was_clean=was_clean)
        warn_of_the_clock(self._clock_doubt)

    def _claim(self, random: random_module.Random, now_ms: int) -> MetaProperties:
        self._read()
        if self.meta is None:
            self._check_may_be_formatted()
            config = self._config
            self.meta = format_directory(
                self._disk,
                self.root,
                config.cluster_id,
                config.node_id,
                config,
                random,
                now_ms=now_ms,
                standalone=config.is_alone,
            )
        return self.meta

    def undo(self, *, is_locked: bool) -> None:
        """Remove what this start has made; a failing disk keeps it.

        Args:
            is_locked: whether this start holds the lock. Without it the files may be another broker's.
        """
        disk, root = self._disk, self.root
        if self.was_formatted:
            return
        with contextlib.suppress(OSError):
            if is_locked:
                # The identity first: without it the rest counts as an interrupted formatting.
                for name in (META_PROPERTIES, BOOTSTRAP_CHECKPOINT, LOCK_FILE):
                    for path in (f"{root}/{name}", f"{root}/{name}.tmp"):
                        if disk.exists(path):
                            disk.remove(path)
                if disk.is_dir(f"{root}/{DIRECTORY}"):
                    disk.rmtree(f"{root}/{DIRECTORY}")
            for path in self._missing:
                if disk.is_dir(path) and not disk.listdir(path):
                    disk.rmtree(path)

    def _refused(self, error: OSError | KafkaStorageError) -> CannotStart:
        message = error.message if isinstance(error, KafkaStorageError) else self._remedied(error)
        if is_of_a_bad_disk(error):
            return UnreadableDirectory(message, in_words(error))
        return CannotStart(message)

    def _remedied(self, error: OSError) -> str:
        where = f"{error.filename}: " if error.filename and error.filename != self.root else ""
        return f"cannot use the data directory {self.root}: {where}{error.strerror or error} ({self._remedy})"

    def _read(self) -> None:
        """Read the identity, and compare it with the settings."""
        root, config = self.root, self._config
        try:
            with contextlib.suppress(FileNotFoundError):
                self._disk.listdir(
                    root
                )  # A disk that is gone shows it here; whether a file is there it answers with no.
            meta = meta_properties.read(self._disk, root)
        except NotADirectoryError:
            meta = None
        except InvalidMetaProperties as error:
            raise CannotStart(f"{root}: {error}") from None
        if meta is None:
            return
        is_first_look = self.meta is None
        self.meta, self.was_formatted = meta, True
        if self.has_metadata:
            self.was_used = self._disk.exists(f"{root}/{DIRECTORY}/{QUORUM_STATE}")
        elif is_first_look:
            self.was_used = self._disk.exists(f"{root}/{LOCK_FILE}")
        if config.cluster_id not in (None, meta.cluster_id):
            raise CannotStart(
                f"{root} belongs to cluster {meta.cluster_id}, not to {config.cluster_id}"
                f" (remove cluster.id, or {self._remedy})"
            )
        if meta.node_id != config.node_id:
            raise CannotStart(
                f"{root} belongs to node {meta.node_id}, not to {config.node_id}"
                f" (set node.id={meta.node_id}, or {self._remedy})"
            )
