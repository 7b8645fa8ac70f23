"""A member of a consumer group (KIP-848) that writes down when it owned which partition.

It owns a partition from the answer that assigns it until the answer that takes it away: it says so only in its next heartbeat. It also
gives up what it owns when it is fenced, leaves, or dies; and when its coordinator has not answered for a session, because the group may
then count it as gone. Only answers of a broker that led the group's partition in its newest epoch, and knew it, before and after the
request count (see `offset_watcher`): a replaced coordinator may answer for a while, here as in Apache Kafka.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.history import History, Lease
from tests.simulation.offset_watcher import CoordinatorOf
from tests.simulation.workload import LOST, NOT_YET

MEMBERS_GROUP = "members"
SESSION_SECONDS = 3.0
LONGEST_PAUSE_SECONDS = 1.0
REBALANCE_TIMEOUT_MS = 600_000
"""Longer than a run: no member is fenced because it revokes too slowly."""
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
LEAVES = -1
LEAVE_RATE, DEATH_RATE = 0.04, 0.04
Key = tuple[bytes, int]
"""A topic's id and a partition's index."""


class Member:
    """Joins, sends heartbeats, and now and then leaves or dies and comes back with another id, until stopped."""

    def __init__(
        self, name: str, topics: list[str], history: History, rng: random.Random, coordinator_of: CoordinatorOf
    ) -> None:
        self.name, self._topics, self._history, self._rng = name, topics, history, rng
        self._coordinator_of = coordinator_of
        self._lives = 0
        self._id = ""
        self._epoch = 0
        self._owned: dict[Key, Lease | None] = {}

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        self._begin_a_life()
        while True:
            is_leaving = False
            try:
                await self._heartbeat(client)
                if self._rng.random() < LEAVE_RATE:
                    is_leaving = True
                    self._give_up()
                    await self._ask(client, LEAVES)
                    self._begin_a_life()
                elif self._rng.random() < DEATH_RATE:
                    self._begin_a_life()
            except LOST:
                if is_leaving:
                    self._begin_a_life()
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    def _begin_a_life(self) -> None:
        self._give_up()
        self._lives += 1
        self._id, self._epoch = f"{self.name}-{self._lives}", 0

    def _give_up(self) -> None:
        self._release(list(self._owned))

    def _release(self, keys: list[Key]) -> None:
        for key in keys:
            lease = self._owned.pop(key)
            if lease is not None:
                lease.until = min(lease.until, asyncio.get_running_loop().time())

    async def _heartbeat(self, client: ClusterClient) -> None:
        before, sent_at = self._coordinator_of(MEMBERS_GROUP), asyncio.get_running_loop().time()
        answer = await self._ask(client, self._epoch)
        error = answer.error_code
        if error in FENCED:
            self._give_up()
            self._epoch = 0
        elif error == ErrorCode.NONE:
            is_current = before is not None and before == self._coordinator_of(MEMBERS_GROUP)
            self._epoch = answer.member_epoch
            if answer.assignment is not None:
                found = answer.assignment.topic_partitions
                self._follow({(bytes(each.topic_id), index) for each in found for index in each.partitions})
            if is_current and before is not None and client.last_asked == before[0]:
                self._prolong(sent_at + SESSION_SECONDS)
            self._history.heartbeats[self.name] += 1
        elif error not in NOT_YET:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    def _follow(self, assigned: set[Key]) -> None:
        self._release([key for key in self._owned if key not in assigned])
        for key in sorted(assigned):
            self._owned.setdefault(key, None)

    def _prolong(self, until: float) -> None:
        now = asyncio.get_running_loop().time()
        for key, lease in self._owned.items():
            # Behind the end of its lease another member may have had the partition: then this is a new one.
            if lease is None or lease.until < now:
                lease = self._owned[key] = Lease(self._id, key, now)
                self._history.leases.append(lease)
            lease.until = until

    async def _ask(self, client: ClusterClient, epoch: int) -> Any:
        """Send a heartbeat that says everything, so that the answer does."""
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, index in self._owned:
            by_topic.setdefault(topic_id, []).append(index)
        owned = ConsumerGroupHeartbeatRequest.TopicPartitions
        request = ConsumerGroupHeartbeatRequest(
            group_id=MEMBERS_GROUP,
            member_id=self._id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self._topics,
            topic_partitions=[owned(topic_id=topic, partitions=indexes) for topic, indexes in by_topic.items()],
        )
        return await client.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse)
