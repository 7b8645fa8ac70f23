"""A node of a simulated cluster whose run is judged: it writes into the history what it believes, and what goes wrong in it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib

from barnabas.config.cannot_start import CannotStart
from barnabas.log.log_files import parse_file_name
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.record_codec import encode_record
from barnabas.protocol.errors import KafkaError
from barnabas.records.record_batch import iter_batches
from barnabas.simulation.cluster_node import ClusterNode
from barnabas.simulation.node import NodeDied
from tests.simulation.history import History, Partition


class JudgedNode(ClusterNode):
    """A machine for one node of a cluster.

    Attributes:
        starting: the start under way, or the last.
        has_bad_disk: whether its disk may have failed its present process, which may therefore stop.
        broken: the one of its `log.dirs` that fails; empty if all work.
    """

    starting: asyncio.Task[None] | None = None
    has_bad_disk = False
    broken = ""
    _will_begin = False
    _watching: asyncio.Task[None] | None = None
    _image_offset = -1

    def begin(self, history: History) -> None:
        """Start, and do not wait; a start that fails is written down."""
        if not self._will_begin:
            self._will_begin = True
            self.starting = asyncio.ensure_future(self._begin(history))

    async def _begin(self, history: History) -> None:
        self._will_begin = False
        try:
            await self.start()
        except NodeDied:
            return
        except (CannotStart, OSError) as error:
            if not self.has_bad_disk:
                history.recoveries.append((0.0, f"{self.name}: {error!r}"))
            self._ended("cannot start", history)
            return
        self._watching = asyncio.ensure_future(self._watch(history))

    async def _watch(self, history: History) -> None:
        """Write down a fault of the process, and end it, as an operator would."""
        with contextlib.suppress(NodeDied):
            await self.run(self.server.wait_failed())
            if not self.has_bad_disk:
                history.errors.append(f"{self.name} failed: {self.server.failure!r}")
            self._ended("has failed", history)

    def _ended(self, how: str, history: History) -> None:
        is_of_the_disk = self.has_bad_disk
        self.kill(how)
        if is_of_the_disk and not self.is_disk_bad:
            # Its disk works again already: nobody else starts it.
            self.begin(history)

    def boot(self) -> None:
        super().boot()
        self.has_bad_disk = self.is_disk_bad

    @property
    def is_disk_bad(self) -> bool:
        """Whether its disk is full, or fails; with several directories, whether the one fails that it cannot go on without."""
        is_lost = bool(self.broken) and self.broken == self.config.metadata_dir
        return is_lost or self.disk.capacity is not None or self.disk.error_rate > 0

    @property
    def is_dying(self) -> bool:
        """Whether its process may end at any moment."""
        return bool(self.broken) or self.is_disk_bad or self.disk.end_in_write is not None

    def mend_disk(self) -> None:
        """Let its disk work, and have room, from now on."""
        if self.is_disk_bad:
            self.note("its disk works again")
        self.disk.capacity, self.disk.error_rate, self.disk.short_write_rate = None, 0.0, 0.0

    def break_directory(self, root: str, calls: frozenset[str] | None) -> None:
        """Let one of its `log.dirs` fail with EIO from now on.

        Args:
            calls: the calls that fail; None for all.
        """
        self.note(f"its {root} fails")
        self.broken = root
        self.has_bad_disk = self.has_bad_disk or self.is_disk_bad

        def failed(call: str, path: str) -> OSError | None:
            is_below = f"{path}/".startswith(f"{root}/")
            return OSError(errno.EIO, "simulated failure", path) if is_below and call in (calls or (call,)) else None

        self.disk.on_call = failed

    def mend_directory(self, *, is_empty: bool) -> None:
        """End its process if it runs, and let the directory that fails work again, or put an empty one in its place."""
        self.kill("is restarted because of a directory")
        root, self.broken, self.disk.on_call = self.broken, "", None
        if is_empty:
            self.replace_directory(root)

    @property
    def serves(self) -> bool:
        """Whether its process has started and runs."""
        started = self.starting
        return self.is_up and started is not None and started.done() and not started.cancelled()

    # What it believes

    def high_watermark(self, partition: Partition) -> int | None:
        """Return up to where it knows its replica of a partition to be committed; None if it has none now."""
        log = self.log(partition)
        return None if log is None else log.high_watermark

    def log(self, partition: Partition) -> PartitionLog | None:
        """Return its replica of a partition; None if it has none now."""
        broker = self.server.broker if self.serves else None
        if broker is None or self.registration(partition) is None:
            return None
        try:
            return broker.replica_manager.partition(*partition).log
        except (KafkaError, OSError):
            return None

    def observe(self, history: History) -> None:
        """Write down what it believes now, if that is new."""
        image = self.image
        if image is None:
            return
        raft = self.raft
        if raft.is_leader:
            history.controllers_seen.setdefault(raft.epoch, set()).add(self.node_id)
        offset = image.provenance.offset
        if offset == self._image_offset or offset < 0:
            return
        self._image_offset = offset
        history.images_seen.setdefault(offset, {}).setdefault(digest(image), []).append(self.name)
        for topic in image.topics.by_name.values():
            for index, each in topic.partitions.items():
                # By its id: a topic that is created again begins with the first epoch again.
                partition = Partition(f"{topic.name} {topic.topic_id.hex()}", index)
                history.leaders_seen.setdefault((partition, each.leader_epoch), set()).add(each.leader)

    def root_of(self, partition: Partition) -> str | None:
        """Return which of its `log.dirs` has its replica of a partition; None if none has."""
        roots = self.config.log_dirs
        return next((root for root in roots if self.disk.exists(f"{root}/{partition.topic}-{partition.index}")), None)

    def batches(self, partition: Partition, start: int, end: int) -> list[tuple[int, bytes]]:
        """Return the batches of its replica that have an offset from `start` on, and end before `end`, from its disk."""
        root = self.root_of(partition)
        if root is None:
            return []
        folder = f"{root}/{partition.topic}-{partition.index}"
        names = sorted(name for name in self.disk.listdir(folder) if name.endswith(".log") and parse_file_name(name))
        found = []
        for name in names:
            data = memoryview(self.disk.contents(f"{folder}/{name}"))
            found += [
                (header.base_offset, bytes(data[at : at + header.size]))
                for at, header in iter_batches(data)
                if start < header.next_offset <= end
            ]
        return found


def digest(image: MetadataImage) -> str:
    """Return the same for equal images, whatever the order in which they came to be."""
    parts = sorted(encode_record(record, LATEST_PRODUCTION) for record in image.records())
    return hashlib.sha256(b"".join(parts)).hexdigest()
