"""Tell the controller in which directory this broker's replicas are, where the metadata says otherwise (KIP-858).

A broker that returns with an empty disk has a directory with a new id. Its replicas are assigned to the old one, and the controller elects
no replica in a directory that its broker does not offer. So the broker assigns them to the directory it has. A broker with
several directories also says which of them it has chosen for a new replica.

One request is under way at a time, and names what waits then. It is sent again until the controller has answered it.

Source: Kafka's `AssignmentsManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from barnabas.log.log_directories import LogDirectories, Logs
from barnabas.metadata.directory_ids import MIGRATING, UNASSIGNED
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import AssignReplicasToDirsRequest
from barnabas.protocol.primitives import Uuid
from barnabas.steps import in_background, sleep
from barnabas.turns import ELEMENT, next_turn, pace

if TYPE_CHECKING:
    from barnabas.api.serving.context import Controller
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.metadata.topics_image import TopicsDelta

logger = logging.getLogger(__name__)

__all__ = ["DirectoryAssignments", "OneDirectory", "Placement", "placement_of"]

PARTITIONS_PER_REQUEST = 2_250
RETRY_MS = 500

Partition = tuple[bytes, int]
"""Topic id and index."""


def _changes(topics: TopicsDelta) -> Iterator[tuple[str, Partition, PartitionRegistration]]:
    for topic in topics.changed.values():
        for index, registration in topic.partition_changes.items():
            yield topic.name, (topic.topic_id, index), registration


class OneDirectory:
    """The placement of a broker with one directory; without an id it has no place that could be named."""

    def __init__(self, ids: Sequence[Uuid]) -> None:
        self.ids = ids

    def __repr__(self) -> str:
        return f"<OneDirectory {self.ids}>"

    def place(self, topic: str, index: int, assigned: bytes, *, is_new: bool = False) -> bytes:
        """Return the id of the directory."""
        return self.ids[0]


Placement = LogDirectories | OneDirectory
"""Where the replicas of a broker are; `ids` are those of its directories."""


def placement_of(logs: Logs) -> Placement:
    """Return where the replicas in these logs are."""
    return logs if isinstance(logs, LogDirectories) else OneDirectory(logs.ids)


class DirectoryAssignments:
    """What waits to be assigned.

    Args:
        placement: where replicas are.
        broker_epoch: returns the epoch of this broker's registration.
    """

    def __init__(
        self,
        node_id: int,
        placement: Placement,
        broker_epoch: Callable[[], int],
        controller: Controller,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._node_id = node_id
        self._placement = placement
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._loop = loop
        self._waiting: dict[Partition, bytes] = {}
        # Of partitions that must be told, whatever the metadata says meanwhile.
        self._answers: dict[Partition, asyncio.Future[None]] = {}
        self._sending: asyncio.Future[None] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<DirectoryAssignments broker={self._node_id} waiting={len(self._waiting)}>"

    async def apply_delta(self, delta: MetadataDelta) -> None:
        """Look at the partitions that a commit of the metadata log has changed."""
        if delta.topics is None:
            return
        for name, partition, registration in _changes(delta.topics):
            await pace(ELEMENT)
            self._note(name, partition, registration)
        self._begin_to_send()

    def tell(self, name: str, partition: Partition, registration: PartitionRegistration) -> asyncio.Future[None] | None:
        """Tell the controller where one replica is to be; return a future for its answer, None if it keeps no directories.

        The metadata may say so already: a request with another directory may be under way.
        """
        if len(registration.directories) != len(registration.replicas) or self._is_closed:
            return None
        assigned = registration.directories[registration.replicas.index(self._node_id)]
        self._waiting[partition] = self._placement.place(name, partition[1], assigned)
        answer = self._answers.get(partition)
        if answer is None:
            answer = self._answers[partition] = self._loop.create_future()
        self._begin_to_send()
        return answer

    def _note(self, name: str, partition: Partition, registration: PartitionRegistration) -> None:
        directory = self._directory_to_tell(name, partition[1], registration)
        if directory is not None:
            self._waiting[partition] = directory
        elif partition not in self._answers:
            self._waiting.pop(partition, None)

    def _begin_to_send(self) -> None:
        if self._is_closed:
            return
        if self._waiting and (self._sending is None or self._sending.done()):
            self._sending = in_background(self._send_all(), self._loop)

    def _directory_to_tell(self, topic: str, index: int, registration: PartitionRegistration) -> bytes | None:
        """Return the directory of this broker's replica if the metadata has another one; None without a replica."""
        replicas, directories = registration.replicas, registration.directories
        if self._node_id not in replicas:
            return None
        is_named = len(directories) == len(replicas)
        assigned = directories[replicas.index(self._node_id)] if is_named else MIGRATING
        directory = self._placement.place(topic, index, assigned, is_new=assigned == UNASSIGNED)
        return directory if is_named and directory != assigned else None

    async def _send_all(self) -> None:
        await next_turn()
        while self._waiting:
            asked = dict(islice(self._waiting.items(), PARTITIONS_PER_REQUEST))
            try:
                await self._controller.handle(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, self._request(asked))
            except KafkaError as error:
                logger.info(
                    "The controller does not assign replicas to this broker's directories yet: %s", error.message
                )
                await sleep(RETRY_MS / 1000, self._loop)
                continue
            # A partition that is unknown to the controller, or has moved, needs no directory here.
            for partition, directory in asked.items():
                # Another directory may have been chosen meanwhile.
                if self._waiting.get(partition) == directory:
                    del self._waiting[partition]
                    self._answered(partition)

    def _answered(self, partition: Partition) -> None:
        answer = self._answers.pop(partition, None)
        if answer is not None and not answer.done():
            answer.set_result(None)

    def _request(self, partitions: dict[Partition, bytes]) -> AssignReplicasToDirsRequest:
        directories: dict[bytes, AssignReplicasToDirsRequest.DirectoryData] = {}
        topics: dict[tuple[bytes, bytes], AssignReplicasToDirsRequest.TopicData] = {}
        for (topic_id, index), directory_id in partitions.items():
            topic = topics.get((directory_id, topic_id))
            if topic is None:
                topic = topics[directory_id, topic_id] = AssignReplicasToDirsRequest.TopicData(topic_id=topic_id)
                directory = directories.get(directory_id)
                if directory is None:
                    directory = directories[directory_id] = AssignReplicasToDirsRequest.DirectoryData(id=directory_id)
                directory.topics.append(topic)
            topic.partitions.append(AssignReplicasToDirsRequest.PartitionData(partition_index=index))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), directories=list(directories.values())
        )

    def close(self) -> None:
        """Assign nothing more."""
        self._is_closed = True
        self._waiting.clear()
        for partition in list(self._answers):
            self._answered(partition)
        if self._sending is not None:
            self._sending.cancel()
