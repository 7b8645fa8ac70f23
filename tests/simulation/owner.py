"""What the members of all kinds of groups do with the partitions they own: they write down since when and until when, and commit.

A member owns a partition from the answer that assigns it until it gives it up: it says so only in its next request. It also gives up what
it owns when it is fenced, leaves, or dies; and when its coordinator has not answered for a session, because the group may then count it as
gone. Only answers of a broker that led the group's partition in its newest epoch, and knew it, before and after the request count (see
`offset_watcher`): a replaced coordinator may answer for a while, here as in Apache Kafka.

A new owner asks for the committed offset, and commits each time the next one. So no owner may see less than a former one was promised.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.history import History, Lease, Owned, OwnersRead
from tests.simulation.offset_watcher import CoordinatorOf
from tests.simulation.workload import NOT_YET

SESSION_SECONDS = 3.0
COMMIT_RATE = 0.5
"""After how many of its answers a member commits."""
BY_ID, BY_NAME = 10, 9
"""The versions of OffsetCommit and OffsetFetch whose topics are ids, or names."""
GONE = frozenset(
    {
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_ID,  # of a broker that has just started
    }
)
"""What a member is answered that no longer owns what it thinks."""


class Owner:
    """The part of a member that knows what it owns.

    Args:
        name: of all its lives; each has an id of its own.
        coordinator_of: see `offset_watcher`.

    Attributes:
        member_id: of its present life.
        epoch: the member's epoch, or its generation.
    """

    def __init__(
        self, name: str, group: str, history: History, rng: random.Random, coordinator_of: CoordinatorOf
    ) -> None:
        self.name, self.group, self.history, self.rng = name, group, history, rng
        self.member_id, self.epoch = "", 0
        self._coordinator_of = coordinator_of
        self._owned: dict[Owned, Lease | None] = {}
        self._offsets: dict[Owned, int] = {}

    @property
    def owned(self) -> list[Owned]:
        return list(self._owned)

    def coordinator(self) -> Any:
        """Return what to compare with later: the group's present coordinator, or None while nobody coordinates it."""
        return self._coordinator_of(self.group)

    def was_asked(self, before: Any, client: ClusterClient) -> bool:
        """Return whether the coordinator of a moment before answered the client, and still is the coordinator."""
        return before is not None and before == self.coordinator() and client.last_asked == before[0]

    def follow(self, assigned: Iterable[Owned]) -> None:
        """Own these and no others; there is no lease yet of what is new."""
        wanted = sorted(assigned)
        gone = [key for key in self._owned if key not in wanted]
        for lease in map(self._owned.get, gone):
            if lease is not None:
                lease.is_asked_back = True
        self.give_up(gone)
        for key in wanted:
            self._owned.setdefault(key, None)

    def give_up(self, keys: Iterable[Owned] | None = None) -> None:
        """Give up some partitions, or all."""
        for key in list(self._owned if keys is None else keys):
            lease = self._owned.pop(key)
            self._offsets.pop(key, None)
            if lease is not None:
                lease.until = min(lease.until, asyncio.get_running_loop().time())

    def prolong(self, until: float) -> None:
        """Note that the coordinator has said that all of these are owned until then. An answer that comes later says nothing."""
        now = asyncio.get_running_loop().time()
        self.history.member_epochs[self.member_id] = self.epoch
        if until < now:
            return
        for key, lease in self._owned.items():
            # Behind the end of its lease another member may have had the partition: then this is a new one.
            if lease is None or lease.until < now:
                lease = self._owned[key] = Lease(self.group, self.member_id, key, now)
                self._offsets.pop(key, None)
                self.history.leases.append(lease)
            lease.until, lease.epoch = until, self.epoch

    async def commit_now_and_then(self, client: ClusterClient) -> None:
        """Commit the next offset of a partition; of one that is new, ask for the offset first."""
        keys = [key for key, lease in self._owned.items() if lease is not None]
        if not keys or self.rng.random() >= COMMIT_RATE:
            return
        key = self.rng.choice(keys)
        if key not in self._offsets and not await self._ask_for_offset(client, key):
            return
        self._offsets[key] += 1
        offset = self._offsets[key]
        error = await commit(client, Lease(self.group, self.member_id, key, 0.0, 0.0, self.epoch), offset)
        if error == ErrorCode.NONE:
            promised = self.history.owners_offsets
            promised[self.group, key] = max(offset, promised.get((self.group, key), -1))
        elif error not in NOT_YET and error not in GONE:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    async def _ask_for_offset(self, client: ClusterClient, key: Owned) -> bool:
        """Ask for the committed offset of a partition; return whether it is known now."""
        at_least, before = self.history.owners_offsets.get((self.group, key), -1), self.coordinator()
        topic, index = key
        names = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopics(**names, partition_indexes=[index])],
        )
        version = BY_ID if isinstance(topic, bytes) else BY_NAME
        request = OffsetFetchRequest(groups=[wanted])
        answer = (await client.request(ApiKey.OFFSET_FETCH, version, request, OffsetFetchResponse)).groups[0]
        found = answer.topics[0].partitions[0] if answer.topics else None
        error = answer.error_code or (found.error_code if found is not None else ErrorCode.NONE)
        if error and error not in NOT_YET and error not in GONE:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")
        if error or found is None or not self.was_asked(before, client):
            return False
        self._offsets[key] = int(found.committed_offset)
        self.history.owners_reads.append(OwnersRead(self.group, self.member_id, key, at_least, self._offsets[key]))
        return True


async def commit(client: ClusterClient, lease: Lease, offset: int) -> int:
    """Commit an offset as the member with a lease, at its epoch; return the error code."""
    topic, index = lease.partition
    names = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    wanted = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=lease.group,
        generation_id_or_member_epoch=lease.epoch,
        member_id=lease.member,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(**names, partitions=[wanted])],
    )
    version = BY_ID if isinstance(topic, bytes) else BY_NAME
    answer = await client.request(ApiKey.OFFSET_COMMIT, version, request, OffsetCommitResponse)
    return int(answer.topics[0].partitions[0].error_code)
