"""Drivers of several nodes on one loop in virtual time; what they send goes through the bytes of Kafka's messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.answer_messages import NodeAddress, answer_message, read_answer, rejection
from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import (
    Answer,
    BeginEpoch,
    EndEpoch,
    FetchFrom,
    FetchSnapshot,
    Request,
    SnapshotPiece,
    Vote,
)
from barnabas.raft.quorum_state import QuorumTimeouts
from barnabas.raft.raft_driver import RaftDriver
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_messages import Sender, read_request, request_message
from barnabas.raft.roles import Role
from barnabas.raft.seams import Batch, ReplicatedLog
from barnabas.raft.snapshot_messages import piece_message, read_piece, read_snapshot_request, snapshot_request
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.records.record_batch import read_header
from barnabas.steps import sleep
from tests.coordinator.virtual_loop import VirtualLoop
from tests.raft.memory_log import MemoryLog

CLUSTER = "cluster"
TIMEOUTS = QuorumTimeouts(election=1_000, fetch=2_000, request=2_000, retry_backoff=20)
VERSIONS = {Vote: 2, BeginEpoch: 1, EndEpoch: 1, FetchFrom: 18}
ONE_WAY_MS, FLUSH_MS = 2, 3


class Log(ReplicatedLog, Protocol):
    """What a test asks a log for, besides what the driver does."""

    def values(self, end_offset: int) -> list[bytes]: ...

    def contents(self) -> list[bytes]:
        """The batches."""


class SlowLog(MemoryLog):
    """A log in memory. A flush takes `FLUSH_MS`; the log records the driver's truncations and high watermarks."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop
        self.truncated_to: list[int] = []
        self.high_watermarks: list[int] = []

    def append(self, batch: Batch, leader_epoch: int | None = None) -> None:
        assert leader_epoch == read_header(batch).partition_leader_epoch
        super().append(batch)

    def flush(self, done: Callable[[], None]) -> None:
        count = len(self.batches)

        def finished() -> None:
            self.durable = min(max(self.durable, count), len(self.batches))
            done()

        self.loop.call_later(FLUSH_MS / 1000, finished)

    def truncate_to(self, offset: int) -> None:
        self.truncated_to.append(offset)
        super().truncate_to(offset)

    def set_high_watermark(self, offset: int) -> None:
        self.high_watermarks.append(offset)

    def contents(self) -> list[bytes]:
        return [batch.data for batch in self.batches]


L = TypeVar("L", bound=Log)


class Member(Generic[L]):
    """One node with its disk; it is its own listener, its own election store and its own `Peers`."""

    def __init__(self, quorum: Quorum[L], key: ReplicaKey, log: L) -> None:
        self.quorum = quorum
        self.key = key
        self.log = log
        self.told: list[tuple[str, int]] = []
        clock = Clock(lambda: quorum.loop.now_ms, lambda: quorum.loop.now_ms)
        history = VoterSetHistory(quorum.first)
        node = RaftNode(key, history, ElectionState(), self.log, clock, random.Random(key.id), TIMEOUTS)
        self.driver = RaftDriver(node, self.log, self, self, quorum.loop)
        self.driver.add_listener(self)

    def __repr__(self) -> str:
        return f"<Member {self.driver.node!r}>"

    @property
    def role(self) -> Role:
        return self.driver.node.role

    def values(self) -> list[bytes]:
        """What the log holds up to its high watermark."""
        return self.log.values(self.driver.node.high_watermark)

    # Listener and election store

    def read(self) -> ElectionState | None:
        return None

    def on_high_watermark(self, offset: int) -> None:
        self.told.append(("committed", offset))

    def on_leader(self, epoch: int) -> None:
        self.told.append(("leads", epoch))

    def on_resigned(self, epoch: int) -> None:
        self.told.append(("resigned", epoch))

    def write(self, state: ElectionState) -> None:
        self.told.append(("epoch", state.epoch))

    # Peers

    def endpoint_of(self, node_id: int) -> VoterEndpoint | None:
        return None

    def learn(self, node_id: int, endpoints: Sequence[VoterEndpoint]) -> None:
        """The network knows where all nodes are."""

    def close(self) -> None:
        """Nothing is open."""

    async def fetch_snapshot(self, to: int, request: FetchSnapshot) -> SnapshotPiece:
        data = snapshot_request(request, Sender(CLUSTER)).encode(1)
        await self.quorum.travel(self.key.id, to)
        asked = read_snapshot_request(FetchSnapshotRequest.decode(data, 1), CLUSTER)
        self.quorum.carried(self.key.id, to, asked)
        data = piece_message(self.quorum.members[to].driver.answer_snapshot(asked), 1).encode(1)
        await self.quorum.travel(to, self.key.id)
        piece = read_piece(FetchSnapshotResponse.decode(data, 1))
        self.quorum.carried(to, self.key.id, piece)
        return piece

    async def send(self, to: int, request: Request) -> Answer:
        version = VERSIONS[type(request)]
        message = request_message(request, version, Sender(CLUSTER))
        received = type(message).decode(message.encode(version), version)
        await self.quorum.travel(self.key.id, to)
        peer = self.quorum.members[to].driver
        try:
            asked = read_request(received, version, CLUSTER)
            self.quorum.carried(self.key.id, to, asked)
            answered = await peer.answer(asked)
            response = answer_message(asked, answered, version, NodeAddress(answered.leader_id, "localhost", 9093))
        except KafkaError as error:
            response = rejection(received, error.code)
        data = response.encode(version)
        await self.quorum.travel(to, self.key.id)
        answer = read_answer(type(response).decode(data, version), version)
        self.quorum.carried(to, self.key.id, answer)
        return answer


class Quorum(Generic[L]):
    """Voters 1 to `voters`, observers after them, and the network between them.

    Args:
        is_static: a configuration names the voters, without their directories (kraft.version 0).
    """

    def __init__(
        self, make_log: Callable[[VirtualLoop], L], voters: int = 3, observers: int = 0, *, is_static: bool = False
    ) -> None:
        self.loop = VirtualLoop()
        self.cut: set[int] = set()
        keys = [ReplicaKey(n, bytes([n]) * 16) for n in range(1, voters + observers + 1)]
        named = [Voter(key.id, ZERO_UUID if is_static else key.directory_id) for key in keys[:voters]]
        self.first = VotersFrom(0, VoterSet.of(named), kraft_version=0 if is_static else 1)
        self.members = {key.id: Member(self, key, make_log(self.loop)) for key in keys}
        for member in self.members.values():
            member.driver.start()

    async def travel(self, sender: int, receiver: int) -> None:
        """Wait as long as a message is on its way; it is lost if one of its ends is cut off."""
        await sleep(ONE_WAY_MS / 1000, self.loop)
        if self.cut & {sender, receiver}:
            await sleep(TIMEOUTS.request / 1000, self.loop)
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)

    def carried(self, sender: int, receiver: int, message: Request | Answer | FetchSnapshot | SnapshotPiece) -> None:
        """A message has arrived; a subclass may write it down."""

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 20_000) -> None:
        until_ms = self.loop.now_ms + limit_ms
        while not condition():
            assert self.loop.now_ms < until_ms, f"not within {limit_ms} ms: {list(self.members.values())}"
            self.loop.advance(1)

    def leader(self) -> Member[L]:
        """Wait for a leader that is not cut off, and return it."""

        def leading() -> list[Member[L]]:
            return [
                member
                for member in self.members.values()
                if member.key.id not in self.cut
                and member.driver.node.is_leader
                and ("leads", member.driver.node.epoch) in member.told
            ]

        self.run_until(lambda: len(leading()) == 1)
        return leading()[0]
