"""Who has the lock of a node's directory, asked without taking it: a probe that took it could make a node fail that starts just then.

Both programs hold a POSIX record lock on `.lock` while they run. `OneAtATime` is another lock, of the directory itself, which
two `barnabas adopt` exclude each other by: it leaves no file behind, and the system frees it when the command ends in any way.

Limits: Linux. A holder in another container has the process id 0.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys

from barnabas.log.directory_lock import LOCK_FILE

__all__ = ["OneAtATime", "TakenTwice", "holder_of"]

_FLOCK = "hhqqi"
"""`struct flock` with offsets of 64 bits: type, whence, start, length, process id."""


class TakenTwice(Exception):
    """Another command is at work on this directory."""


def holder_of(root: str) -> int | None:
    """Return the process id of the node that has a directory; None if the directory is free.

    Raises:
        OSError: the lock cannot be looked at.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, "only Linux says who has the lock of a directory", root)
    try:
        descriptor = os.open(os.path.join(root, LOCK_FILE), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else int(pid)


class OneAtATime:
    """Held while one command changes the node of a directory.

    Raises:
        TakenTwice: another command is at work.
        OSError: the directory cannot be opened.
    """

    def __init__(self, root: str) -> None:
        self._descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise TakenTwice from None
            raise

    def __enter__(self) -> OneAtATime:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
