"""A member of a share group (KIP-932): it acquires records, and accepts, releases or rejects them, or lets their locks expire.

It has a session with each broker that leads partitions of it. It writes down each delivery as a hold. A hold is judged only if the broker
led the partition in its newest epoch, and knew it, before and after the request: a replaced leader may deliver what another one has
finished, here as in Apache Kafka, because an acquisition is in the leader's memory only. A leader releases what a member holds when the
connection of its session breaks, which it may see before the member does. So the member is known to hold a record only up to the last
moment at which the leader has continued the session.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.log.log_config import INT64_MAX
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.share.acknowledgement import AcknowledgeType
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import History, Partition
from tests.simulation.share_history import Hold, Leader, Record
from tests.simulation.workload import LOST, NOT_YET

SHARE_GROUP = "shared"
LOCK_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 0.6
LEAVES, FINAL_EPOCH = -1, -1
LEAVE_RATE, DEATH_RATE = 0.03, 0.03
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
NO_SESSION = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})
NOT_HERE = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_SERVER_ERROR})
"""What else a broker answers that has just started, or whose share coordinator does not write."""
NOT_HELD = frozenset({ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST})
"""The second one if the offsets are behind all that the leader has delivered: it has become leader since."""
FINISHING = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
IGNORED = AcknowledgeType.GAP
"""Nothing is sent for these records: their locks expire."""
KINDS = (AcknowledgeType.ACCEPT,) * 7 + (AcknowledgeType.RELEASE,) * 2 + (AcknowledgeType.REJECT, IGNORED)
LeaderOf = Callable[[Partition], Leader | None]


class Session:
    """A member's session with one broker.

    Attributes:
        epoch: of the next request; 0 opens the session.
        partitions: that it reads.
        gone: those whose leader is another broker now.
        holds: records that were delivered and not given up.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.partitions: dict[Partition, None] = {}
        self.gone: dict[Partition, None] = {}
        self.holds: list[Hold] = []

    def give_up(self, holds: Iterable[Hold]) -> None:
        """Hold these no longer, from now on: the next request may say so."""
        now = asyncio.get_running_loop().time()
        for hold in list(holds):
            hold.until = min(hold.until, now)
            if hold in self.holds:
                self.holds.remove(hold)


