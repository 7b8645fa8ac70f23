"""One of a node's `log.dirs` fails: what has to follow, as KIP-858 promises it.

- A directory with replicas: the node goes on. Soon it leads none of these replicas, and they are in no ISR beside others.
- The directory of the metadata log: the node stops.

It judges only a process that runs all the while, and has noticed: one that is killed or paused meanwhile owes nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence

from barnabas.log import meta_properties
from barnabas.log.log_directories import LogDirectories
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.primitives import uuid_from_str
from barnabas.simulation.disk import MUTATIONS
from tests.simulation.history import History
from tests.simulation.judged_node import JudgedNode

FOLLOWS_SECONDS = 10.0
"""How long it may take: a checkpoint, a heartbeat, and the election of another controller."""
FAILING: tuple[frozenset[str] | None, ...] = (None, MUTATIONS, frozenset({"sync", "sync_dir"}))
"""What a disk refuses: everything, each change, or only to make changes durable."""


class FailedDirectory:
    """One failure, from now on."""

    def __init__(self, node: JudgedNode, nodes: Sequence[JudgedNode], history: History, rng: random.Random) -> None:
        self._node, self._nodes, self._history, self._process = node, nodes, history, node.loop
        self._root = rng.choice(node.config.log_dirs)
        owner = meta_properties.read(node.disk, self._root)
        assert owner is not None, f"{node.name} has no {self._root}"
        self._id = uuid_from_str(owner.directory_id or "")
        node.break_directory(self._root, rng.choice(FAILING))

    def __repr__(self) -> str:
        return f"<FailedDirectory {self._root} of {self._node.name}>"

    async def judge(self) -> None:
        """Wait for what has to follow, and write down what does not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FOLLOWS_SECONDS
        while self._is_judged():
            wrong = list(self._wrong())
            is_noticed = self._is_noticed()
            if is_noticed and not wrong:
                return
            if loop.time() > deadline:
                self._history.failed_directories += [
                    f"{FOLLOWS_SECONDS:g} s later {what}" for what in wrong if is_noticed
                ]
                return
            await asyncio.sleep(0.1)

    def _is_judged(self) -> bool:
        node = self._node
        return node.is_up and node.loop is self._process and not node.loop.is_paused

    def _is_noticed(self) -> bool:
        """Return whether the process knows: a directory that nobody writes to may fail for long, and reads alone do not count."""
        broker = self._node.server.broker
        logs = None if broker is None else broker.log_manager
        is_offline = isinstance(logs, LogDirectories) and self._root in [each.root_dir for each in logs.offline]
        return is_offline or self._root == self._node.config.metadata_dir

    def _wrong(self) -> Iterator[str]:
        name, own = self._node.name, self._node.node_id
        if self._root == self._node.config.metadata_dir:
            yield f"{name} goes on without its metadata log"
            return
        for topic in self._image().topics.by_name.values():
            for index, each in topic.partitions.items():
                if own not in each.replicas or each.directories[each.replicas.index(own)] != self._id:
                    continue
                what = f"{topic.name}-{index}, which is in the failed {self._root}"
                if each.leader == own:
                    yield f"{name} leads {what}"
                elif own in each.isr and len(each.isr) > 1:
                    yield f"{name} is in the ISR of {what}"

    def _image(self) -> MetadataImage:
        images = [image for node in self._nodes if node.serves and (image := node.image) is not None]
        return max(images, key=lambda image: image.provenance.offset, default=MetadataImage())
