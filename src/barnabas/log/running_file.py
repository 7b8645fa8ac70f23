"""The mark of a run, `.barnabas_running`: it tells a start after a kill from a start after a loss of power.

    {"version":0,"brokerEpoch":42,"bootId":"ccddae5b-1763-47c6-93cb-d1be836437a6","mount":71,"inode":131090,"birthNs":1795893451302000000}

A broker writes it, synced, when the controller has given it an epoch. It stays after a kill and after a clean stop. It proves that the
machine has gone on since if it is the file that this run wrote: the same start of the machine, mount, inode and birth time. A machine that
has started again, a copied directory and a snapshot that was rolled back do not pass.

Kafka ignores the file. If Kafka had the directory meanwhile, its controller knows another epoch, and refuses this one.

Crash argument: a kill between registration and this file leaves the epoch of the run before, which the controller refuses.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from barnabas.log.disk import Disk, write_fully
from barnabas.log.file_identity import FileIdentity
from barnabas.log.log_config import INT64_MAX

__all__ = ["RUNNING_FILE", "Claim", "read", "remove", "write"]

RUNNING_FILE = ".barnabas_running"
_VERSION = 0


class Claim(NamedTuple):
    """The answer of the file of the last run.

    Attributes:
        broker_epoch: the last run's; -1 if the machine may have lost what that run wrote.
        doubt: why it may have, in words; empty if it has not.
    """

    broker_epoch: int
    doubt: str = ""


def write(disk: Disk, root: str, broker_epoch: int) -> None:
    """Write the file of this run, durably; where files have no identity it would prove nothing, and is removed.

    Raises:
        OSError: the disk failed; the file of the last run is there, or no file.
    """
    path = f"{root}/{RUNNING_FILE}"
    # A new file: one that a crash has left has the same birth time, but another's bytes may follow ours.
    temporary = f"{path}.tmp"
    if disk.exists(temporary):
        disk.remove(temporary)
    file = disk.open(temporary, create=True)
    try:
        identity = disk.identity(temporary)
        if identity is None:
            disk.remove(temporary)
            remove(disk, root)
            return
        write_fully(file, _encode(broker_epoch, identity), 0)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_dir(root)


def remove(disk: Disk, root: str) -> None:
    """Remove the file, durably.

    Raises:
        OSError: the disk failed.
    """
    path = f"{root}/{RUNNING_FILE}"
    if disk.exists(path):
        disk.remove(path)
        disk.sync_dir(root)


def read(disk: Disk, root: str) -> Claim:
    """Read the file of the last run, and check that it is no copy, and no older than the start of the machine.

    Raises:
        OSError: the disk failed.
    """
    path = f"{root}/{RUNNING_FILE}"
    if not disk.exists(path):
        return Claim(-1, f"there is no {RUNNING_FILE}")
    known = _decode(disk.read_file(path))
    if known is None:
        return Claim(-1, f"{RUNNING_FILE} is damaged")
    broker_epoch, written = known
    doubt = _doubt(written, disk.identity(path))
    return Claim(-1, doubt) if doubt else Claim(broker_epoch)


def _doubt(written: FileIdentity, found: FileIdentity | None) -> str:
    """Return why a file proves nothing, in words; empty if it does."""
    if found is None:
        return "the file system does not tell a file from its copy"
    if found.boot_id != written.boot_id:
        return "the machine has started again since"
    if found.mount != written.mount:
        return "the file system has been mounted again since"
    return "" if found == written else "the directory is a copy"


def _encode(broker_epoch: int, identity: FileIdentity) -> bytes:
    fields = {
        "version": _VERSION,
        "brokerEpoch": broker_epoch,
        "bootId": identity.boot_id,
        "mount": identity.mount,
        "inode": identity.inode,
        "birthNs": identity.birth_ns,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def _decode(content: bytes) -> tuple[int, FileIdentity] | None:
    """Return the epoch and the identity; None if the content is not a whole file of a known version."""
    try:
        fields = json.loads(content)
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("version") != _VERSION:
        return None
    numbers = [fields.get(name) for name in ("brokerEpoch", "mount", "inode", "birthNs")]
    boot_id = fields.get("bootId")
    if not isinstance(boot_id, str) or any(type(each) is not int or each < 0 for each in numbers):
        return None
    broker_epoch, mount, inode, birth_ns = (int(each or 0) for each in numbers)
    return None if broker_epoch > INT64_MAX else (broker_epoch, FileIdentity(boot_id, mount, inode, birth_ns))
