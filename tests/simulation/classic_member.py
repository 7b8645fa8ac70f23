"""A member of a classic group: it joins, assigns the partitions if it leads, sends heartbeats, and gives everything up to rejoin."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Any

from barnabas.group.classic.consumer_protocol import read_assignment, write_assignment
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.history import History, Partition
from tests.simulation.offset_watcher import CoordinatorOf
from tests.simulation.owner import SESSION_SECONDS, Owner
from tests.simulation.workload import LOST, NOT_YET

CLASSIC_GROUP = "classic members"
LONGEST_PAUSE_SECONDS = 1.0
REBALANCE_TIMEOUT_MS = 5000
"""Longer than a session: who owned a partition in a generation has given it up before the next one begins without him."""
REJOINS = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
LEAVE_RATE, DEATH_RATE = 0.04, 0.02
_SUBSCRIPTION_VERSION = 0


class ClassicMember:
    """Joins, sends heartbeats, and now and then leaves or dies and comes back as another member, until stopped."""

    def __init__(
        self,
        name: str,
        partitions: Sequence[Partition],
        history: History,
        rng: random.Random,
        coordinator_of: CoordinatorOf,
    ) -> None:
        self.name, self._partitions, self._history, self._rng = name, partitions, history, rng
        self._owner = Owner(name, CLASSIC_GROUP, history, rng, coordinator_of)
        self._has_joined = False

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        while True:
            with suppress(*LOST):
                await self._step(client)
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    async def _step(self, client: ClusterClient) -> None:
        if not self._has_joined:
            await self._join(client)
        if not self._has_joined:
            return
        await self._heartbeat(client)
        await self._owner.commit_now_and_then(client)
        if self._rng.random() < LEAVE_RATE:
            former = self._owner.member_id
            self._begin_a_life()
            member = LeaveGroupRequest.MemberIdentity(member_id=former)
            request = LeaveGroupRequest(group_id=CLASSIC_GROUP, members=[member])
            await client.request(ApiKey.LEAVE_GROUP, 5, request, LeaveGroupResponse)
        elif self._rng.random() < DEATH_RATE:
            self._begin_a_life()

    def _begin_a_life(self) -> None:
        self._rejoin()
        self._owner.member_id = ""

    def _rejoin(self) -> None:
        self._owner.give_up()
        self._has_joined = False

    def _refused(self, error: int) -> None:
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self._begin_a_life()
        elif error in REJOINS:
            self._rejoin()
        elif error not in NOT_YET:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    async def _join(self, client: ClusterClient) -> None:
        topics = sorted({each.topic for each in self._partitions})
        metadata = b"\0\0" + ConsumerProtocolSubscription(topics=topics).encode(_SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=CLASSIC_GROUP,
            session_timeout_ms=int(SESSION_SECONDS * 1000),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._owner.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="in turn", metadata=metadata)],
        )
        answer = await client.request(ApiKey.JOIN_GROUP, 9, request, JoinGroupResponse)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._owner.member_id = answer.member_id
            return
        if answer.error_code:
            self._refused(answer.error_code)
            return
        self._owner.member_id, self._owner.epoch = answer.member_id, answer.generation_id
        await self._sync(client, self._assign(answer) if answer.leader == answer.member_id else [])

    def _assign(self, joined: Any) -> list[Any]:
        """Return every member's part: a partition each in turn, and another one first in the next generation."""
        members = sorted(each.member_id for each in joined.members)
        first = joined.generation_id % len(members)
        parts: dict[str, dict[str, list[int]]] = {each: {} for each in members}
        for member, (topic, index) in zip(cycle([*members[first:], *members[:first]]), self._partitions, strict=False):
            parts[member].setdefault(topic, []).append(index)
        owned = ConsumerProtocolAssignment.TopicPartition
        of = SyncGroupRequest.SyncGroupRequestAssignment
        return [
            of(
                member_id=member,
                assignment=write_assignment(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[owned(topic=topic, partitions=each) for topic, each in part.items()]
                    ),
                    _SUBSCRIPTION_VERSION,
                ),
            )
            for member, part in parts.items()
        ]

    async def _sync(self, client: ClusterClient, assignments: list[Any]) -> None:
        """Send the assignment, or wait for it. It is owned from the next heartbeat on, which also begins a session."""
        request = SyncGroupRequest(
            group_id=CLASSIC_GROUP,
            generation_id=self._owner.epoch,
            member_id=self._owner.member_id,
            protocol_type="consumer",
            protocol_name="in turn",
            assignments=assignments,
        )
        answer = await client.request(ApiKey.SYNC_GROUP, 5, request, SyncGroupResponse)
        if answer.error_code:
            self._refused(answer.error_code)
            return
        parts = read_assignment(answer.assignment).assigned_partitions if answer.assignment else []
        self._owner.follow((str(each.topic), index) for each in parts for index in each.partitions)
        self._has_joined = True

    async def _heartbeat(self, client: ClusterClient) -> None:
        owner = self._owner
        before, sent_at = owner.coordinator(), asyncio.get_running_loop().time()
        request = HeartbeatRequest(group_id=CLASSIC_GROUP, generation_id=owner.epoch, member_id=owner.member_id)
        answer = await client.request(ApiKey.HEARTBEAT, 4, request, HeartbeatResponse)
        if answer.error_code:
            self._refused(answer.error_code)
            return
        if owner.was_asked(before, client):
            owner.prolong(sent_at + SESSION_SECONDS)
        self._history.heartbeats[self.name] += 1
