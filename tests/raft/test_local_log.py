"""What a node knows of its log: flushes, truncations, and where another log differs."""

from __future__ import annotations

import pytest

from barnabas.raft import local_log
from barnabas.raft.local_log import LocalLog
from barnabas.raft.peer_messages import LogEnd
from barnabas.raft.seams import SnapshotId
from barnabas.raft.start_of_epoch import first_voters
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.records.control import build_control_batch
from tests.raft.member_of_three import VOTERS, batch
from tests.raft.memory_log import MemoryLog, Snapshot


def local(*epochs: int) -> LocalLog:
    log = MemoryLog()
    for offset, epoch in enumerate(epochs):
        log.append(batch(offset, epoch))
    return LocalLog(log, VoterSetHistory(VotersFrom(0, VOTERS)))


def behind_snapshot(*epochs: int) -> LocalLog:
    """A log that begins at the snapshot (10, 3), followed by records of these epochs; a later one ends at 12."""
    log = MemoryLog()
    log.snapshots = [Snapshot(SnapshotId(10, 3), (), VOTERS)]
    for offset, epoch in enumerate(epochs, 10):
        log.append(batch(offset, epoch))
    log.snapshots.append(Snapshot(SnapshotId(12, 4), (), VOTERS))
    return LocalLog(log, VoterSetHistory(VotersFrom(0, VOTERS)))


def test_what_is_appended_is_durable_when_its_flush_has_ended() -> None:
    log = local(1)
    log.appended(2, 1)
    token = log.flush_token()
    log.appended(1, 1)
    assert log.flushed(token)
    assert (log.durable_end, log.end_offset, log.is_durable) == (3, 4, False)


def test_a_flush_that_began_before_a_truncation_counts_for_nothing() -> None:
    log = local(1, 1, 1)
    log.appended(2, 2)
    token = log.flush_token()
    log.truncate(1)
    log.appended(4, 3)
    assert not log.flushed(token)
    assert (log.durable_end, log.end_offset) == (1, 5)


def test_a_batch_above_the_epoch_of_the_fetch_is_not_appended() -> None:
    """KAFKA-18723: another leader may have written it while this one answered."""
    log = local(1)
    assert log.received(batch(1, 2), leader_epoch=2)
    assert not log.received(batch(2, 3), leader_epoch=2)
    assert log.end == LogEnd(2, 2)


def test_a_truncation_takes_back_the_voters_that_it_cuts_off() -> None:
    log = local(1)
    more = VoterSet.of(VOTERS.voters[:2])
    control = build_control_batch(first_voters(more), timestamp=0, base_offset=1, leader_epoch=1)
    assert log.received(control, leader_epoch=1)
    assert log.history.last == VotersFrom(2, more)
    log.truncate(1)
    assert log.history.last.voters == VOTERS
    assert log.last_epoch == 1


def test_an_append_that_the_log_rejected_is_taken_back() -> None:
    log = local(1)
    log.appended(2, 1)
    log.append_failed(1)
    assert log.end_offset == 1


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (0, 0, None),
        (5, 5, None),
        (2, 2, None),
        (3, 2, LogEnd(2, 2)),  # It holds more of epoch 2.
        (4, 3, LogEnd(2, 2)),  # It holds an epoch that this log does not know.
        (6, 5, LogEnd(5, 5)),
    ],
)
def test_where_another_log_differs(offset: int, last_epoch: int, diverging: LogEnd | None) -> None:
    assert local(1, 2, 4, 4, 5).differs_at(offset, last_epoch) == diverging


@pytest.mark.parametrize(
    ("diverging", "end_offset"),
    [
        (LogEnd(3, 3), 3),  # Both know epoch 3, and the leader's ends earlier.
        (LogEnd(3, 9), 4),
        (LogEnd(2, 3), 2),  # This log does not know epoch 2: it goes back to the end of epoch 1.
    ],
)
def test_the_common_end_is_the_smaller_one(diverging: LogEnd, end_offset: int) -> None:
    assert local(1, 1, 3, 3, 5).common_end(diverging) == end_offset


@pytest.mark.parametrize(
    ("offset", "last_epoch", "is_needed"),
    [
        (9, 3, True),  # The log begins later.
        (10, 3, False),
        (10, 2, True),  # It ends where the snapshot ends, and holds something else.
        (11, 2, True),  # Its last epoch is older than the snapshot's.
        (11, 3, False),
        (13, 4, False),
    ],
)
def test_when_a_replica_needs_the_latest_snapshot(offset: int, last_epoch: int, is_needed: bool) -> None:
    """As Kafka's `validateOffsetAndEpoch`."""
    assert behind_snapshot(3, 4, 4).snapshot_for(offset, last_epoch) == (SnapshotId(12, 4) if is_needed else None)


def test_a_fetch_reads_at_least_one_batch_and_not_much_more(monkeypatch: pytest.MonkeyPatch) -> None:
    log = local(1, 1, 1, 1)
    size = len(log.reader.batches[0].data)  # type: ignore[attr-defined]
    assert len(log.read(1)) == 3
    monkeypatch.setattr(local_log, "MAX_FETCH_BYTES", 2 * size)
    assert len(log.read(1)) == 2
    monkeypatch.setattr(local_log, "MAX_FETCH_BYTES", 1)
    assert len(log.read(1)) == 1
    assert log.read(4) == ()


def test_a_log_that_begins_at_0_needs_no_snapshot() -> None:
    assert local(1).snapshot_for(0, 0) is None


def test_a_log_begins_at_a_snapshot() -> None:
    log = local(1, 1)
    token = log.flush_token()
    log.begin_at(SnapshotId(10, 3), VOTERS)
    assert (log.end, log.durable_end) == (LogEnd(3, 10), 10)
    assert not log.flushed(token)
