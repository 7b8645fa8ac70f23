"""A member of a consumer group (KIP-848)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.history import History
from tests.simulation.offset_watcher import CoordinatorOf
from tests.simulation.owner import SESSION_SECONDS, Owner
from tests.simulation.workload import LOST, NOT_YET

MEMBERS_GROUP = "members"
LONGEST_PAUSE_SECONDS = 1.0
REBALANCE_TIMEOUT_MS = 600_000
"""Longer than a run: no member is fenced because it revokes too slowly."""
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
LEAVES = -1
LEAVE_RATE, DEATH_RATE = 0.04, 0.04


class Member:
    """Joins, sends heartbeats, and now and then leaves or dies and comes back with another id, until stopped."""

    def __init__(
        self, name: str, topics: list[str], history: History, rng: random.Random, coordinator_of: CoordinatorOf
    ) -> None:
        self.name, self._topics, self._history, self._rng = name, topics, history, rng
        self._owner = Owner(name, MEMBERS_GROUP, history, rng, coordinator_of)
        self._lives = 0

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        self._begin_a_life()
        while True:
            is_leaving = False
            try:
                await self._heartbeat(client)
                await self._owner.commit_now_and_then(client)
                if self._rng.random() < LEAVE_RATE:
                    is_leaving = True
                    self._owner.give_up()
                    await self._ask(client, LEAVES)
                    self._begin_a_life()
                elif self._rng.random() < DEATH_RATE:
                    self._begin_a_life()
            except LOST:
                if is_leaving:
                    self._begin_a_life()
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    def _begin_a_life(self) -> None:
        self._owner.give_up()
        self._lives += 1
        self._owner.member_id, self._owner.epoch = f"{self.name}-{self._lives}", 0

    async def _heartbeat(self, client: ClusterClient) -> None:
        owner = self._owner
        before, sent_at = owner.coordinator(), asyncio.get_running_loop().time()
        answer = await self._ask(client, owner.epoch)
        error = answer.error_code
        if error in FENCED:
            owner.give_up()
            owner.epoch = 0
        elif error == ErrorCode.NONE:
            owner.epoch = answer.member_epoch
            if answer.assignment is not None:
                found = answer.assignment.topic_partitions
                owner.follow((bytes(each.topic_id), index) for each in found for index in each.partitions)
            if owner.was_asked(before, client):
                owner.prolong(sent_at + SESSION_SECONDS)
            self._history.heartbeats[self.name] += 1
        elif error not in NOT_YET:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    async def _ask(self, client: ClusterClient, epoch: int) -> Any:
        """Send a heartbeat that says everything, so that the answer does."""
        by_topic: dict[Any, list[int]] = {}
        for topic_id, index in self._owner.owned:
            by_topic.setdefault(topic_id, []).append(index)
        owned = ConsumerGroupHeartbeatRequest.TopicPartitions
        request = ConsumerGroupHeartbeatRequest(
            group_id=MEMBERS_GROUP,
            member_id=self._owner.member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self._topics,
            topic_partitions=[owned(topic_id=topic, partitions=indexes) for topic, indexes in by_topic.items()],
        )
        return await client.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse)
