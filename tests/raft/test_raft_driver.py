"""The order in which the driver carries out what a node asks for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from barnabas.clock import Clock
from barnabas.protocol.errors import ErrorCode, KafkaError, RetriableError
from barnabas.raft import raft_node
from barnabas.raft.election_state import ElectionState
from barnabas.raft.epochs import LAST_EPOCH
from barnabas.raft.leader import Leader
from barnabas.raft.peer_messages import (
    Answer,
    BeginEpoch,
    EpochAnswer,
    Fetched,
    FetchFrom,
    FetchSnapshot,
    LogEnd,
    Request,
    SnapshotPiece,
    Vote,
    VoteAnswer,
)
from barnabas.raft.peers import Peers
from barnabas.raft.raft_driver import ELECTION_LINES_MAX, AppendFailed, NobodyListens, RaftDriver
from barnabas.raft.raft_node import BatchTooLarge, QuorumNotSupported, RaftNode
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import read_header
from barnabas.steps import start
from tests.coordinator.virtual_loop import VirtualLoop

DIRECTORY = b"d" * 16


class Tape:
    """Log, election store and listener in one: notes every call."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.end_offset = self.start_offset = self.last_epoch = 0
        self.held: list[Callable[[], None]] = []
        self.hold = False
        self.error: Exception | None = None
        self.epochs: list[int] = []
        self.timestamps: list[int] = []

    def write(self, state: ElectionState) -> None:
        self.calls.append(("election", state.epoch, state.leader_id))

    def append(self, batch: bytearray, leader_epoch: int) -> None:
        if self.error is not None:
            raise self.error
        self.epochs.append(leader_epoch)
        self.timestamps.append(read_header(batch).max_timestamp)
        self.end_offset = read_header(batch).next_offset
        self.calls.append(("append", self.end_offset))

    def earliest_snapshot(self) -> None:
        return None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return (epoch, self.end_offset)

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        return 9 if snapshot == SnapshotId(4, 1) else None

    def read_snapshot_piece(self, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes:
        return b"012345678"[position : position + max_bytes]

    def epoch_at(self, end_offset: int) -> int:
        return 0

    def read(self, from_offset: int, to_offset: int) -> list[bytearray]:
        return [build_batch([(0, None, b"v", ())], base_offset=from_offset, leader_epoch=1)]

    def truncate_to(self, offset: int) -> None:
        self.end_offset = offset
        self.calls.append(("truncate", offset))

    def flush(self, done: Callable[[], None]) -> None:
        self.calls.append("flush")
        if self.hold:
            self.held.append(done)
        else:
            done()

    def set_high_watermark(self, offset: int) -> None:
        self.calls.append(("hw", offset))

    def on_high_watermark(self, offset: int) -> None:
        self.calls.append(("committed", offset))

    def on_leader(self, epoch: int) -> None:
        self.calls.append(("leader", epoch))

    def on_resigned(self, epoch: int) -> None:
        self.calls.append(("resigned", epoch))


def driver(
    tape: Tape,
    *others: Voter,
    peers: Peers | None = None,
    loop: VirtualLoop | None = None,
    on_fault: Callable[[BaseException], None] | None = None,
    epoch: int = -1,
) -> RaftDriver:
    voters = VoterSetHistory(VotersFrom(0, VoterSet.of([Voter(1, DIRECTORY), *others])))
    clock = Clock(lambda: 7_000, lambda: loop.now_ms if loop else 5)
    node = RaftNode(ReplicaKey(1, DIRECTORY), voters, ElectionState(epoch), tape, clock, random.Random(1))  # type: ignore[arg-type]
    made = RaftDriver(node, tape, tape, peers, loop, on_fault)  # type: ignore[arg-type]
    made.add_listener(tape)
    return made


def test_election_state_is_durable_before_the_log_is_written() -> None:
    tape = Tape()
    driver(tape).start()
    assert tape.calls == [
        ("election", 1, 1),
        ("append", 1),
        "flush",
        ("hw", 1),
        ("committed", 1),
        ("leader", 1),
    ]


def test_other_voters_are_refused_in_words() -> None:
    tape = Tape()
    with pytest.raises(QuorumNotSupported, match=r"can only be the sole voter of its quorum; the voters are 1, 2$"):
        driver(tape, Voter(2, DIRECTORY)).start()
    assert tape.calls == []


def test_the_log_receives_each_batch_with_the_epoch() -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    raft.append([b"a"])
    assert tape.epochs == [1, 1]


def test_appends_during_a_flush_share_the_next_one() -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    tape.hold = True
    tape.calls.clear()
    assert [raft.append([b"a"]), raft.append([b"b"]), raft.append([b"c"])] == [1, 2, 3]
    assert tape.calls == [("append", 2), "flush", ("append", 3), ("append", 4)]
    tape.held.pop()()
    assert tape.calls[4:] == [("hw", 2), ("committed", 2), "flush"]
    tape.held.pop()()
    assert tape.calls[7:] == [("hw", 4), ("committed", 4)]
    assert not tape.held


@pytest.mark.parametrize("error", [OSError("full"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")])
def test_a_batch_that_the_log_rejects_leaves_the_node_as_it_was(error: Exception) -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    tape.calls.clear()
    tape.error = error
    with pytest.raises(AppendFailed, match="full"):
        raft.append([b"a", b"b"])
    assert (tape.calls, raft.node.end_offset) == ([], 1)
    tape.error = None
    assert raft.append([b"a"]) == 1
    assert tape.calls == [("append", 2), "flush", ("hw", 2), ("committed", 2)]


def test_a_batch_that_is_too_large_is_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raft_node, "MAX_BATCH_BYTES", 200)
    tape = Tape()
    raft = driver(tape)
    raft.start()
    tape.calls.clear()
    with pytest.raises(BatchTooLarge, match="1 records make a batch of"):
        raft.append([bytes(200)])
    assert tape.calls == []
    assert raft.append([bytes(10)]) == 1


def test_nothing_is_told_after_the_close() -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    tape.hold = True
    raft.append([b"a"])
    tape.calls.clear()
    raft.close()
    tape.held.pop()()
    assert tape.calls == []


def test_a_leader_resigns_and_leads_a_later_epoch() -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    tape.calls.clear()
    raft.resign()
    assert (tape.calls, raft.node.role) == ([("resigned", 1)], Role.RESIGNED)
    tape.calls.clear()
    raft.campaign()
    assert tape.calls == [("election", 3, 1), ("append", 2), "flush", ("hw", 2), ("committed", 2), ("leader", 3)]


def test_batches_have_wall_time_and_progress_has_monotonic_time() -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    assert tape.timestamps == [7_000]
    assert isinstance(raft.node.quorum.state, Leader)
    assert raft.node.quorum.state.progress[1].last_fetch_ms == 5


# Several voters

TWO = ReplicaKey(2, b"e" * 16)
OBSERVER = ReplicaKey(9, b"o" * 16)


class HeldPeers:
    """Peers whose answers are the test's."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.sent: list[tuple[int, Request]] = []
        self.answers: list[asyncio.Future[Answer]] = []
        self.learned: dict[int, tuple[VoterEndpoint, ...]] = {}
        self.is_closed = False

    async def send(self, to: int, request: Request) -> Answer:
        self.sent.append((to, request))
        self.answers.append(self.loop.create_future())
        return await self.answers[-1]

    async def fetch_snapshot(self, to: int, request: FetchSnapshot) -> SnapshotPiece:
        raise AssertionError("no snapshot is asked for")

    def endpoint_of(self, node_id: int) -> VoterEndpoint | None:
        return VoterEndpoint("CONTROLLER", "two", 9093) if node_id == 2 else None

    def learn(self, node_id: int, endpoints: Sequence[VoterEndpoint]) -> None:
        self.learned[node_id] = tuple(endpoints)

    def close(self) -> None:
        self.is_closed = True

    def answer(self, answer: Answer | Exception) -> None:
        """Answer the last request."""
        if isinstance(answer, Exception):
            self.answers[-1].set_exception(answer)
        else:
            self.answers[-1].set_result(answer)
        self.loop.run_ready()


def one_of_two(tape: Tape) -> tuple[RaftDriver, HeldPeers, VirtualLoop]:
    """Node 1 of the voters 1 and 2, before the first election."""
    loop = VirtualLoop()
    peers = HeldPeers(loop)
    raft = driver(tape, Voter(*TWO), peers=peers, loop=loop)
    raft.start()
    return raft, peers, loop


def follower_of_two(tape: Tape) -> tuple[RaftDriver, HeldPeers, VirtualLoop]:
    """Node 1 follows node 2 in epoch 3, and has sent its first Fetch."""
    raft, peers, loop = one_of_two(tape)
    begun = start(raft.answer(BeginEpoch(3, 2, raft.node.key)), loop)
    assert begun.result() == EpochAnswer(3, 2)
    assert peers.sent[-1] == (2, FetchFrom(3, raft.node.key, 0, 0))
    return raft, peers, loop


def test_a_sole_voter_needs_no_turn_of_the_loop() -> None:
    loop = VirtualLoop()
    tape = Tape()
    raft = driver(tape, peers=HeldPeers(loop), loop=loop)
    raft.start()
    raft.append([b"a"])
    assert tape.calls[-2:] == [("hw", 2), ("committed", 2)]
    assert (loop.ready, loop.due_in_ms) == (0, [60_000]), "its log line"


def test_a_voter_stands_when_its_time_has_come() -> None:
    tape = Tape()
    raft, peers, loop = one_of_two(tape)
    assert isinstance(peers.sent[0][1], FetchFrom)
    loop.advance(2_000)
    assert peers.sent[-1] == (2, Vote(0, raft.node.key, TWO, LogEnd(0, 0), pre_vote=True))
    peers.answer(VoteAnswer(0, is_granted=True))
    assert peers.sent[-1] == (2, Vote(1, raft.node.key, TWO, LogEnd(0, 0)))
    assert tape.calls[-1] == ("election", 1, -1), "its own vote is on disk before it asks for another"
    peers.answer(VoteAnswer(1, is_granted=True))
    assert (raft.node.role, peers.sent[-1]) == (Role.LEADER, (2, BeginEpoch(1, 1, TWO)))


def test_a_request_without_an_answer_is_sent_again_after_a_pause() -> None:
    raft, peers, loop = follower_of_two(Tape())
    count = len(peers.sent)
    peers.answer(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert len(peers.sent) == count
    loop.advance(19)
    assert len(peers.sent) == count
    loop.advance(1)
    assert peers.sent[count:] == [(2, FetchFrom(3, raft.node.key, 0, 0))]


def test_a_follower_writes_the_epochs_that_the_leader_wrote() -> None:
    tape = Tape()
    raft, peers, _ = follower_of_two(tape)
    batches = tuple(build_batch([(0, None, b"v", ())], base_offset=n, leader_epoch=n + 1) for n in range(3))
    peers.answer(Fetched(3, 2, 2, batches=batches))
    assert tape.epochs == [1, 2, 3]
    assert tape.calls[-3:] == [("hw", 2), ("committed", 2), "flush"]
    assert peers.sent[-1] == (2, FetchFrom(3, raft.node.key, 3, 3, 2))


def test_a_follower_cuts_off_what_its_leader_does_not_have() -> None:
    tape = Tape()
    raft, peers, _ = follower_of_two(tape)
    batches = tuple(build_batch([(0, None, b"v", ())], base_offset=n, leader_epoch=1) for n in range(3))
    peers.answer(Fetched(3, 2, 0, batches=batches))
    peers.answer(Fetched(3, 2, 0, diverging=LogEnd(0, 0)))
    assert tape.calls[-2:] == [("truncate", 0), "flush"]
    assert peers.sent[-1] == (2, FetchFrom(3, raft.node.key, 0, 0, 0))


def test_a_sole_voter_that_hears_of_a_later_epoch_leads_again() -> None:
    loop = VirtualLoop()
    raft = driver(Tape(), loop=loop)
    raft.start()
    start(raft.answer(Vote(8, TWO, raft.node.key, LogEnd(7, 9))), loop)
    assert raft.node.role is Role.UNATTACHED
    loop.advance(2_000)
    assert (raft.node.role, raft.node.epoch) == (Role.LEADER, 9)


def test_a_vote_is_on_disk_before_it_is_given() -> None:
    tape = Tape()
    raft, _, loop = one_of_two(tape)
    answer = start(raft.answer(Vote(3, TWO, raft.node.key, LogEnd(0, 0))), loop)
    assert answer.result() == VoteAnswer(3, is_granted=True)
    assert tape.calls[-1] == ("election", 3, -1)


def test_a_failed_disk_ends_the_node_and_no_vote_is_given() -> None:
    tape, loop = Tape(), VirtualLoop()
    faults: list[BaseException] = []
    peers = HeldPeers(loop)
    raft = driver(tape, Voter(*TWO), peers=peers, loop=loop, on_fault=faults.append)
    raft.start()
    error = OSError("gone")

    def fail(state: ElectionState) -> None:
        raise error

    tape.write = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="gone"):
        start(raft.answer(Vote(3, TWO, raft.node.key, LogEnd(0, 0))), loop).result()
    assert faults == [error]
    count = len(peers.sent)
    loop.advance(60_000)
    assert (raft.closed, len(peers.sent)) == (True, count)


def test_a_step_that_fails_ends_the_node() -> None:
    """A leader that would take committed records from it is a fault that nobody else hears of."""
    loop, faults, tape = VirtualLoop(), list[BaseException](), Tape()
    peers = HeldPeers(loop)
    raft = driver(tape, Voter(*TWO), peers=peers, loop=loop, on_fault=faults.append)
    raft.start()
    start(raft.answer(BeginEpoch(3, 2, raft.node.key)), loop)
    batches = tuple(build_batch([(0, None, b"v", ())], base_offset=n, leader_epoch=1) for n in range(3))
    peers.answer(Fetched(3, 2, 3, batches=batches))
    peers.answer(Fetched(3, 2, 3, diverging=LogEnd(0, 0)))
    (fault,) = faults
    assert "the leader would take committed records" in str(fault)
    assert (raft.closed, peers.is_closed) == (True, True)


def test_a_closed_driver_sends_nothing_and_answers_nobody() -> None:
    raft, peers, loop = follower_of_two(Tape())
    count = len(peers.sent)
    raft.close()
    loop.run_ready()
    assert peers.answers[-1].cancelled()
    assert loop.timers_set == 0
    loop.advance(60_000)
    assert len(peers.sent) == count
    with pytest.raises(KafkaError) as raised:
        start(raft.answer(BeginEpoch(4, 2, raft.node.key)), loop).result()
    assert raised.value.code is ErrorCode.BROKER_NOT_AVAILABLE


# Fetches that wait


def fetching(tape: Tape) -> tuple[RaftDriver, VirtualLoop, asyncio.Future[Answer]]:
    """A sole voter, and an observer that has everything and waits for news."""
    loop = VirtualLoop()
    raft = driver(tape, loop=loop)
    raft.start()
    waits = start(raft.answer(FetchFrom(1, OBSERVER, 0, 0, 1)), loop)
    assert isinstance(waits.result(), Fetched)
    waits = start(raft.answer(FetchFrom(1, OBSERVER, 1, 0, 1)), loop)
    loop.run_ready()
    assert not waits.done()
    return raft, loop, waits


def test_a_fetch_is_answered_when_there_are_records() -> None:
    tape = Tape()
    raft, loop, waits = fetching(tape)
    tape.hold = True
    raft.append([b"a"])
    raft.append([b"b"])
    assert not waits.done(), "the answer takes along what the same turn appends"
    loop.run_ready()
    answer = waits.result()
    assert isinstance(answer, Fetched)
    assert (answer.high_watermark, len(answer.batches), answer.error) == (1, 1, ErrorCode.NONE)


def test_a_fetch_is_answered_when_the_high_watermark_moves() -> None:
    tape = Tape()
    raft, loop, _ = fetching(tape)
    tape.hold = True
    raft.append([b"a"])
    loop.run_ready()
    waits = start(raft.answer(FetchFrom(1, OBSERVER, 2, 1, 1)), loop)
    loop.run_ready()
    assert not waits.done()
    tape.held.pop()()
    loop.run_ready()
    assert waits.result() == Fetched(1, 1, high_watermark=2)


def test_a_fetch_is_answered_when_the_leader_is_none_any_more() -> None:
    raft, loop, waits = fetching(Tape())
    raft.resign()
    loop.run_ready()
    assert waits.result() == Fetched(1, 1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_fetch_that_waited_counts_once_as_a_sign_of_life() -> None:
    raft, loop, waits = fetching(Tape())
    asked_ms = loop.now_ms
    loop.advance(100)
    raft.append([b"a"])
    loop.run_ready()
    assert waits.done()
    assert isinstance(raft.node.quorum.state, Leader)
    assert raft.node.quorum.state.observers[OBSERVER].last_fetch_ms == asked_ms


def test_a_fetch_without_news_is_answered_when_its_time_is_over() -> None:
    _, loop, waits = fetching(Tape())
    loop.advance(499)
    assert not waits.done()
    loop.advance(1)
    assert waits.result() == Fetched(1, 1, high_watermark=1)


def test_a_fetch_that_does_not_want_to_wait_is_answered_at_once() -> None:
    raft, loop, _ = fetching(Tape())
    answer = start(raft.answer(FetchFrom(1, OBSERVER, 1, 0, 1, max_wait_ms=0)), loop)
    assert answer.result() == Fetched(1, 1, high_watermark=1)


def test_a_fetch_that_waits_is_rejected_at_the_close() -> None:
    raft, loop, waits = fetching(Tape())
    raft.close()
    loop.run_ready()
    error = waits.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_new_leader_says_where_it_is_before_it_is_asked() -> None:
    raft, peers, loop = one_of_two(Tape())
    endpoint = VoterEndpoint("CONTROLLER", "two.example", 9093)
    start(raft.answer(BeginEpoch(3, 2, raft.node.key, (endpoint,))), loop)
    assert peers.learned == {2: (endpoint,)}
    assert peers.sent[-1][0] == 2
    start(raft.answer(BeginEpoch(2, 2, raft.node.key, (endpoint._replace(port=1),))), loop)
    assert peers.learned == {2: (endpoint,)}, "an old leader says nothing"


@pytest.mark.parametrize(
    ("epoch", "leader_id"),
    [((1 << 31) - 1, 2), (2_000, 2), (1, 2), (5, -1), (5, 1), (3, 9)],
    ids=["last epoch", "far ahead", "stale", "nobody", "this node", "second leader"],
)
def test_an_address_is_not_learned_from_what_is_not_accepted(epoch: int, leader_id: int) -> None:
    """One frame made a follower dial any address, before it had looked at the epoch."""
    raft, peers, loop = one_of_two(Tape())
    start(raft.answer(BeginEpoch(3, 2, raft.node.key)), loop)
    endpoint = VoterEndpoint("CONTROLLER", "foreign.example", 9093)
    start(raft.answer(BeginEpoch(epoch, leader_id, raft.node.key, (endpoint,))), loop)
    assert peers.learned == {}


def test_a_node_with_a_new_disk_learns_the_address_of_the_leader_that_asks_for_its_old_one() -> None:
    raft, peers, loop = one_of_two(Tape())
    endpoint = VoterEndpoint("CONTROLLER", "two.example", 9093)
    start(raft.answer(BeginEpoch(3, 2, ReplicaKey(1, b"x" * 16), (endpoint,))), loop)
    assert peers.learned == {2: (endpoint,)}


def test_many_elections_are_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """A peer can cause an election with each frame."""
    caplog.set_level("INFO", "barnabas.raft")
    raft, _, loop = one_of_two(Tape())
    for epoch in range(2, 1_002):
        start(raft.answer(BeginEpoch(epoch, 2, raft.node.key)), loop)
    raft.close()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == ELECTION_LINES_MAX + 1
    assert lines[-1].startswith("Node 2 leads the quorum in epoch 1001 (98")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not for you."),
            "This node cannot talk to node 2 of the quorum at its listener CONTROLLER (two:9093): Not for you."
            " (is this node in its super.users?)",
        ),
        (
            KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "Authentication failed."),
            "This node cannot talk to node 2 of the quorum at its listener CONTROLLER (two:9093): Authentication failed."
            "; a setting of this listener alone begins with listener.name.controller.",
        ),
        (
            KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "two:9093 is a listener with TLS: set security.protocol to SSL"),
            "This node cannot talk to node 2 of the quorum at its listener CONTROLLER (two:9093): two:9093 is a listener with TLS:"
            " set security.protocol to SSL; a node has the protocol of CONTROLLER in listener.security.protocol.map",
        ),
        (
            KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the certificate of two:9093 is not trusted"),
            "This node cannot talk to node 2 of the quorum at its listener CONTROLLER (two:9093): the certificate of two:9093 is"
            " not trusted; a setting of this listener alone begins with listener.name.controller.",
        ),
        (NobodyListens("nobody"), ""),
        (RetriableError(ErrorCode.BROKER_NOT_AVAILABLE, "away"), ""),
    ],
    ids=["not allowed", "wrong password", "other security", "not trusted", "down", "away"],
)
def test_the_log_says_what_keeps_a_node_out(error: KafkaError, line: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "barnabas.raft")
    raft, peers, _ = follower_of_two(Tape())
    peers.answer(error)
    raft.close()
    assert caplog.messages == ([line] if line else [])


def test_the_only_voter_does_not_start_in_the_last_epoch() -> None:
    with pytest.raises(QuorumNotSupported, match="in epoch 2147483646 of the quorum, after which there is no other"):
        driver(Tape(), epoch=LAST_EPOCH).start()


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (FetchSnapshot(1, TWO, SnapshotId(4, 1), 2, 3), SnapshotPiece(1, 1, SnapshotId(4, 1), 9, 2, b"234")),
        (
            FetchSnapshot(1, TWO, SnapshotId(5, 1), 0),
            SnapshotPiece(1, 1, SnapshotId(5, 1), error=ErrorCode.SNAPSHOT_NOT_FOUND),
        ),
        (
            FetchSnapshot(1, TWO, SnapshotId(4, 1), 9),
            SnapshotPiece(1, 1, SnapshotId(4, 1), error=ErrorCode.POSITION_OUT_OF_RANGE),
        ),
        (
            FetchSnapshot(1, TWO, SnapshotId(4, 1), 0, 0),
            SnapshotPiece(1, 1, SnapshotId(4, 1), error=ErrorCode.INVALID_REQUEST),
        ),
        (
            FetchSnapshot(2, TWO, SnapshotId(4, 1), 0),
            SnapshotPiece(1, 1, SnapshotId(4, 1), error=ErrorCode.UNKNOWN_LEADER_EPOCH),
        ),
    ],
    ids=["a piece", "no such snapshot", "behind the end", "nothing wanted", "another epoch"],
)
def test_the_leader_answers_pieces_of_its_snapshots(request_: FetchSnapshot, answer: SnapshotPiece) -> None:
    tape = Tape()
    raft = driver(tape)
    raft.start()
    assert raft.answer_snapshot(request_) == answer
    raft.close()
    with pytest.raises(KafkaError):
        raft.answer_snapshot(request_)
