"""Tells a file that has been on this machine since its system started from a copy of it, and from one that outlived a restart.

| field | changes when |
|---|---|
| boot id | the machine starts, with or without a power cut before |
| mount | the file system is mounted again, as after a rollback to a snapshot, or in a new container |
| inode, birth time | the file is copied, or restored from a copy |

Two equal identities mean that the page cache has had every write to the file's directory all the time. Only Linux has a boot id, and
only file systems that keep birth times are of use (ext4, XFS, Btrfs, tmpfs …): elsewhere no file has an identity.

Source: statx(2); random(4), `/proc/sys/kernel/random/boot_id`.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

__all__ = ["FileIdentity", "file_identity"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_INO = 0x100
_STATX_BTIME = 0x800
_STATX_MNT_ID = 0x1000
_STATX_MNT_ID_UNIQUE = 0x4000
_STATX_BYTES = 256
# Where the structure has its fields.
_MASK, _INODE, _BIRTH_SECONDS, _BIRTH_NANOSECONDS, _MOUNT = 0, 32, 80, 88, 144


class FileIdentity(NamedTuple):
    """The fields that stay equal while a machine runs and a file is neither copied nor restored.

    Attributes:
        birth_ns: when the file was created, in nanoseconds since 1970.
    """

    boot_id: str
    mount: int
    inode: int
    birth_ns: int


def file_identity(path: str) -> FileIdentity | None:
    """Return the identity of a file; None where the system or the file system does not tell.

    Raises:
        OSError: the file cannot be looked at.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            boot_id = file.read().strip()
    except OSError:
        return None  # A container may hide it.
    found = _statx(path)
    if found is None or not boot_id:
        return None
    mask = _number(found, _MASK, 4)
    # Before Linux 6.8 a mount id may be given again; boot id, inode and birth time still tell.
    if not mask & _STATX_BTIME or not mask & (_STATX_MNT_ID | _STATX_MNT_ID_UNIQUE):
        return None
    birth_ns = _number(found, _BIRTH_SECONDS, 8) * 1_000_000_000 + _number(found, _BIRTH_NANOSECONDS, 4)
    return FileIdentity(boot_id, _number(found, _MOUNT, 8), _number(found, _INODE, 8), birth_ns)


def _statx(path: str) -> bytes | None:
    """Return the bytes of `struct statx`; None where the C library does not know the call.

    Raises:
        OSError: the file cannot be looked at.
    """
    # Imported late: a broker needs it once or twice.
    import ctypes

    statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if statx is None:
        return None
    found = ctypes.create_string_buffer(_STATX_BYTES)
    wanted = _STATX_INO | _STATX_BTIME | _STATX_MNT_ID_UNIQUE
    for mask in (wanted, wanted & ~_STATX_MNT_ID_UNIQUE | _STATX_MNT_ID):
        if statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, ctypes.c_uint(mask), found) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        if _number(found.raw, _MASK, 4) & (_STATX_MNT_ID | _STATX_MNT_ID_UNIQUE):
            break  # Linux before 6.8 does not know unique ids, and leaves the bit out.
    return found.raw


def _number(structure: bytes, offset: int, size: int) -> int:
    return int.from_bytes(structure[offset : offset + size], sys.byteorder)
