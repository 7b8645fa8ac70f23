"""The log's only way to the file system: a `Disk` of named files, and the operating system's `OsDisk`.

The log, the checkpoints and the metadata log call nothing but `Disk` and `DiskFile`. A broker passes `OsDisk`; the
simulator passes a disk in memory that forgets unsynced writes at a crash, tears the last write, fails, fills up and
writes short. Paths are plain strings with `/`.

Callers may rely on this, and on nothing else:

- `pwrite` may write fewer bytes than given. The written bytes are in the page cache: they survive the end of the process, but a
  power cut only after `sync` of the file (or `sync_file` of its path, which may run in another thread).
- A created, renamed or removed name is visible immediately, and survives a power cut after `sync_dir` of its directory.
- `write_file_atomic` replaces a small file as a whole: a reader sees the old content or the new one, never a mixture.
  With `sync=False` a power cut may leave an empty or missing file; only files that can be rebuilt are written so.
- `lock` is held until `release` or the end of the process, against other processes and inside this one. It is a POSIX
  record lock, as Java's `FileChannel.tryLock` takes: Apache Kafka and barnabas exclude each other.

The metadata log holds credentials, so `OsDisk` creates directories that only their owner can enter (0700) and files that only
their owner can read (0600). It does not change the modes of existing files. It follows no symbolic link in place of a file, so that
no other user with write access to a directory can divert a write; a directory may be a link, as to another disk.

Kafka's counterpart: `FileRecords`, `FileLock`, `Utils.atomicMoveWithFallback`.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from barnabas.log.file_identity import FileIdentity, file_identity

if sys.platform != "win32":  # where no broker runs, but programs import it
    import fcntl
    import resource

Buffer = bytes | bytearray | memoryview

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600

MAX_OPEN_FILES = 500_000
"""Where the system sets no limit: each open file costs the kernel a kilobyte or two."""


class DiskUsage(NamedTuple):
    """Bytes of the file system that holds a path."""

    total: int
    free: int


class DiskLocked(OSError):
    """Another broker holds the lock."""


class DiskFile(Protocol):
    """One open file, read and written by position."""

    def pread(self, size: int, offset: int) -> bytes: ...

    def pwrite(self, data: Buffer, offset: int) -> int:
        """Write from the start of `data`; return how many bytes, possibly fewer than given."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None: ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, -1 if the disk has no file descriptors."""
        ...


class DiskLock(Protocol):
    """A held lock."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Missing names raise FileNotFoundError; every other failure is another OSError."""

    def open(self, path: str, *, create: bool = False) -> DiskFile: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def mkdir(self, path: str) -> None:
        """Create a directory and its missing parents, if it does not exist."""
        ...

    def remove(self, path: str) -> None: ...

    def rmtree(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def sync_file(self, path: str) -> None:
        """Make the writes of all handles to the file durable; safe to call in another thread."""
        ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def read_file(self, path: str) -> bytes: ...

    def write_file_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None: ...

    def lock(self, path: str) -> DiskLock:
        """Take a lock; raise DiskLocked if another process, or this one, holds it."""
        ...

    def disk_usage(self, path: str) -> DiskUsage: ...

    def is_public(self, path: str) -> bool:
        """Return whether other users of this machine may read a file, or enter a directory."""
        ...

    def identity(self, path: str) -> FileIdentity | None:
        """Return what tells a file from its copies and from itself before the machine's last start; None if the disk cannot tell."""
        ...

    def max_open_files(self) -> int:
        """Return how many files may be open at the same time, so that enough descriptors are left for connections."""
        ...


def parent_dir(path: str) -> str:
    """Return the directory that holds a path."""
    return posixpath.dirname(path.rstrip("/")) or "."


def write_fully(file: DiskFile, data: Buffer, offset: int) -> None:
    """Write all of `data`; continue after short writes.

    Raises:
        OSError: the disk failed or is full; some of the data may be in the file.
    """
    written = file.pwrite(data, offset)
    if written == len(data):
        return
    view = memoryview(data)
    while written < len(view):
        count = file.pwrite(view[written:], offset + written)
        if count <= 0:
            raise OSError(errno.ENOSPC, "the disk took no more bytes")
        written += count


class OsDiskFile:
    """A file descriptor."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __repr__(self) -> str:
        return f"<OsDiskFile fd={self._fd}>"

    def pread(self, size: int, offset: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def pwrite(self, data: Buffer, offset: int) -> int:
        return os.pwrite(self._fd, data, offset)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fsync(self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def fileno(self) -> int:
        return self._fd


# Windows, where programs import this module but no broker runs, has neither.
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ_BYTES = 1 << 20


class OsLock:
    """A POSIX record lock on a file, and a mark in this process, because inside a process record locks do not exclude."""

    _held: set[str] = set()

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        if self._path in self._held:
            raise DiskLocked(errno.EWOULDBLOCK, "already locked by this process", path)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, FILE_MODE)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise DiskLocked(errno.EWOULDBLOCK, "locked by another process", path) from error
            raise
        self._held.add(self._path)

    def release(self) -> None:
        if self._path in self._held:
            self._held.remove(self._path)
            os.close(self._fd)


class OsDisk:
    """The operating system's files."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        return OsDiskFile(os.open(path, os.O_RDWR | _FLAGS | (os.O_CREAT if create else 0), FILE_MODE))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def mkdir(self, path: str) -> None:
        os.makedirs(path, DIRECTORY_MODE, exist_ok=True)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def rmtree(self, path: str) -> None:
        shutil.rmtree(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def sync_dir(self, path: str) -> None:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sync_file(self, path: str) -> None:
        # fsync writes back every dirty page of the inode, also those that other descriptors made dirty.
        _sync(path, os.O_RDONLY | _FLAGS)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def read_file(self, path: str) -> bytes:
        chunks = []
        with _opened(path, os.O_RDONLY | _FLAGS, path) as fd:
            while chunk := os.read(fd, _READ_BYTES):
                chunks.append(chunk)
        return b"".join(chunks)

    def write_file_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        view = memoryview(data)
        with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, path) as fd:
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                os.fsync(fd)
        os.replace(temporary, path)
        if sync:
            self.sync_dir(parent_dir(path))

    def lock(self, path: str) -> OsLock:
        return OsLock(path)

    def disk_usage(self, path: str) -> DiskUsage:
        found = os.statvfs(path)
        return DiskUsage(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def is_public(self, path: str) -> bool:
        mode = os.stat(path).st_mode
        return bool(mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH))

    def identity(self, path: str) -> FileIdentity | None:
        return file_identity(path)

    def max_open_files(self) -> int:
        # Half of them are for connections. The server raises the soft limit to the hard one when it starts.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(MAX_OPEN_FILES if soft == resource.RLIM_INFINITY else min(soft // 2, MAX_OPEN_FILES), 2)


def _sync(path: str, flags: int) -> None:
    with _opened(path, flags, path) as fd:
        os.fsync(fd)


@contextmanager
def _opened(path: str, flags: int, named: str) -> Iterator[int]:
    """Open a descriptor for a few calls; their errors carry the path `named`, which a call on a descriptor does not know."""
    fd = os.open(path, flags, FILE_MODE)
    try:
        yield fd
    except OSError as error:
        error.filename = named
        raise
    finally:
        os.close(fd)
