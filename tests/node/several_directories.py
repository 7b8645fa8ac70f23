"""A node with several data directories, for tests: on a real disk or a simulated one."""

from __future__ import annotations

import asyncio
import errno
import random
from pathlib import Path
from typing import Any

from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.log import meta_properties
from barnabas.log.disk import Disk, OsDisk
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.directory_ids import UNASSIGNED
from barnabas.protocol.messages import DescribeLogDirsRequest
from barnabas.protocol.primitives import Uuid, uuid_from_str
from barnabas.simulation.disk import MUTATIONS, SimDisk
from tests.api.served_node import Serving

NAMES = ("a", "b", "c")


class Several(Serving):
    """A node with the directories a, b and c; the metadata log is in b.

    Args:
        seed: another one in each run, so that the controller does not take two runs for one.
    """

    def __init__(self, folder: Path, disk: Disk | None = None, *, seed: int = 1, **more: Any) -> None:
        disk = disk or OsDisk()
        settings: dict[str, Any] = {
            "log.dirs": ",".join(f"{folder}/{name}" for name in NAMES),
            "metadata.log.dir": f"{folder}/b",
        }
        config = BrokerConfig.from_properties({**settings, "listeners": "PLAINTEXT://127.0.0.1:0"}, embedded=True)
        for number, name in enumerate(NAMES):
            if is_there(disk, f"{folder}/{name}") and not disk.exists(f"{folder}/{name}/meta.properties"):
                dice = random.Random(number)
                format_directory(
                    disk, f"{folder}/{name}", "abc", config.node_id, config, dice, has_metadata=name == "b"
                )
        self.folder, self.disk = folder, disk
        super().__init__(folder, disk=disk, seed=seed, **settings, **more)

    def described(self) -> dict[str, list[str]]:
        """Return the topics that DescribeLogDirs has for each directory, by its name."""
        answer = self.ask(DescribeLogDirsRequest(topics=None))
        return {Path(result.log_dir).name: sorted(topic.name for topic in result.topics) for result in answer.results}

    def errors(self) -> dict[str, int]:
        """Return the error that DescribeLogDirs has for each directory."""
        answer = self.ask(DescribeLogDirsRequest(topics=None))
        return {Path(result.log_dir).name: result.error_code for result in answer.results}

    def assigned(self, topic: str) -> str:
        """Return in which directory the metadata has the one replica of a topic, when the controller knows."""
        partition = self.server.image.topics.by_name[topic].partitions[0]
        for _ in range(5_000):
            partition = self.server.image.topics.by_name[topic].partitions[0]
            if partition.directories[0] != UNASSIGNED:
                break
            self.loop.run_until_complete(asyncio.sleep(0.001))
        ids = {uuid_from_str(owner_of(self.folder / name, self.disk).directory_id or ""): name for name in NAMES}
        return ids[Uuid(partition.directories[0])]


def is_there(disk: Disk, root: str) -> bool:
    """Return whether a directory can be read, or made."""
    try:
        return not disk.is_dir(root) or disk.listdir(root) is not None
    except OSError:
        return False


def owner_of(folder: Path, disk: Disk | None = None) -> MetaProperties:
    owner = meta_properties.read(disk or OsDisk(), str(folder))
    assert owner is not None
    return owner


def break_directory(disk: SimDisk, root: Path, code: int = errno.EIO, *, reads_too: bool = False) -> None:
    """Let each write below a directory fail, or each call."""

    def failed(call: str, path: str) -> OSError | None:
        is_below = f"{path}/".startswith(f"{root}/")
        return OSError(code, "broken", path) if is_below and (reads_too or call in MUTATIONS) else None

    disk.on_call = failed
