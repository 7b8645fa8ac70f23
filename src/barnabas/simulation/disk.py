"""A disk in memory that behaves as badly as a real one may: the simulated twin of `barnabas.log.disk.OsDisk`.

What it forgets. Every file remembers what was synced and which writes and truncations came after. `crash()` (the power goes) keeps,
per file, nothing, all, a prefix, or an arbitrary selection of them and of their sectors, and may tear the last one it keeps. Created,
removed and renamed names are forgotten the same way: per directory, everything after some point since its last `sync_dir`. `kill()`
(the process goes) keeps everything that was written, except that the very last write may be torn. Both end every open handle and
every lock.

What it refuses. `capacity` bytes fill it up: a write takes what fits, and fails when nothing does. `short_write_rate` cuts writes,
`error_rate` fails calls with EIO. `fail_call(n)` fails exactly the n-th call from now; `on_call` may fail any call by name and path.

How long it takes. `duration` returns how many seconds a call blocks its caller, 0 by default. The disk has no clock and only adds the
seconds up. The node's loop or executor calls `take_seconds`, and lets that much virtual time pass.

All chance comes from the seed. `copy()` gives an independent disk in the same state, so that a test can try many endings of one story.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from functools import partial

from barnabas.log.disk import Buffer, DiskLocked, DiskUsage, parent_dir
from barnabas.log.file_identity import FileIdentity

MUTATIONS = frozenset({"pwrite", "truncate", "sync", "mkdir", "remove", "rename", "sync_dir", "write", "create"})

# The unit that a disk writes or loses. Smaller than real ones, as the records of the tests are smaller than real ones too.
SECTOR = 64


class _File:
    """One file: what it holds, what is safe, and what happened in between."""

    __slots__ = ("content", "durable", "modified_ms", "number", "pending")

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.content = bytearray()
        self.durable = b""
        # (offset, bytes) for a write, (size, None) for a truncation.
        self.pending: list[tuple[int, bytes | None]] = []
        self.modified_ms = 0

    def copy(self) -> _File:
        twin = _File(self.number)
        twin.content = bytearray(self.content)
        twin.durable = self.durable
        twin.pending = list(self.pending)
        twin.modified_ms = self.modified_ms
        return twin

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.pending.clear()


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        if len(content) > offset:
            del content[offset:]
        else:
            content.extend(bytes(offset - len(content)))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class SimFile:
    """An open handle; it dies with its process."""

    __slots__ = ("_closed", "_disk", "_file", "_generation", "path")

    def __init__(self, disk: SimDisk, file: _File, path: str) -> None:
        self._disk = disk
        self._file = file
        self._generation = disk.generation
        self._closed = False
        self.path = path
        disk.open_handles += 1

    def _check(self, call: str) -> _File:
        if self._closed or self._generation != self._disk.generation:
            raise OSError(errno.EBADF, "the handle is closed", self.path)
        self._disk.called(call, self.path)
        return self._file

    def pread(self, size: int, offset: int) -> bytes:
        return bytes(self._check("pread").content[offset : offset + size])

    def pwrite(self, data: Buffer, offset: int) -> int:
        file = self._check("pwrite")
        taken = self._disk.room_for(file, bytes(data), offset, self.path)
        end = self._disk.end_in_write() if self._disk.end_in_write is not None else None
        if end is not None:
            taken = taken[: self._disk.random.randint(0, len(taken))]
        self._disk.write(file, taken, offset)
        if end is not None:
            raise end
        return len(taken)

    def truncate(self, size: int) -> None:
        file = self._check("truncate")
        _apply(file.content, size, None)
        file.pending.append((size, None))
        self._disk.last_write = None

    def sync(self) -> None:
        self._check("sync").sync()

    def size(self) -> int:
        return len(self._check("size").content)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._generation == self._disk.generation:
                self._disk.open_handles -= 1

    def fileno(self) -> int:
        return -1


class SimLock:
    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._generation = disk.generation

    def release(self) -> None:
        if self._generation == self._disk.generation:
            self._disk.locks.discard(self._path)


class SimDisk:
    """A file system in memory."""

    def __init__(
        self,
        seed: int = 0,
        *,
        capacity: int | None = None,
        short_write_rate: float = 0.0,
        error_rate: float = 0.0,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.random = random.Random(seed)
        self.capacity = capacity
        self.short_write_rate = short_write_rate
        self.error_rate = error_rate
        self.now_ms = now_ms
        self.on_call: Callable[[str, str], OSError | None] | None = None
        self.on_failure: Callable[[str, str], None] = lambda call, path: None
        self.duration: Callable[[str, str], float] | None = None
        self.seconds_spent = 0.0
        # Called at every write. What it returns is raised when a part of the write is done: the process ends in the middle of the write.
        self.end_in_write: Callable[[], BaseException | None] | None = None
        self.generation = 0
        # How often the power went, whose disk it is, and how many files it has had: what the identity of a file is made of.
        self.boots = 0
        self.copies = 0
        self._created = 0
        self.open_handles = 0
        self.calls = 0
        self.locks: set[str] = set()
        self.last_write: tuple[_File, int, int] | None = None
        self._files: dict[str, _File] = {}
        self._dirs: dict[str, None] = {"/": None, ".": None}
        # Per directory: how to undo each change of names since its last sync, oldest first.
        self._unsynced_names: dict[str, list[Callable[[], object]]] = {}
        self._fail_at: int | None = None

    def __repr__(self) -> str:
        return f"<SimDisk files={len(self._files)} bytes={self.used}>"

    # For tests

    @property
    def used(self) -> int:
        return sum(len(file.content) for file in self._files.values())

    def paths(self) -> list[str]:
        """Every file's path, sorted."""
        return sorted(self._files)

    def contents(self, path: str) -> bytes:
        """A file's bytes, without counting as a call."""
        return bytes(self._files[path].content)

    def put(self, path: str, data: bytes) -> None:
        """Sets a file's bytes as if they had been synced, without counting as a call."""
        file = self._files.setdefault(path, _File())
        file.content = bytearray(data)
        file.sync()
        self._dirs.setdefault(parent_dir(path), None)

    def copy(self, seed: int | None = None) -> SimDisk:
        """An independent disk in the same state, with no open handle, lock or planned fault."""
        twin = SimDisk(0, capacity=self.capacity, now_ms=self.now_ms)
        twin.boots, twin.copies, twin._created = self.boots, self.copies + 1, self._created
        twin.random.setstate(self.random.getstate())
        if seed is not None:
            twin.random.seed(seed)
        twin.hold({path: file.copy() for path, file in self._files.items()}, self._dirs)
        return twin

    def hold(self, files: dict[str, _File], dirs: dict[str, None]) -> None:
        """Hold these files and folders, and no others."""
        self._files, self._dirs = files, dict(dirs)

    def fail_call(self, number: int) -> None:
        """Fails the given call from now on (1 is the next) with EIO, once."""
        self._fail_at = self.calls + number

    def fail_no_call(self) -> bool:
        """Take back what `fail_call` planned; return whether it had not happened yet."""
        planned, self._fail_at = self._fail_at is not None, None
        return planned

    def put_through(self, path: str, data: bytes, offset: int) -> None:
        """Write into a file that is there, without syncing it: what a call has done that then fails."""
        self.write(self._files[path], data, offset)

    def called(self, call: str, path: str) -> None:
        """Counts a call, and fails it if the plan or the dice say so."""
        self.calls += 1
        if self.duration is not None:
            self.seconds_spent += self.duration(call, path)
        if self._fail_at is not None and self.calls >= self._fail_at:
            self._fail_at = None
            raise self._failure(call, path)
        if self.on_call is not None:
            error = self.on_call(call, path)
            if error is not None:
                raise error
        if self.error_rate and call in MUTATIONS and self.random.random() < self.error_rate:
            raise self._failure(call, path)

    def _failure(self, call: str, path: str) -> OSError:
        self.on_failure(call, path)
        return OSError(errno.EIO, "simulated failure", path)

    def take_seconds(self) -> float:
        """Return how long the calls since the last time took."""
        seconds, self.seconds_spent = self.seconds_spent, 0.0
        return seconds

    def room_for(self, file: _File, data: bytes, offset: int, path: str) -> bytes:
        """The part of a write that the disk takes."""
        taken = data
        if self.capacity is not None:
            growth = offset + len(data) - len(file.content)
            free = self.capacity - self.used
            if growth > free:
                taken = data[: max(len(data) - (growth - free), 0)]
                if not taken and data:
                    raise OSError(errno.ENOSPC, "No space left on device", path)
        if self.short_write_rate and len(taken) > 1 and self.random.random() < self.short_write_rate:
            taken = taken[: self.random.randrange(1, len(taken))]
        return taken

    def write(self, file: _File, data: bytes, offset: int) -> None:
        _apply(file.content, offset, data)
        file.pending.append((offset, data))
        file.modified_ms = self.now_ms()
        self.last_write = (file, offset, len(data))

    # The ends of a process

    def kill(self) -> None:
        """The process dies: what it wrote stays, the last write possibly torn."""
        if self.last_write is not None and self.random.random() < 0.5:
            file, offset, size = self.last_write
            if len(file.content) == offset + size and size:
                keep = offset + self.random.randrange(size)
                _apply(file.content, keep, None)
                file.pending.append((keep, None))
        self._end_of_process()

    def write_back(self) -> None:
        """The system has written its page cache to the device: a power cut loses nothing of it."""
        self._unsynced_names.clear()
        for file in self._files.values():
            file.sync()

    def crash(self) -> None:
        """The power goes: unsynced writes and names are lost, kept or torn as the dice say."""
        for directory in sorted(self._unsynced_names):
            undo = self._unsynced_names[directory]
            keep = self.random.randint(0, len(undo))
            for step in reversed(undo[keep:]):
                step()
        self._unsynced_names.clear()
        self.boots += 1
        for path in sorted(self._files):
            self._forget(self._files[path])
        self._end_of_process()

    def _forget(self, file: _File) -> None:
        dice = self.random
        pending = file.pending
        how = dice.choice(("none", "all", "prefix", "prefix", "some"))
        if how == "none":
            kept = []
        elif how == "all":
            kept = pending
        elif how == "prefix":
            kept = pending[: dice.randint(0, len(pending))]
        else:
            kept = [change for change in pending if dice.random() < 0.5]
        content = bytearray(file.durable)
        for index, (offset, data) in enumerate(kept):
            if data and index == len(kept) - 1 and dice.random() < 0.5:
                data = data[: dice.randrange(len(data))]
            if data and how == "some" and dice.random() < 0.3:
                for start in range(0, len(data), SECTOR):
                    if dice.random() < 0.5:
                        _apply(content, offset + start, data[start : start + SECTOR])
                continue
            _apply(content, offset, data)
        file.content = content
        file.sync()

    def _end_of_process(self) -> None:
        self.generation += 1
        self.open_handles = 0
        self.locks.clear()
        self.last_write = None

    # Disk

    def _named(self, path: str, undo: Callable[[], object]) -> None:
        self._unsynced_names.setdefault(parent_dir(path), []).append(undo)

    def _file(self, path: str) -> _File:
        file = self._files.get(path)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return file

    def _check_dir(self, path: str) -> None:
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self.called("open", path)
        if path not in self._files and create:
            self._create(path)
        return SimFile(self, self._file(path), path)

    def _create(self, path: str) -> _File:
        self.called("create", path)
        self._check_dir(parent_dir(path))
        self._created += 1
        file = self._files[path] = _File(self._created)
        file.modified_ms = self.now_ms()
        self._named(path, lambda: self._undo_create(path, file))
        return file

    def _undo_create(self, path: str, file: _File) -> None:
        if self._files.get(path) is file:
            del self._files[path]

    def exists(self, path: str) -> bool:
        self.called("exists", path)
        return path in self._files or path in self._dirs

    def is_dir(self, path: str) -> bool:
        self.called("is_dir", path)
        return path in self._dirs

    def listdir(self, path: str) -> list[str]:
        self.called("listdir", path)
        self._check_dir(path)
        prefix = path.rstrip("/") + "/"
        names = [name for name in (*self._files, *self._dirs) if name.startswith(prefix) and name != prefix]
        return sorted({name[len(prefix) :].split("/", 1)[0]: None for name in names})

    def mkdir(self, path: str) -> None:
        self.called("mkdir", path)
        while path not in self._dirs:
            self._dirs[path] = None
            self._named(path, partial(self._drop_tree, path))
            path = parent_dir(path)

    def _drop_tree(self, path: str) -> list[str]:
        """Drop a directory with all that is below it; return the directories."""
        prefix = path + "/"
        for name in [name for name in self._files if name.startswith(prefix)]:
            del self._files[name]
        dropped = [name for name in self._dirs if name == path or name.startswith(prefix)]
        for name in dropped:
            del self._dirs[name]
        return dropped

    def remove(self, path: str) -> None:
        self.called("remove", path)
        file = self._file(path)
        del self._files[path]
        self._named(path, lambda: self._undo_remove(path, file))

    def _undo_remove(self, path: str, file: _File) -> None:
        if parent_dir(path) in self._dirs:
            self._files[path] = file

    def rmtree(self, path: str) -> None:
        self.called("remove", path)
        self._check_dir(path)
        for name in self._drop_tree(path):
            self._unsynced_names.pop(name, None)

    def rename(self, source: str, target: str) -> None:
        self.called("rename", source)
        if source in self._dirs:
            self._rename_dir(source, target)
            self._named(target, lambda: self._rename_dir(target, source))
            return
        file = self._file(source)
        replaced = self._files.get(target)
        del self._files[source]
        self._files[target] = file
        self._named(target, lambda: self._undo_rename(source, target, file, replaced))

    def _undo_rename(self, source: str, target: str, file: _File, replaced: _File | None) -> None:
        if self._files.get(target) is file:
            del self._files[target]
            self._files[source] = file
            if replaced is not None:
                self._files[target] = replaced

    def _rename_dir(self, source: str, target: str) -> None:
        if source not in self._dirs or target in self._dirs:
            return
        prefix = source + "/"
        for name in [name for name in self._files if name.startswith(prefix)]:
            self._files[target + name[len(source) :]] = self._files.pop(name)
        for name in [name for name in self._dirs if name == source or name.startswith(prefix)]:
            del self._dirs[name]
            self._dirs[target + name[len(source) :]] = None
            # Earlier changes inside are taken as settled: a rename of a directory commits what led to it.
            self._unsynced_names.pop(name, None)

    def sync_dir(self, path: str) -> None:
        self.called("sync_dir", path)
        self._check_dir(path)
        self._unsynced_names.pop(path, None)

    def sync_file(self, path: str) -> None:
        self.called("sync", path)
        self._file(path).sync()

    def file_size(self, path: str) -> int:
        self.called("size", path)
        return len(self._file(path).content)

    def modified_ms(self, path: str) -> int:
        self.called("size", path)
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.called("size", path)
        self._file(path).modified_ms = modified_ms

    def read_file(self, path: str) -> bytes:
        self.called("read", path)
        return bytes(self._file(path).content)

    def write_file_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.called("write", path)
        temporary = path + ".tmp"
        file = self._files.get(temporary) or self._create(temporary)
        taken = self.room_for(file, data, 0, path)
        while len(taken) < len(data):
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device", path)
            taken += self.room_for(file, data[len(taken) :], len(taken), path)
        _apply(file.content, 0, None)
        file.pending.append((0, None))
        self.write(file, data, 0)
        if sync:
            self.called("sync", temporary)
            file.sync()
        self.rename(temporary, path)
        if sync:
            self.sync_dir(parent_dir(path))

    def lock(self, path: str) -> SimLock:
        self.called("lock", path)
        if path in self.locks:
            raise DiskLocked(errno.EWOULDBLOCK, "locked by another broker", path)
        if path not in self._files:
            self._create(path)
        self.locks.add(path)
        return SimLock(self, path)

    def is_public(self, path: str) -> bool:
        self.called("is_public", path)
        return False

    def identity(self, path: str) -> FileIdentity | None:
        self.called("identity", path)
        return FileIdentity(f"boot-{self.boots}", self.copies, self._file(path).number, 0)

    def max_open_files(self) -> int:
        return 512

    def disk_usage(self, path: str) -> DiskUsage:
        self.called("usage", path)
        total = self.capacity if self.capacity is not None else 1 << 40
        return DiskUsage(total, max(total - self.used, 0))
