"""A snapshot on its way: pieces, errors, a leader that changes meanwhile, a disk that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft.peer_messages import Answer, Fetched, FetchFrom, FetchSnapshot, Request, SnapshotPiece
from barnabas.raft.ready import Ready
from barnabas.raft.seams import Batch, SnapshotId
from barnabas.raft.snapshot_fetch import SnapshotFetch
from barnabas.raft.voters import VoterEndpoint, VoterSet
from tests.coordinator.virtual_loop import VirtualLoop
from tests.raft.member_of_three import ONE, THREE, TIMEOUTS, TWO, VOTERS, Member
from tests.raft.memory_log import MemoryLog

WANTED = SnapshotId(9, 3)
DATA = b"0123456789"


class Incoming:
    def __init__(self) -> None:
        self.data = b""
        self.is_complete = self.is_discarded = False
        self.error: Exception | None = None

    @property
    def size(self) -> int:
        return len(self.data)

    def append(self, data: Batch) -> None:
        self.data += bytes(data)

    async def complete(self) -> None:
        if self.error is not None:
            raise self.error
        self.is_complete = True

    def discard(self) -> None:
        self.is_discarded = True


class World:
    """Node 1 follows node 2 in epoch 4 and wants a snapshot; it is the node's log and peers as well."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.member = Member(1)
        self.incoming: list[Incoming] = []
        self.asked: list[tuple[int, FetchSnapshot]] = []
        self.answers: list[asyncio.Future[SnapshotPiece]] = []
        self.begun_at: list[Incoming] = []
        self.faults: list[BaseException] = []
        self.error: Exception | None = None
        self.lines: list[str] = []
        self.fetch = SnapshotFetch(
            self.member.node,
            self,  # type: ignore[arg-type]
            self,
            self.loop,
            self.carry_out,
            self.faults.append,
            lambda level, about, line: self.lines.append(line),
        )
        fetch = self.member.follow(TWO, 4)
        ready = self.member.answer(fetch, Fetched(4, 2, snapshot=WANTED))
        assert ready.snapshot == WANTED
        self.fetch.begin(WANTED)

    def carry_out(self, ready: Ready) -> None:
        self.member.do(ready)
        if ready.snapshot is not None:
            self.fetch.begin(ready.snapshot)

    def receive_snapshot(self, snapshot: SnapshotId) -> Incoming:
        assert snapshot == WANTED
        self.incoming.append(Incoming())
        return self.incoming[-1]

    def begin_at(self, incoming: Incoming) -> VoterSet:
        if self.error is not None:
            raise self.error
        self.begun_at.append(incoming)
        self.member.log = MemoryLog()
        return VOTERS

    async def send(self, to: int, request: Request) -> Answer:
        raise AssertionError("the driver sends these")

    def endpoint_of(self, node_id: int) -> VoterEndpoint | None:
        return None

    def learn(self, node_id: int, endpoints: Sequence[VoterEndpoint]) -> None: ...

    def close(self) -> None: ...

    async def fetch_snapshot(self, to: int, request: FetchSnapshot) -> SnapshotPiece:
        self.asked.append((to, request))
        self.answers.append(self.loop.create_future())
        return await self.answers[-1]

    def answer(self, answer: SnapshotPiece | Exception) -> None:
        if isinstance(answer, Exception):
            self.answers[-1].set_exception(answer)
        else:
            self.answers[-1].set_result(answer)
        self.loop.run_ready()


def piece(start: int, end: int) -> SnapshotPiece:
    return SnapshotPiece(4, 2, WANTED, len(DATA), start, DATA[start:end])


def test_the_log_begins_at_a_snapshot_of_which_all_pieces_are_here() -> None:
    world = World()
    world.answer(piece(0, 4))
    assert world.asked == [(2, FetchSnapshot(4, ONE, WANTED, 0)), (2, FetchSnapshot(4, ONE, WANTED, 4))]
    world.answer(piece(4, 10))
    (incoming,) = world.begun_at
    assert (incoming.data, incoming.is_complete) == (DATA, True)
    assert world.member.node.high_watermark == 9
    assert world.member.sent[0].request == FetchFrom(4, ONE, 9, 3, 9)


def test_pieces_keep_the_leader_alive() -> None:
    world = World()
    world.member.now_ms += TIMEOUTS.fetch - 1
    world.answer(piece(0, 4))
    world.member.wait(TIMEOUTS.fetch - 1)
    world.answer(piece(4, 10))
    assert len(world.begun_at) == 1


@pytest.mark.parametrize(
    "answer",
    [
        KafkaError(ErrorCode.NETWORK_EXCEPTION),
        SnapshotPiece(4, 2, WANTED, error=ErrorCode.SNAPSHOT_NOT_FOUND),
        SnapshotPiece(4, 2, SnapshotId(8, 3), 10, 0, b"other"),
        SnapshotPiece(4, 2, WANTED, 10, 3, b"elsewhere"),
        SnapshotPiece(4, 2, WANTED, 10, 0, b""),
    ],
    ids=["lost", "not there", "another snapshot", "another position", "nothing"],
)
def test_after_a_failure_and_a_pause_the_next_fetch_asks_which_snapshot_is_needed(
    answer: SnapshotPiece | Exception,
) -> None:
    world = World()
    world.answer(answer)
    assert world.incoming[0].is_discarded
    assert world.member.node.wanted_snapshot == WANTED
    world.loop.advance(TIMEOUTS.retry_backoff)
    assert world.member.node.wanted_snapshot is None
    assert world.member.sent[0].request == FetchFrom(4, ONE, 1, 1)
    assert world.begun_at == []


def test_a_damaged_snapshot_is_taken_again() -> None:
    world = World()
    world.incoming[0].error = KafkaError(ErrorCode.CORRUPT_MESSAGE)
    world.answer(piece(0, 10))
    world.loop.advance(TIMEOUTS.retry_backoff)
    assert world.begun_at == []
    world.member.answer(world.member.sent[0], Fetched(4, 2, snapshot=WANTED))
    world.fetch.begin(WANTED)
    world.answer(piece(0, 10))
    assert world.begun_at == [world.incoming[1]]


def test_what_a_former_leader_sends_is_dropped() -> None:
    world = World()
    world.member.follow(THREE, 5)
    world.answer(piece(0, 10))
    assert world.begun_at == []
    assert world.incoming[0].is_discarded
    assert world.incoming[0].data == b""


def test_a_snapshot_that_another_leader_has_too_is_taken_from_there() -> None:
    """The pieces of two leaders are never put together."""
    world = World()
    fetch = world.member.follow(THREE, 5)
    world.carry_out(world.member.answer(fetch, Fetched(5, 3, snapshot=WANTED)))
    world.loop.run_ready()
    assert world.incoming[0].is_discarded
    world.answer(SnapshotPiece(5, 3, WANTED, 10, 0, DATA))
    assert world.begun_at == [world.incoming[1]]
    assert [to for to, _ in world.asked] == [2, 3]


def test_a_log_that_cannot_be_replaced_ends_the_nodes_part() -> None:
    world = World()
    world.error = OSError(5, "no")
    world.answer(piece(0, 10))
    assert world.faults == [world.error]
    assert world.member.node.high_watermark == -1