class ShareReader:
    """Acquires records and acknowledges them, for one member id.

    Args:
        leader_of: the address and the epoch of a partition's leader; None while nobody leads, or the leader does not know it.
    """

    def __init__(self, history: History, rng: random.Random, leader_of: LeaderOf) -> None:
        self.member_id = ""
        self._history, self._rng, self._leader_of = history, rng, leader_of
        self._sessions: dict[Address, Session] = {}

    def forget(self) -> None:
        """Give up everything, and say nothing of it."""
        for session in self._sessions.values():
            session.give_up(session.holds)
        self._sessions.clear()

    async def leave(self, client: ClusterClient) -> None:
        """End all sessions, which releases what is held."""
        for address, session in list(self._sessions.items()):
            session.give_up(session.holds)
            if self._sessions.pop(address, None) is None:
                continue  # Its broker ended it, which the end of another session has told.
            if session.epoch and session.partitions:
                await self._acknowledge(client, next(iter(session.partitions)), FINAL_EPOCH, [])

    async def fetch(self, client: ClusterClient, partition: Partition, wait_ms: int) -> tuple[Address, list[Hold]]:
        """Send one ShareFetch to the leader of a partition, and return where, and what it has delivered of all its partitions."""
        address, topic_id = await client.find(partition)
        session = self._sessions.setdefault(address, Session())
        session.gone.pop(partition, None)
        forgotten = ShareFetchRequest.ForgottenTopic(
            topic_id=topic_id, partitions=[each.index for each in session.gone]
        )
        wanted = ShareFetchRequest.FetchPartition(partition_index=partition.index)
        most = self._rng.choice((1, 3, 20))
        request = ShareFetchRequest(
            group_id=SHARE_GROUP,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=most,
            share_acquire_mode=self._rng.randrange(2),
            topics=[ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[wanted])],
            forgotten_topics_data=[forgotten] if session.gone and session.epoch else [],
        )
        for each in session.gone:
            session.partitions.pop(each, None)
        session.partitions[partition] = None
        session.gone.clear()
        before = {each: self._leader_of(each) for each in session.partitions}
        sent_at = asyncio.get_running_loop().time()
        # Lost until it is there: the client may end meanwhile, and the leader has delivered.
        asked = list(session.partitions)
        self._history.shared.lost_answers.update(asked)
        answer = await self._ask(client, partition, session, ApiKey.SHARE_FETCH, request, ShareFetchResponse)
        if answer is None:
            return address, []
        self._history.shared.lost_answers.subtract(asked)
        found: list[Hold] = []
        for data in (data for topic in answer.responses for data in topic.partitions):
            each = Partition(partition.topic, data.partition_index)
            if data.error_code:
                self._check(data.error_code)
                session.gone[each] = None
                continue
            leader = before.get(each)
            is_led = leader is not None and leader == self._leader_of(each) and leader[0] == address
            found += self._deliver(each, data, leader if is_led else None, sent_at)
        session.holds += found
        return address, found

    def _deliver(self, partition: Partition, data: Any, leader: Leader | None, sent_at: float) -> list[Hold]:
        """Write down what one answer says of a partition."""
        now = asyncio.get_running_loop().time()
        batches = memoryview(data.records or b"")
        values = {
            record.offset: record.value or b""
            for at, header in iter_batches(batches)
            for record in iter_records(batches[at : at + header.size])
        }
        seen = self._history.seen.setdefault(partition, {})
        # A request of a client that has ended may still be appended when the log has been read for the last time.
        _, end = self._history.final_bounds.get(partition, (0, INT64_MAX))
        found = []
        for acquired in data.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                if offset in values and offset < end:
                    seen[offset] = values[offset]
                hold = Hold(
                    self.member_id,
                    partition,
                    offset,
                    acquired.delivery_count,
                    leader,
                    asked_at=sent_at,
                    since=now,
                    until=sent_at + LOCK_SECONDS,
                    is_held_at=sent_at,
                )
                found.append(hold)
        self._history.shared.holds += found
        return found

    async def finish(self, client: ClusterClient, address: Address, holds: list[tuple[Hold, int]]) -> None:
        """Acknowledge records of one partition in one request, each in its way."""
        session, shared = self._sessions.get(address), self._history.shared
        partition = holds[0][0].partition
        if session is None or (await client.find(partition))[0] != address:
            return  # Its leader has moved. The lock is gone.
        now = asyncio.get_running_loop().time()
        leader = self._leader_of(partition)
        held = [hold for hold, _ in holds if hold.until > now and hold.leader == leader]
        session.give_up(hold for hold, _ in holds)
        shared.asked_to_finish.update(
            {Record(partition, hold.offset): None for hold, kind in holds if kind in FINISHING}
        )
        error = await self._acknowledge(client, partition, session.epoch, holds)
        answered_at = asyncio.get_running_loop().time()
        if error == ErrorCode.NONE:
            for hold, kind in holds:
                hold.is_held_at = now  # Otherwise the leader would have refused.
                if kind in FINISHING:
                    shared.finished.setdefault(Record(partition, hold.offset), answered_at)
        is_led = leader is not None and leader == self._leader_of(partition) and leader[0] == address
        is_certain = is_led and len(held) == len(holds)
        is_certain = is_certain and all(answered_at < hold.asked_at + LOCK_SECONDS for hold in held)
        if error in NOT_HELD and is_certain:
            offsets = [hold.offset for hold in held]
            shared.refused.append(f"{self.member_id} held {offsets} of {partition}, and could not acknowledge them")

    async def _acknowledge(
        self, client: ClusterClient, partition: Partition, epoch: int, holds: list[tuple[Hold, int]]
    ) -> int | None:
        """Return the error code; None if there is no session any more."""
        address, topic_id = await client.find(partition)
        batches = [
            ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=hold.offset, last_offset=hold.offset, acknowledge_types=[kind]
            )
            for hold, kind in sorted(holds, key=lambda each: each[0].offset)
        ]
        asked = ShareAcknowledgeRequest.AcknowledgePartition(
            partition_index=partition.index, acknowledgement_batches=batches
        )
        topic = ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=topic_id, partitions=[asked])
        request = ShareAcknowledgeRequest(
            group_id=SHARE_GROUP, member_id=self.member_id, share_session_epoch=epoch, topics=[topic] if holds else []
        )
        session = self._sessions.get(address, Session())
        answer = await self._ask(
            client, partition, session, ApiKey.SHARE_ACKNOWLEDGE, request, ShareAcknowledgeResponse
        )
        if answer is None or not answer.responses:
            return None
        error = int(answer.responses[0].partitions[0].error_code)
        if error not in NOT_HELD and error:
            self._check(error)
        return error

    async def _ask(
        self, client: ClusterClient, partition: Partition, session: Session, key: ApiKey, request: Any, response: Any
    ) -> Any:
        """Continue a session with one request; return the answer, or None if there is no such session."""
        sent_at = asyncio.get_running_loop().time()
        address = (await client.find(partition))[0]
        try:
            answer = await client.request_of(partition, key, 2, request, response)
        except LOST:
            self._end(address, session)
            raise
        if answer.error_code:
            if answer.error_code not in NO_SESSION:
                self._check(answer.error_code)
            self._end(address, session)
            return None
        session.epoch += 1
        for hold in session.holds:
            hold.is_held_at = max(hold.is_held_at, sent_at)
        return answer

    def _end(self, address: Address, session: Session) -> None:
        if self._sessions.get(address) is session:
            del self._sessions[address]

    def _check(self, error: int) -> None:
        if error not in NOT_YET and error not in NOT_HERE:
            raise AssertionError(f"{self.member_id} was answered {ErrorCode(error).name}")


