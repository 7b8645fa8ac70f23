"""Tell the controller in which directory this broker's replicas are, where the metadata says otherwise (KIP-858).

A broker that returns with an empty disk has a directory with a new id. Its replicas are assigned to the old one, and the controller elects
no replica in a directory that its broker does not offer. So the broker assigns them to the directory it has.

One request is under way at a time, and names what waits then. It is sent again until the controller has answered it.

Source: Kafka's `AssignmentsManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import AssignReplicasToDirsRequest
from barnabas.steps import in_background, sleep
from barnabas.turns import ELEMENT, next_turn, pace

if TYPE_CHECKING:
    from barnabas.api.serving.context import Controller
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.metadata.topics_image import TopicsDelta

logger = logging.getLogger(__name__)

__all__ = ["DirectoryAssignments"]

PARTITIONS_PER_REQUEST = 2_250
RETRY_MS = 500

Partition = tuple[bytes, int]
"""Topic id and index."""


def _changes(topics: TopicsDelta) -> Iterator[tuple[Partition, PartitionRegistration]]:
    for topic in topics.changed.values():
        for index, registration in topic.partition_changes.items():
            yield (topic.topic_id, index), registration


class DirectoryAssignments:
    """What waits to be assigned.

    Args:
        directory_id: of this broker's one data directory.
        broker_epoch: returns the epoch of this broker's registration.
    """

    def __init__(
        self,
        node_id: int,
        directory_id: bytes,
        broker_epoch: Callable[[], int],
        controller: Controller,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._node_id = node_id
        self._directory_id = directory_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._loop = loop
        self._waiting: dict[Partition, None] = {}
        self._sending: asyncio.Future[None] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<DirectoryAssignments broker={self._node_id} waiting={len(self._waiting)}>"

    async def apply_delta(self, delta: MetadataDelta) -> None:
        """Look at the partitions that a commit of the metadata log has changed."""
        if delta.topics is None:
            return
        for partition, registration in _changes(delta.topics):
            await pace(ELEMENT)
            if self._is_elsewhere(registration.replicas, registration.directories):
                self._waiting[partition] = None
            else:
                self._waiting.pop(partition, None)
        if self._is_closed:
            return
        if self._waiting and (self._sending is None or self._sending.done()):
            self._sending = in_background(self._send_all(), self._loop)

    def _is_elsewhere(self, replicas: tuple[int, ...], directories: tuple[bytes, ...]) -> bool:
        if self._node_id not in replicas or len(directories) != len(replicas):
            return False
        return directories[replicas.index(self._node_id)] != self._directory_id

    async def _send_all(self) -> None:
        await next_turn()
        while self._waiting:
            asked = list(self._waiting)[:PARTITIONS_PER_REQUEST]
            try:
                await self._controller.handle(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, self._request(asked))
            except KafkaError as error:
                logger.info("The controller does not assign replicas to this broker's directory yet: %s", error.message)
                await sleep(RETRY_MS / 1000, self._loop)
                continue
            # A partition that is unknown to the controller, or has moved, needs no directory here.
            for partition in asked:
                self._waiting.pop(partition, None)

    def _request(self, partitions: list[Partition]) -> AssignReplicasToDirsRequest:
        topics: dict[bytes, AssignReplicasToDirsRequest.TopicData] = {}
        for topic_id, index in partitions:
            topic = topics.setdefault(topic_id, AssignReplicasToDirsRequest.TopicData(topic_id=topic_id))
            topic.partitions.append(AssignReplicasToDirsRequest.PartitionData(partition_index=index))
        directory = AssignReplicasToDirsRequest.DirectoryData(id=self._directory_id, topics=list(topics.values()))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), directories=[directory]
        )

    def close(self) -> None:
        """Assign nothing more."""
        self._is_closed = True
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()
