"""Takes the power from the machine of a node: its process is killed, and its disk keeps only what had been written to it.

Each node gets an ext4 file system of its own (`loop_disk`). To cut the power is to kill the process, and then to shut the file system
down: data and directory entries that only the page cache had are gone. The next mount replays the journal. Both programs run on it as
they are. The machine has then another boot id, bound over the system's in a mount namespace of the process.

It is kinder than some disks: what the kernel has written is kept, as on a disk without a volatile cache, and the kernel writes by itself
what is older than 30 seconds.
"""

from __future__ import annotations

import uuid
from types import TracebackType

from tests.cluster.cluster import Cluster
from tests.cluster.loop_disk import LoopDisk
from tests.cluster.node_process import NodeProcess

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A namespace copies all mounts: the disks of the other nodes would live on in it.
_BIND_AND_START = (
    f'mount --bind "$0" {_BOOT_ID} && while [ "$1" != -- ]; do umount "$1" || exit 1; shift; done && shift && exec "$@"'
)


class Power:
    """The disks of a cluster's nodes, from before its start until after its end.

    Args:
        cluster: not started yet; its nodes' directories move to their disks.

    Raises:
        NoLoopDisk: the machine does not allow it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._disks: dict[int, LoopDisk] = {}
        try:
            for node in cluster.nodes.values():
                disk = LoopDisk(node.folder / "disk.ext4", node.folder / "disk", ("unshare",))
                self._disks[node.node_id] = disk
                # Not the top, which has `lost+found`.
                node.data_dir = disk.top / "data"
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
        for disk in self._disks.values():
            disk.unmount()

    def cut(self, *nodes: NodeProcess) -> None:
        """Cut the power of these nodes at once; each may start again, and its machine has another boot id then."""
        for node in nodes:
            node.kill()
        for node in nodes:
            self._disks[node.node_id].shut_down()
        for node in nodes:
            disk = self._disks[node.node_id]
            disk.unmount()
            disk.mount()
            boot_id = node.folder / "boot_id"
            boot_id.write_text(f"{uuid.uuid4()}\n")
            others = [str(each.top) for each in self._disks.values() if each is not disk]
            node.prefix = ("unshare", "--mount", "sh", "-c", _BIND_AND_START, str(boot_id), *others, "--")

    def write_out(self, node: NodeProcess) -> None:
        """Have the kernel write all that a node has given it."""
        self._disks[node.node_id].write_out()
