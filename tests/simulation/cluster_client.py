"""A client of several brokers: each request goes to the broker it is for, as clients find it from metadata and FindCoordinator.

It sends a request once. The caller handles a failure, as with `Client`. After a failure, or an error in an answer, the client forgets which
broker the request was for, and looks it up again. At first it knows only addresses.

It remembers the newest leader epoch of each partition, as clients do. It ignores older metadata, and names the epoch where a request has a
field for it: so a broker that no longer leads the partition, and does not know it, rejects the request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Struct
from barnabas.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from tests.simulation.client import Client
from tests.simulation.history import Partition

Address = tuple[str, int]
Coordinator = tuple[int, str]
"""The kind of a coordinator and the key that it is for."""

GROUP, TRANSACTION = 0, 1
TIMEOUT_SECONDS = 7.0
"""Longer than a broker waits for replicas, so that its answer is heard."""


class NobodyToAsk(ConnectionError):
    """A partition has no leader now, or a key no coordinator."""


Where = Partition | Coordinator | None
"""What a request is for: a partition's leader, a coordinator, or any broker."""


def _partition(topic: Any, index: str) -> Partition:
    parts = topic.partition_data if hasattr(topic, "partition_data") else topic.partitions
    return Partition(topic.name if hasattr(topic, "name") else topic.topic, getattr(parts[0], index))


def _transactional(name: str) -> Callable[[Any], Where]:
    return lambda request: (TRANSACTION, getattr(request, name)) if getattr(request, name) else None


WHERE: dict[ApiKey, Callable[[Any], Where]] = {
    ApiKey.PRODUCE: lambda request: _partition(request.topic_data[0], "index"),
    ApiKey.FETCH: lambda request: _partition(request.topics[0], "partition"),
    ApiKey.LIST_OFFSETS: lambda request: _partition(request.topics[0], "partition_index"),
    ApiKey.DELETE_RECORDS: lambda request: _partition(request.topics[0], "partition_index"),
    ApiKey.OFFSET_COMMIT: lambda request: (GROUP, request.group_id),
    ApiKey.OFFSET_FETCH: lambda request: (GROUP, request.groups[0].group_id),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda request: (GROUP, request.group_id),
    ApiKey.JOIN_GROUP: lambda request: (GROUP, request.group_id),
    ApiKey.SYNC_GROUP: lambda request: (GROUP, request.group_id),
    ApiKey.HEARTBEAT: lambda request: (GROUP, request.group_id),
    ApiKey.LEAVE_GROUP: lambda request: (GROUP, request.group_id),
    ApiKey.TXN_OFFSET_COMMIT: lambda request: (GROUP, request.group_id),
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda request: (GROUP, request.group_id),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda request: (GROUP, request.groups[0].group_id),
    ApiKey.INIT_PRODUCER_ID: _transactional("transactional_id"),
    ApiKey.ADD_PARTITIONS_TO_TXN: _transactional("v3_and_below_transactional_id"),
    ApiKey.ADD_OFFSETS_TO_TXN: _transactional("transactional_id"),
    ApiKey.END_TXN: _transactional("transactional_id"),
    ApiKey.FIND_COORDINATOR: lambda request: None,
    ApiKey.METADATA: lambda request: None,
    ApiKey.CREATE_TOPICS: lambda request: None,
    ApiKey.DELETE_TOPICS: lambda request: None,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda request: None,
    ApiKey.CREATE_PARTITIONS: lambda request: None,
    ApiKey.ALTER_CLIENT_QUOTAS: lambda request: None,
    ApiKey.UPDATE_FEATURES: lambda request: None,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda request: None,
    ApiKey.ELECT_LEADERS: lambda request: None,
    ApiKey.DESCRIBE_QUORUM: lambda request: None,
    ApiKey.REMOVE_RAFT_VOTER: lambda request: None,
}
"""The requests that workers send; each is for one partition or one key."""
NAMES_EPOCH = frozenset({ApiKey.FETCH, ApiKey.LIST_OFFSETS})


