"""Takes the power from the machine of a node: its process is killed, and its disk keeps only what had been written to it.

Each node gets an ext4 file system of its own, in a file. To cut the power is to kill the process, and then to shut the file system down
as a crash would (`FS_IOC_SHUTDOWN` without a flush, as xfstests does): data and directory entries that only the page cache had are gone.
The next mount replays the journal. Both programs run on it as they are. The machine has then another boot id, bound over the system's in
a mount namespace of the process.

It is kinder than some disks: what the kernel has written is kept, as on a disk without a volatile cache, and the kernel writes by itself
what is older than 30 seconds. It needs Linux, root, loop devices and `mkfs.ext4`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import uuid
from pathlib import Path
from types import TracebackType

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess
from tests.cluster.waiting import wait_for

_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSH = 2
_BYTES = 2 << 30
"""Of a file system; its file has holes."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A namespace copies all mounts: the disks of the other nodes would live on in it.
_BIND_AND_START = (
    f'mount --bind "$0" {_BOOT_ID} && while [ "$1" != -- ]; do umount "$1" || exit 1; shift; done && shift && exec "$@"'
)
_TOOLS = ("mkfs.ext4", "mount", "umount", "unshare", "losetup", "sync")


class NoPower(Exception):
    """This machine does not allow it; the message says why, in one line."""


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NoPower(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Power:
    """The disks of a cluster's nodes, from before its start until after its end.

    Args:
        cluster: not started yet; its nodes' directories move to their disks.

    Raises:
        NoPower: the machine does not allow it.
    """

    def __init__(self, cluster: Cluster) -> None:
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if missing or os.geteuid():
            raise NoPower(f"{' and '.join(missing)} not found" if missing else "only root may mount file systems")
        self._nodes = list(cluster.nodes.values())
        try:
            for node in self._nodes:
                image, disk = self._image(node), self._disk(node)
                disk.mkdir(parents=True)
                with image.open("wb") as file:
                    file.truncate(_BYTES)
                _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
                _run("mount", "-o", "loop", str(image), str(disk))
                # Not the top, which has `lost+found`.
                node.data_dir = disk / "data"
                node.write_config(cluster.properties(node))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Power:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmount the disks of nodes that are down."""
        for node in self._nodes:
            if os.path.ismount(self._disk(node)):
                self._unmount(node)

    @staticmethod
    def _image(node: NodeProcess) -> Path:
        return node.folder / "disk.ext4"

    @staticmethod
    def _disk(node: NodeProcess) -> Path:
        return node.folder / "disk"

    def cut(self, *nodes: NodeProcess) -> None:
        """Cut the power of these nodes at once; each may start again, and its machine has another boot id then."""
        for node in nodes:
            node.kill()
        for node in nodes:
            handle = os.open(self._disk(node), os.O_RDONLY)
            try:
                fcntl.ioctl(handle, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
            finally:
                os.close(handle)
        for node in nodes:
            self._unmount(node)
            _run("mount", "-o", "loop", str(self._image(node)), str(self._disk(node)))
            boot_id = node.folder / "boot_id"
            boot_id.write_text(f"{uuid.uuid4()}\n")
            others = [str(self._disk(each)) for each in self._nodes if each is not node]
            node.prefix = ("unshare", "--mount", "sh", "-c", _BIND_AND_START, str(boot_id), *others, "--")

    def write_out(self, node: NodeProcess) -> None:
        """Have the kernel write all that a node has given it."""
        _run("sync", "--file-system", str(self._disk(node)))

    def _unmount(self, node: NodeProcess) -> None:
        _run("umount", str(self._disk(node)))
        image = str(self._image(node))
        # Somebody's copy of the mount would bring the same page cache back.
        wait_for(f"nobody else has {image}", lambda: not _run("losetup", "--associated", image).strip(), 30)
