"""The order in which the driver carries out what a node asks for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.clock import Clock
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft import raft_node
from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader
from barnabas.raft.raft_driver import AppendFailed, RaftDriver
from barnabas.raft.raft_node import BatchTooLarge, QuorumNotSupported, RaftNode
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.record_batch import read_header

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


def driver(tape: Tape, *others: Voter) -> RaftDriver:
    voters = VoterSetHistory(VotersFrom(0, VoterSet.of([Voter(1, DIRECTORY), *others])))
    clock = Clock(lambda: 7_000, lambda: 5)
    node = RaftNode(ReplicaKey(1, DIRECTORY), voters, ElectionState(), tape, clock, random.Random(1))  # type: ignore[arg-type]
    made = RaftDriver(node, tape, tape)  # type: ignore[arg-type]
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
