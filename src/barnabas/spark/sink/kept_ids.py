"""The transactional ids that a Python worker may use again, in a file, so that they outlive the worker.

Spark ends a worker that was idle for a minute. A query whose batches are further apart has new workers for each batch;
with new ids for each of them the brokers would keep hundreds of thousands until `transactional.id.expiration.ms`. So a
new worker adopts the ids of a worker of its executor that is gone.

    FOLDER/WORKER.ids     JSON: the ids; locked (flock) by its worker as long as that lives

Why no id has two owners:

- A worker writes the file without an id before it uses it, so the file has only ids that are at rest.
- The lock ends with the process, also by SIGKILL; no worker adopts from one that lives, however slow it is.
- The adopter empties the file before it writes its own. A kill between the two loses the ids: they expire.
- A file that another adopter has removed meanwhile has no name any more (`st_nlink`), and is left alone.

Whether an id's last transaction was committed is asked before each use (`task_producers`), so an old file does no harm.

Limits: per executor, because the `SPARK_LOCAL_DIRS` that Spark sets for its workers is a folder of the executor, which
goes with it. Where files cannot be locked, nothing is kept.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from barnabas.client.producer_transactions import Transaction

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("barnabas.spark")

_SUFFIX = ".ids"
_VERSION = 1


class KeptId(NamedTuple):
    """An id at rest: the cluster and the sink that it belongs to, and the batch and the transaction that it served last."""

    servers: str
    sink: str
    batch: int
    transaction: Transaction


class KeptIds:
    """The file of one worker.

    Args:
        folder: of all workers' files; it belongs to this user alone.
        worker: names the file.

    Raises:
        OSError: the file cannot be made or locked.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._path = folder / (worker + _SUFFIX)
        self._file = _locked(self._path, create=True)

    def __repr__(self) -> str:
        return f"<KeptIds path={self._path}>"

    def save(self, ids: Iterable[KeptId]) -> None:
        """Replace what the file has.

        Raises:
            OSError: it cannot be written; it may have nothing then.
        """
        _write(self._file, list(ids))

    def adopt(self, fits: Callable[[KeptId], bool]) -> list[KeptId]:
        """Take all ids of one worker that is gone and has one that fits; none if there is no such worker.

        The caller saves them, with its own, before it uses one.
        """
        for path in sorted(self._path.parent.glob("*" + _SUFFIX)):
            if path != self._path and (found := _adopted(path, fits)):
                return found
        return []

    def close(self) -> None:
        """Let another worker adopt the ids, as the end of the process does."""
        self._file.close()


def folder_of_this_user() -> Path | None:
    """Return the folder for the files, in Spark's local directory; None if it is not safe, or files cannot be locked."""
    if fcntl is None:
        return None
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    folder = Path(local) / f"barnabas-sink-{os.getuid()}"
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
        status = folder.lstat()
    except OSError as error:
        logger.info("transactional ids of idle workers are not kept: %s", error)
        return None
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    if not is_ours:
        logger.warning("transactional ids of idle workers are not kept: %s belongs to somebody else", folder)
    return folder if is_ours else None


def _adopted(path: Path, fits: Callable[[KeptId], bool]) -> list[KeptId]:
    try:
        file = _locked(path, create=False)
    except OSError:
        return []  # Its worker lives, or it was adopted a moment ago.
    with file:
        if not os.fstat(file.fileno()).st_nlink:
            return []
        found = list(_read(file))
        if found and not any(map(fits, found)):
            return []
        with contextlib.suppress(OSError):
            _write(file, [])
            path.unlink()
            return found
    return []


def _locked(path: Path, *, create: bool) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "r+b", buffering=0)


def _write(file: IO[bytes], ids: list[KeptId]) -> None:
    file.seek(0)
    file.truncate()
    if ids:
        file.write(json.dumps({"version": _VERSION, "ids": ids}, separators=(",", ":")).encode())


def _read(file: IO[bytes]) -> Iterator[KeptId]:
    """Yield the ids of a file; none if it is empty, cut short by a kill, or of another version."""
    try:
        fields = json.loads(file.read())
        if fields["version"] == _VERSION:
            for servers, sink, batch, transaction in fields["ids"]:
                yield KeptId(servers, sink, batch, Transaction(*transaction))
    except (ValueError, TypeError, KeyError):
        return