def has_error(message: Struct) -> bool:
    """Return whether any error code in an answer is set."""
    for name in message.FIELDS:
        value = getattr(message, name)
        if name.endswith("error_code") and value:
            return True
        if isinstance(value, list) and any(isinstance(each, Struct) and has_error(each) for each in value):
            return True
    return False


class ClusterClient:
    """Sends each request to the broker that it is for.

    Args:
        addresses: of all brokers.
        rng: chooses the broker when any will do.
        timeout_seconds: how long it waits for an answer.

    Attributes:
        last_asked: where the last request went that was for a partition or a coordinator.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        client_id: str,
        rng: random.Random,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._clients = {address: Client(address, client_id, timeout_seconds) for address in addresses}
        self._rng = rng
        self.last_asked: Address | None = None
        self._known: dict[Partition | Coordinator, Address] = {}
        self._epochs: dict[Partition, tuple[bytes, int]] = {}

    async def request(self, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        """Send one request to the broker that it is for, and return the answer.

        Raises:
            ConnectionError, asyncio.TimeoutError, asyncio.IncompleteReadError: no broker for it is known, or the answer did not come.
        """
        return await self.request_of(WHERE[key](message), key, version, message, response_class)

    async def request_of(self, where: Where, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        """Send one request to the broker that `where` names; see `request`."""
        address = await self._find(where) if where is not None else self._any()
        if where is not None:
            self.last_asked = address
        if isinstance(where, Partition) and key in NAMES_EPOCH:
            topics: Any = message.topics
            topics[0].partitions[0].current_leader_epoch = self._epochs[where][1]
        try:
            answer = await self._clients[address].request(key, version, message, response_class)
        except BaseException:
            self._forget(where)
            raise
        if where is not None and has_error(answer):
            self._forget(where)
        return answer

    async def request_at(self, address: Address, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        """Send one request to one broker; see `request`."""
        return await self._clients[address].request(key, version, message, response_class)

    async def find(self, partition: Partition) -> tuple[Address, bytes]:
        """Return where the leader of a partition is, and the id of its topic.

        Raises:
            ConnectionError, asyncio.TimeoutError, asyncio.IncompleteReadError: as `request`.
        """
        address = await self._find(partition)
        return address, self._epochs[partition][0]

    def forget(self, partition: Partition) -> None:
        """Look up the leader of a partition before the next request to it."""
        self._forget(partition)

    def drop(self) -> None:
        """Break all connections."""
        for client in self._clients.values():
            client.drop()

    def _any(self) -> Address:
        return self._rng.choice(list(self._clients))

    def _forget(self, where: Where) -> None:
        if where is not None:
            self._known.pop(where, None)

    async def _find(self, where: Partition | Coordinator) -> Address:
        found = self._known.get(where)
        if found is None:
            leader = self._leader(where) if isinstance(where, Partition) else self._coordinator(*where)
            found = self._known[where] = await leader
        return found

    async def _leader(self, partition: Partition) -> Address:
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=partition.topic)])
        asked = self._clients[self._any()]
        answer = await asked.request(ApiKey.METADATA, 12, request, MetadataResponse)
        topic = answer.topics[0]
        brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
        for each in topic.partitions:
            if each.partition_index == partition.index and each.leader_id in brokers:
                topic_id, epoch = self._epochs.get(partition, (b"", -1))
                # A topic that was created again begins with the first epoch again.
                if each.leader_epoch >= epoch or topic.topic_id != topic_id:
                    self._epochs[partition] = (topic.topic_id, each.leader_epoch)
                    return brokers[each.leader_id]
        await asyncio.sleep(0.05)
        raise NobodyToAsk(f"{partition.topic}-{partition.index} has no leader")

    async def _coordinator(self, kind: int, key: str) -> Address:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
        asked = self._clients[self._any()]
        answer = await asked.request(ApiKey.FIND_COORDINATOR, 4, request, FindCoordinatorResponse)
        found = answer.coordinators[0]
        if found.error_code:
            await asyncio.sleep(0.05)
            raise NobodyToAsk(f"{key} has no coordinator: {ErrorCode(found.error_code).name}")
        return str(found.host), int(found.port)
