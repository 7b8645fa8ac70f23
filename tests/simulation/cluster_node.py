"""A node of a cluster in the simulated world: broker, controller, or both, with a disk that is formatted before the first start."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.log.log_files import parse_file_name
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.record_codec import encode_record
from barnabas.protocol.errors import KafkaError
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.records.record_batch import iter_batches
from tests.simulation.broker_node import DATA_DIR, PORT, BrokerNode
from tests.simulation.disk import SimDisk
from tests.simulation.history import History, Partition
from tests.simulation.node import NodeDied

if TYPE_CHECKING:
    from tests.simulation.world import World

CONTROLLER_PORT = 9093
CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"


class ClusterNode(BrokerNode):
    """A machine for one node of a cluster.

    Args:
        node_id: its `node.id`.
        roles: of `process.roles`.
        voters: id and host of each controller.
        has_moving_voters: whether the voters are those of the log, and each controller makes itself one.
        properties: of every node of the cluster.

    Attributes:
        starting: the start under way, or the last.
        has_bad_disk: whether its disk may have failed its present process, which may therefore stop.
    """

    def __init__(
        self,
        world: World,
        node_id: int,
        host: str,
        roles: tuple[str, ...],
        voters: Iterable[tuple[int, str]],
        properties: dict[str, str],
        *,
        has_moving_voters: bool = False,
    ) -> None:
        voters = list(voters)
        listeners = [f"PLAINTEXT://{host}:{PORT}"] if "broker" in roles else []
        if "controller" in roles:
            listeners.append(f"CONTROLLER://{host}:{CONTROLLER_PORT}")
        own = {
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
        if has_moving_voters:
            own["controller.quorum.bootstrap.servers"] = ",".join(f"{at}:{CONTROLLER_PORT}" for _, at in voters)
            own["controller.quorum.auto.join.enable"] = str("controller" in roles).lower()
        else:
            own["controller.quorum.voters"] = ",".join(f"{voter}@{at}:{CONTROLLER_PORT}" for voter, at in voters)
        super().__init__(world, f"node {node_id}", host, own | properties)
        self.node_id, self.roles = node_id, roles
        self._first_voters = VoterSet.of(_voter(*each) for each in voters) if has_moving_voters else None
        self.starting: asyncio.Task[None] | None = None
        self.has_bad_disk = False
        self._will_begin = False
        self._watching: asyncio.Task[None] | None = None
        self._image_offset = -1

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    def format(self) -> None:
        """Format the disk, as `barnabas storage format` does."""
        config = BrokerConfig.from_properties(self.properties)
        format_directory(
            self.disk,
            DATA_DIR,
            CLUSTER_ID,
            self.node_id,
            config,
            random.Random(self.node_id),
            now_ms=self.now_ms(),
            standalone=False,
            initial_voters=self._first_voters,
        )

    def wipe(self) -> None:
        """Put a new disk into the machine, formatted as its operator would; it must be down."""
        assert not self.is_up, f"{self.name} is up"
        self.note("gets an empty disk")
        self.disk = SimDisk(self._rng.getrandbits(32), now_ms=self.now_ms)
        self.format()

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
        """Whether its disk is full, or fails."""
        return self.disk.capacity is not None or self.disk.error_rate > 0

    @property
    def is_dying(self) -> bool:
        """Whether its process may end at any moment."""
        return self.is_disk_bad or self.disk.end_in_write is not None

    def mend_disk(self) -> None:
        """Let its disk work, and have room, from now on."""
        if self.is_disk_bad:
            self.note("its disk works again")
        self.disk.capacity, self.disk.error_rate, self.disk.short_write_rate = None, 0.0, 0.0

    @property
    def serves(self) -> bool:
        """Whether its process has started and runs."""
        started = self.starting
        return self.is_up and started is not None and started.done() and not started.cancelled()

    # What it believes

    @property
    def raft(self) -> RaftNode:
        """Its part in the quorum; it must have joined."""
        return self.server.quorum.driver.node

    @property
    def image(self) -> MetadataImage | None:
        """The metadata that it has published; None before its process has joined the quorum."""
        quorum = getattr(getattr(self, "server", None), "quorum", None) if self.is_up else None
        return None if quorum is None else quorum.loader.image

    def registration(self, partition: Partition) -> PartitionRegistration | None:
        """Return what it knows of a partition now."""
        image = self.image if self.serves else None
        topic = None if image is None else image.topics.by_name.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.index)

    def high_watermark(self, partition: Partition) -> int | None:
        """Return up to where it knows its replica of a partition to be committed; None if it has none now."""
        broker = self.server.broker if self.serves else None
        if broker is None or self.registration(partition) is None:
            return None
        try:
            return broker.replica_manager.partition(*partition).log.high_watermark
        except KafkaError:
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

    def batches(self, partition: Partition, end: int) -> list[tuple[int, bytes]]:
        """Return the batches of its replica that end before an offset, from its disk."""
        folder = f"{DATA_DIR}/{partition.topic}-{partition.index}"
        if not self.disk.exists(folder):
            return []
        names = sorted(name for name in self.disk.listdir(folder) if name.endswith(".log") and parse_file_name(name))
        found = []
        for name in names:
            data = memoryview(self.disk.contents(f"{folder}/{name}"))
            found += [
                (header.base_offset, bytes(data[at : at + header.size]))
                for at, header in iter_batches(data)
                if header.next_offset <= end
            ]
        return found


def _voter(node_id: int, host: str) -> Voter:
    """Return a controller as the operator names it when the disks are formatted."""
    endpoint = VoterEndpoint("CONTROLLER", host, CONTROLLER_PORT)
    return Voter(node_id, random.Random(f"directory of {node_id}").randbytes(16), (endpoint,))


def digest(image: MetadataImage) -> str:
    """Return the same for equal images, whatever the order in which they came to be."""
    parts = sorted(encode_record(record, LATEST_PRODUCTION) for record in image.records())
    return hashlib.sha256(b"".join(parts)).hexdigest()