class ShareMember:
    """Joins, sends heartbeats, reads, and now and then leaves or dies and comes back with another id, until stopped."""

    def __init__(self, name: str, topic: str, history: History, rng: random.Random, leader_of: LeaderOf) -> None:
        self.name, self._topic, self._history, self._rng = name, topic, history, rng
        self._reader = ShareReader(history, rng, leader_of)
        self._lives = self._epoch = 0
        self._assigned: list[Partition] = []

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        self._begin_a_life(client)
        while True:
            try:
                await self._heartbeat(client)
                if self._assigned:
                    await self._read(client)
                if self._rng.random() < LEAVE_RATE:
                    await self._reader.leave(client)
                    await self._ask(client, LEAVES)
                    self._begin_a_life(client)
                elif self._rng.random() < DEATH_RATE:
                    self._begin_a_life(client)
            except LOST:
                pass
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    def _begin_a_life(self, client: ClusterClient) -> None:
        self._reader.forget()
        client.drop()
        self._lives += 1
        self._reader.member_id, self._epoch, self._assigned = f"{self.name}-{self._lives}", 0, []

    async def _read(self, client: ClusterClient) -> None:
        address, holds = await self._reader.fetch(client, self._rng.choice(self._assigned), wait_ms=300)
        if self._rng.random() < 0.3:
            await asyncio.sleep(self._rng.random() * LOCK_SECONDS * 1.2)
        for partition in dict.fromkeys(hold.partition for hold in holds):
            kinds = [(hold, self._rng.choice(KINDS)) for hold in holds if hold.partition == partition]
            chosen = [(hold, kind) for hold, kind in kinds if kind != IGNORED]
            if chosen:
                await self._reader.finish(client, address, chosen)

    async def _heartbeat(self, client: ClusterClient) -> None:
        answer = await self._ask(client, self._epoch)
        error = answer.error_code
        if error in FENCED:
            self._epoch = 0
        elif error == ErrorCode.NONE:
            self._epoch = answer.member_epoch
            if answer.assignment is not None:
                found = answer.assignment.topic_partitions
                self._assigned = [Partition(self._topic, index) for each in found for index in each.partitions]
            self._history.heartbeats[self.name] += 1
        elif error not in NOT_YET:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    async def _ask(self, client: ClusterClient, epoch: int) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=SHARE_GROUP,
            member_id=self._reader.member_id,
            member_epoch=epoch,
            subscribed_topic_names=[self._topic],
        )
        return await client.request(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request, ShareGroupHeartbeatResponse)
