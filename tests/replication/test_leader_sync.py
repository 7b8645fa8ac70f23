"""With `barnabas.flush.before.ack`: what is acknowledged when, at the leader and as a sole replica."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.awaited_commit import AwaitedCommit, AwaitedSync, DelayedCommit
from barnabas.replication.awaited_offset import AwaitedOffset
from barnabas.replication.leader_sync import LeaderSync
from barnabas.replication.partition import Partition
from barnabas.simulation.disk import SimDisk
from tests.replication.following import registration
from tests.replication.hosting import batch
from tests.replication.syncing import SYNCED, SyncedNode, Thread


def alone(node: SyncedNode) -> Partition:
    return node.lead(registration(replicas=(1,)))


def outcome(awaited: AwaitedOffset) -> ErrorCode | None:
    awaited.settle()
    return awaited.error_code


def test_a_sole_replica_commits_what_it_has_synced_and_one_sync_is_for_all_that_waits() -> None:
    node = SyncedNode()
    partition = alone(node)
    for value in (b"a", b"b", b"c"):
        node.append(value)
    assert partition.log.high_watermark == 0
    assert len(node.thread.waiting) == 1, "one sync at a time"
    node.thread.next()
    assert (partition.log.high_watermark, node.moved) == (1, 1)
    node.thread.next()
    assert (partition.log.high_watermark, node.moved) == (3, 2)
    assert not node.thread.waiting
    assert not partition.awaits_sync


def test_the_leader_counts_itself_only_when_it_has_synced() -> None:
    node = SyncedNode()
    partition = node.lead(registration())
    node.append(b"a")
    commit, sync = AwaitedCommit(partition, 1), AwaitedSync(partition, 1)
    assert not partition.update_follower(2, 1)
    assert not partition.update_follower(3, 1)
    assert (partition.log.high_watermark, outcome(commit), outcome(sync)) == (0, None, None)
    node.thread.next()
    assert partition.log.high_watermark == 1
    assert outcome(commit) is outcome(sync) is ErrorCode.NONE


def test_acks_1_waits_for_the_leader_alone() -> None:
    node = SyncedNode()
    partition = node.lead(registration())
    node.append(b"a")
    sync = AwaitedSync(partition, 1)
    assert outcome(sync) is None
    node.thread.next()
    assert (partition.log.high_watermark, outcome(sync)) == (0, ErrorCode.NONE)
    assert node.syncs == [partition], "who waits is woken"


def test_a_failed_sync_fails_who_waits_and_the_replica_makes_way() -> None:
    node = SyncedNode()
    partition = node.lead(registration())
    node.append(b"a")
    commit, sync = AwaitedCommit(partition, 1), AwaitedSync(partition, 1)
    node.thread.next(OSError(5, "Input/output error"))
    assert outcome(commit) is outcome(sync) is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.disk_failures == [partition]
    assert not node.thread.waiting, "nothing is synced after a failure"
    with pytest.raises(KafkaStorageError):
        node.append(b"b")


def test_a_sole_replica_stays_after_a_failed_sync_as_after_a_failed_write() -> None:
    node = SyncedNode()
    partition = alone(node)
    node.append(b"a")
    node.thread.next(OSError(5, "Input/output error"))
    assert not node.disk_failures
    assert outcome(AwaitedCommit(partition, 1)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.log.high_watermark == 0


@pytest.mark.parametrize("replicas", [(1,), (1, 2, 3)])
def test_the_brokers_own_append_fails_with_the_sync(replicas: tuple[int, ...]) -> None:
    node = SyncedNode()
    partition = node.lead(registration(replicas=replicas))
    loop = asyncio.new_event_loop()
    first, second = DelayedCommit(loop, partition, 0), DelayedCommit(loop, partition, 1)
    for value in (b"a", b"b"):
        node.append(value)
    if len(replicas) == 1:
        node.thread.next()
    first.notified(0)
    assert first.is_finished == (len(replicas) == 1), "its record is synced"
    node.thread.next(OSError(5, "Input/output error"))
    second.notified(0)
    error = second.future.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    loop.close()


def test_a_sync_that_began_before_a_truncation_counts_for_nothing() -> None:
    node = SyncedNode()
    partition = node.lead(registration())
    for value in (b"a", b"b"):
        node.append(value)
    node.thread.next()
    assert len(node.thread.waiting) == 1, "the sync of b"
    node.lead(registration(leader=2, epoch=1))
    partition.log.truncate_to(1)
    node.lead(registration(epoch=2))
    node.append(b"c")
    for follower in (2, 3):
        partition.update_follower(follower, 2)
    began_before = node.thread.waiting.popleft()
    while node.thread.waiting:  # The truncation's own sync.
        node.thread.next()
    work, done = began_before
    work()
    done(None)
    assert (partition.log.recovery_point, partition.log.high_watermark) == (1, 1), (
        "c was not there when that sync began"
    )
    node.thread.next()
    assert (partition.log.recovery_point, partition.log.high_watermark) == (2, 2)


def test_the_setting_is_switched_on_and_off_while_the_leader_runs() -> None:
    node = SyncedNode(config=LogConfig())
    partition = alone(node)
    node.append(b"a")
    assert (partition.log.high_watermark, len(node.thread.waiting)) == (1, 0)
    node.reconfigure(SYNCED)
    assert len(node.thread.waiting) == 1, "what is there is synced"
    node.append(b"b")
    assert partition.log.high_watermark == 1
    sync = AwaitedSync(partition, 2)
    assert outcome(sync) is None
    node.reconfigure(LogConfig())
    assert partition.log.high_watermark == 2
    assert outcome(sync) is ErrorCode.NONE
    node.thread.next()
    assert not node.thread.waiting


def test_a_follower_syncs_what_it_has_when_the_setting_is_switched_on() -> None:
    node = SyncedNode(config=LogConfig())
    partition = alone(node)
    node.append(b"a")
    node.lead(registration(leader=2, epoch=1, replicas=(1, 2)))
    node.reconfigure(SYNCED)
    node.thread.next()
    assert not partition.awaits_sync


def test_a_new_leader_syncs_what_it_has_fetched() -> None:
    node = SyncedNode(config=LogConfig())
    partition = alone(node)
    node.append(b"a")
    node.lead(registration(leader=2, epoch=1, replicas=(1, 2)))
    node.config = SYNCED
    node.topic.config_changed()
    partition.log.reconfigure(SYNCED)
    node.lead(registration(epoch=2, replicas=(1, 2)))
    node.thread.next()
    assert not partition.awaits_sync


def test_syncs_end_with_a_deleted_log() -> None:
    thread = Thread()
    log = PartitionLog(SimDisk(), "/t-0", SYNCED, now_ms=lambda: 0, run_blocking=thread.run)
    ended: list[object] = []
    syncs = LeaderSync(log, ended.append)
    log.append_as_leader(batch(b"a", timestamp=0), 0)
    syncs.begin()
    assert repr(syncs) == "<LeaderSync of=t-0 is_under_way=True>"
    thread.next(FileNotFoundError("deleted"))
    assert not ended
