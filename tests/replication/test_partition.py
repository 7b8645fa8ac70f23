from __future__ import annotations

from functools import partial

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import RegisterBrokerRecord
from barnabas.records.control import build_end_transaction_marker
from barnabas.replication.awaited_commit import AwaitedCommit
from barnabas.replication.partition import Partition
from tests.replication.following import Node, registration
from tests.replication.hosting import NODE, Hosting, batch


def marker_of(hosting: Hosting, producer_id: int = 1) -> bytearray:
    return bytearray(
        build_end_transaction_marker(
            commit=True, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=hosting.now_ms()
        )
    )


def append(hosting: Hosting, acks: int, topic: str = "t") -> int:
    return hosting.replicas.append(topic, 0, batch(b"v"), acks).last_offset


def test_a_sole_replica_commits_at_once(hosting: Hosting) -> None:
    hosting.create_topic("t")
    partition = hosting.replicas.partition("t", 0)
    assert repr(partition) == "<Partition name=t-0 leader=1 epoch=0 isr=[1]>"
    assert partition.open_log is None
    assert append(hosting, acks=1) == 0
    assert partition.log.high_watermark == partition.log.log_end_offset == 1


def test_the_high_watermark_follows_the_slowest_in_sync_replica(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2, 3))
    partition = hosting.replicas.partition("t", 0)
    for _ in range(3):
        append(hosting, acks=1)
    assert partition.log.high_watermark == 0
    assert not partition.update_follower(2, 3)
    assert partition.update_follower(3, 2)
    assert partition.log.high_watermark == 2
    assert not partition.update_follower(3, 1)
    assert partition.log.high_watermark == 2, "it never goes back"
    hosting.change(id_, isr=[NODE, 2])
    assert partition.log.high_watermark == 3


def test_below_min_insync_replicas_the_high_watermark_stands_still(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2, 3), config=LogConfig(min_insync_replicas=2))
    partition = hosting.replicas.partition("t", 0)
    append(hosting, acks=1)
    for follower in (2, 3):
        partition.update_follower(follower, 1)
    assert partition.log.high_watermark == 1
    # KIP-966: replica 2 has every committed record as long as nothing is committed without it.
    hosting.change(id_, isr=[NODE])
    append(hosting, acks=1)
    assert partition.log.high_watermark == 1
    assert not partition.update_follower(3, 2)
    hosting.change(id_, isr=[NODE, 3])
    assert partition.log.high_watermark == 2
    hosting.change(id_, isr=[NODE])
    append(hosting, acks=1)
    hosting.reconfigure("t", LogConfig(min_insync_replicas=1))
    assert partition.log.high_watermark == 3
    append(hosting, acks=1)
    assert partition.log.high_watermark == 4


def test_a_new_epoch_forgets_what_followers_had_before_it(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    partition = hosting.replicas.partition("t", 0)
    append(hosting, acks=1)
    partition.update_follower(2, 5)  # it led before, and has records that this log does not have
    assert partition.log.high_watermark == 1
    hosting.change(id_, leader=NODE)
    append(hosting, acks=1)
    assert partition.log.high_watermark == 1
    partition.update_follower(2, 2)
    assert partition.log.high_watermark == 2


@pytest.mark.parametrize("replica_id", [9, NODE])
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_node_without_a_replica_is_rejected_as_follower(
    hosting: Hosting, replica_id: int, epoch: int, code: ErrorCode
) -> None:
    hosting.create_topic("t", replicas=(NODE, 2))
    with pytest.raises(KafkaError) as refused:
        hosting.replicas.partition("t", 0).check_follower(replica_id, epoch)
    assert refused.value.code == code


def test_acks_all_needs_enough_in_sync_replicas(hosting: Hosting) -> None:
    config = LogConfig(min_insync_replicas=2)
    id_ = hosting.create_topic("t", replicas=(NODE, 2, 3), config=config)
    hosting.change(id_, isr=[NODE])
    assert append(hosting, acks=1) == 0
    with pytest.raises(KafkaError) as refused:
        append(hosting, acks=-1)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert append(hosting, acks=1) == 1, "nothing was appended by the refused one"


def test_acks_all_never_needs_more_replicas_than_the_partition_has(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(min_insync_replicas=2))
    assert [append(hosting, acks=acks) for acks in (1, -1)] == [0, 1]
    assert hosting.replicas.partition("t", 0).log.high_watermark == 2, "consumers read both"


@pytest.mark.parametrize(
    ("asked", "code"),
    [(-1, None), (1, None), (0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_requests_with_another_leader_epoch_are_rejected(hosting: Hosting, asked: int, code: ErrorCode | None) -> None:
    id_ = hosting.create_topic("t")
    hosting.change(id_, leader=NODE)
    partition = hosting.replicas.partition("t", 0)
    assert partition.leader_epoch == 1
    if code is None:
        partition.check_leader(asked)
        return
    with pytest.raises(KafkaError) as refused:
        partition.check_leader(asked)
    assert refused.value.code == code


def test_a_follower_rejects_clients(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    hosting.change(id_, leader=2)
    assert repr(hosting.replicas.partition("t", 0)) == "<Partition name=t-0 leader=2 epoch=1 isr=[1, 2]>"
    with pytest.raises(KafkaError) as refused:
        append(hosting, acks=1)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_records_have_the_leader_epoch_of_their_append(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t")
    append(hosting, acks=1)
    append(hosting, acks=1)
    hosting.change(id_, leader=NODE)
    partition = hosting.replicas.partition("t", 0)
    assert partition.last_offset_for_leader_epoch(1) == (1, 2), "the current epoch ends at the log's end"
    append(hosting, acks=1)
    assert partition.last_offset_for_leader_epoch(0) == (0, 2)
    assert partition.last_offset_for_leader_epoch(1) == (1, 3)
    assert partition.last_offset_for_leader_epoch(7) == (-1, -1)


def test_a_partition_without_a_registration_leads_nothing(hosting: Hosting) -> None:
    hosting.create_topic("t")
    partition = Partition(hosting.replicas.topics["t"], 5, NODE, hosting.replicas)
    assert (partition.leader, partition.leader_epoch, partition.is_deleted) == (-1, -1, False)
    with pytest.raises(KafkaError) as refused:
        partition.check_leader()
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def transactional(sequence: int = 0) -> memoryview:
    return batch(b"v", transactional=True, producer_id=7, producer_epoch=0, base_sequence=sequence)


def test_a_transaction_needs_the_guard_of_its_verification(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(transaction_partition_verification_enable=True))
    partition = hosting.replicas.partition("t", 0)
    guard = partition.begin_verification(7, 0, 0, supports_epoch_bump=False)
    assert guard is not None
    with pytest.raises(KafkaError):
        hosting.replicas.append_to(partition, transactional(), 1)
    assert hosting.replicas.append_to(partition, transactional(), 1, guard=guard).last_offset == 0
    assert partition.begin_verification(7, 1, 0, supports_epoch_bump=False) is None, "the open transaction proves it"
    assert hosting.replicas.append_to(partition, transactional(1), 1).last_offset == 1


def test_a_guard_does_not_survive_the_loss_of_leadership(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2), isr=(NODE,))
    partition = hosting.replicas.partition("t", 0)
    begin = partial(partition.begin_verification, 1, 0, 0, supports_epoch_bump=False)
    guard = begin()
    hosting.change(id_, leader=NODE)
    assert begin() is guard, "a new epoch of the same leader keeps it"
    hosting.change(id_, leader=2)
    hosting.change(id_, leader=NODE)
    assert begin() is not guard


def test_coordinators_pass_the_guard_on(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(transaction_partition_verification_enable=True))
    guard = hosting.replicas.partition("t", 0).begin_verification(7, 0, 0, supports_epoch_bump=False)
    with pytest.raises(KafkaError):
        hosting.replicas.append_internal("t", 0, bytearray(transactional()))
    assert hosting.replicas.append_internal("t", 0, bytearray(transactional()), guard=guard).result() == 0
    assert hosting.replicas.append_internal("t", 0, marker_of(hosting, producer_id=7)).result() == 1


def test_a_verification_is_the_leaders(hosting: Hosting) -> None:
    hosting.change(hosting.create_topic("t", replicas=(NODE, 2)), leader=2)
    with pytest.raises(KafkaError) as refused:
        hosting.replicas.partition("t", 0).begin_verification(7, 0, 0, supports_epoch_bump=False)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_new_settings_reach_the_open_log(hosting: Hosting) -> None:
    hosting.create_topic("t")
    append(hosting, acks=1)
    hosting.reconfigure("t", LogConfig(max_message_bytes=10))
    with pytest.raises(KafkaError) as refused:
        append(hosting, acks=1)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_coordinators_write_control_batches_and_clients_do_not(hosting: Hosting) -> None:
    hosting.create_topic("t")
    marker = marker_of(hosting)
    with pytest.raises(KafkaError) as refused:
        hosting.replicas.append("t", 0, memoryview(bytearray(marker)), 1)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    hosting.replicas.append("t", 0, memoryview(marker), -1, AppendOrigin.COORDINATOR)


def register(hosting: Hosting, *brokers: int, epoch: int = 1) -> None:
    hosting.replay(*(RegisterBrokerRecord(broker_id=broker, broker_epoch=epoch, fenced=False) for broker in brokers))


def three(hosting: Hosting, *isr: int) -> Partition:
    """A partition with one record, which the replicas in the ISR have."""
    hosting.create_topic("t", replicas=(NODE, 2, 3), isr=isr)
    register(hosting, NODE, 2, 3)
    append(hosting, acks=1)
    partition = hosting.replicas.partition("t", 0)
    for follower in isr[1:]:
        partition.update_follower(follower, 1, broker_epoch=1)
    assert partition.log.high_watermark == 1
    return partition


class TestIsrChanges:
    def test_the_high_watermark_waits_for_a_replica_that_may_join(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        partition.update_follower(3, 1, broker_epoch=1)
        change = partition.prepare_expand_isr(3)
        assert change is not None
        assert change.sent.isr == ((NODE, 1), (2, 1), (3, 1))
        append(hosting, acks=1)
        hosting.advance(60_000)
        assert not partition.update_follower(2, 2)
        partition.isr_change_completed(change, 0, 1, (NODE, 2, 3))
        assert (partition.isr, partition.state.partition_epoch, partition.log.high_watermark) == ((NODE, 2, 3), 1, 1)
        assert partition.update_follower(3, 2)

    def test_a_rejected_replica_is_not_waited_for(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE)
        partition.update_follower(2, 1, broker_epoch=1)
        change = partition.prepare_expand_isr(2)
        assert change is not None
        produced = hosting.replicas.append_internal("t", 0, marker_of(hosting))
        hosting.advance(1_000)
        assert partition.isr_change_failed(change, ErrorCode.NOT_CONTROLLER)
        assert partition.state is change
        register(hosting, 2, epoch=2)  # the next incarnation: the follower that fetched is gone
        assert not partition.isr_change_failed(change, ErrorCode.INELIGIBLE_REPLICA)
        assert (partition.isr, partition.log.high_watermark) == ((NODE,), 2)
        assert produced.result() == 1, "the producer hears of it at once"
        assert not partition.isr_change_failed(change, ErrorCode.NOT_CONTROLLER), "a late error changes nothing"

    def test_the_high_watermark_waits_for_a_replica_that_may_leave(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        append(hosting, acks=1)
        hosting.advance(30_000)
        assert partition.prepare_shrink_isr() is None
        hosting.advance(1)
        change = partition.prepare_shrink_isr()
        assert change is not None
        assert change.sent.isr == ((NODE, 1),)
        append(hosting, acks=1)
        assert partition.log.high_watermark == 1
        partition.isr_change_completed(change, 0, 1, (NODE,))
        assert (partition.isr, partition.log.high_watermark) == ((NODE,), 3)

    def test_an_append_after_a_long_silence_makes_nobody_late(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        hosting.advance(600_000)
        append(hosting, acks=1)
        assert partition.prepare_shrink_isr() is None
        hosting.advance(30_001)
        assert partition.prepare_shrink_isr() is not None

    def test_one_change_at_a_time(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        partition.update_follower(3, 1, broker_epoch=1)
        assert partition.prepare_expand_isr(3) is not None
        append(hosting, acks=1)
        hosting.advance(30_001)
        assert partition.prepare_shrink_isr() is None
        assert partition.prepare_expand_isr(3) is None

    def test_who_joins_has_all_that_may_be_committed(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        append(hosting, acks=1)
        partition.update_follower(2, 2, broker_epoch=1)
        partition.update_follower(3, 1, broker_epoch=1)
        assert partition.prepare_expand_isr(2) is None, "it is a member"
        assert partition.prepare_expand_isr(3) is None, "the high watermark is 2"
        append(hosting, acks=1)
        hosting.change(hosting.replicas.topics["t"].topic_id, leader=NODE)
        partition.update_follower(3, 2, broker_epoch=1)
        assert partition.prepare_expand_isr(3) is None, "the leader before may have committed up to 3"
        partition.update_follower(3, 3, broker_epoch=1)
        assert partition.prepare_expand_isr(3) is not None

    def test_a_follower_and_a_sole_replica_change_no_isr(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        hosting.change(hosting.replicas.topics["t"].topic_id, leader=2)
        hosting.create_topic("sole")
        for each in (partition, hosting.replicas.partition("sole", 0)):
            assert each.prepare_expand_isr(3) is None
            assert each.prepare_shrink_isr() is None

    def test_newer_metadata_ends_a_change(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        partition.update_follower(3, 1, broker_epoch=1)
        change = partition.prepare_expand_isr(3)
        assert change is not None
        hosting.change(hosting.replicas.topics["t"].topic_id, isr=[NODE])
        assert (partition.isr, partition.state.partition_epoch) == ((NODE,), 1)
        partition.isr_change_completed(change, 0, 2, (NODE, 2, 3))
        assert partition.isr == (NODE,), "its answer comes too late"

    def test_metadata_that_the_answer_has_overtaken_changes_nothing(self, hosting: Hosting) -> None:
        partition = three(hosting, NODE, 2)
        partition.update_follower(3, 1, broker_epoch=1)
        first = partition.prepare_expand_isr(3)
        assert first is not None
        partition.isr_change_completed(first, 0, 2, (NODE, 2, 3))
        append(hosting, acks=1)
        hosting.advance(30_001)
        second = partition.prepare_shrink_isr()
        id_ = hosting.replicas.topics["t"].topic_id
        hosting.change(id_, isr=[NODE, 2], replicas=[NODE, 2, 3, 4])
        assert (partition.state, partition.state.partition_epoch) == (second, 2), "epoch 1 is older"
        assert partition.replicas == (NODE, 2, 3)
        hosting.change(id_, isr=[NODE, 2, 3])
        assert partition.state is second, "epoch 2 is the one that is known"
        assert partition.replicas == (NODE, 2, 3, 4), "only the metadata has the assignment"
        hosting.change(id_, isr=[NODE])
        assert (partition.isr, partition.state.partition_epoch) == ((NODE,), 3)

    def test_acks_all_counts_the_committed_isr_and_the_response_the_maximal_one(self, hosting: Hosting) -> None:
        """A replica that may join does not help a new append, and does not fail an old one."""
        partition = three(hosting, NODE, 2)
        commit = AwaitedCommit(partition, 1)
        hosting.change(hosting.replicas.topics["t"].topic_id, isr=[NODE])
        partition.update_follower(2, 1, broker_epoch=1)
        assert partition.prepare_expand_isr(2) is not None
        hosting.reconfigure("t", LogConfig(min_insync_replicas=2))
        with pytest.raises(KafkaError) as refused:
            append(hosting, acks=-1)
        assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert not hosting.replicas.is_writable_internal("t", 0)
        assert (commit.settle(), commit.error_code) == (True, ErrorCode.NONE)


def test_a_fetch_of_an_earlier_incarnation_is_rejected(hosting: Hosting) -> None:
    """KIP-903: the follower has restarted since, perhaps without its last records."""
    hosting.create_topic("t", replicas=(NODE, 2))
    partition = hosting.replicas.partition("t", 0)
    partition.check_follower(2, 0, 4)
    register(hosting, 2, epoch=5)
    for epoch in (-1, 5, 6):
        partition.check_follower(2, 0, epoch)
    with pytest.raises(KafkaError) as refused:
        partition.check_follower(2, 0, 4)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("fields", [{}, {"fenced": True}, {"in_controlled_shutdown": True}])
def test_only_a_broker_in_service_may_join(hosting: Hosting, fields: dict[str, bool]) -> None:
    hosting.create_topic("t", replicas=(NODE, 2), isr=(NODE,))
    partition = hosting.replicas.partition("t", 0)
    partition.update_follower(2, 0)
    assert partition.prepare_expand_isr(2) is None, "it is not registered"
    record = {"fenced": False, "in_controlled_shutdown": False, **fields}
    hosting.replay(RegisterBrokerRecord(broker_id=2, broker_epoch=5, **record))
    assert (partition.prepare_expand_isr(2) is not None) == (not fields)


@pytest.mark.parametrize("isr", [(1, 2), (1,)])
def test_a_leader_that_cannot_open_the_log_makes_way_for_a_replica_in_sync(
    monkeypatch: pytest.MonkeyPatch, isr: tuple[int, ...]
) -> None:
    """Its followers cannot fetch, so they would leave the ISR, and nobody else could lead any more."""
    node = Node(1)
    partition = node.replica()

    def refuse(_: Partition) -> None:
        raise KafkaStorageError("cannot create orders-0: not a directory")

    monkeypatch.setattr(node, "open_log", refuse)
    partition.update(registration(1, 1, replicas=(1, 2), isr=isr))
    with pytest.raises(KafkaStorageError):
        node.append(b"a")
    assert node.disk_failures == ([partition] if len(isr) > 1 else [])


def test_a_leader_whose_disk_is_full_makes_way_for_a_replica_in_sync() -> None:
    node = Node(1)
    node.lead(registration(1, 1, replicas=(1, 2), isr=(1, 2)))
    node.disk.capacity = node.disk.used
    with pytest.raises(KafkaStorageError):
        node.append(b"a")
    assert node.disk_failures == [node.replica()]


def test_a_leader_whose_disk_is_full_stays_if_it_is_alone_in_sync() -> None:
    node = Node(1)
    node.lead(registration(1, 1, replicas=(1, 2), isr=(1,)))
    node.disk.capacity = node.disk.used
    with pytest.raises(KafkaStorageError):
        node.append(b"a")
    assert node.disk_failures == []
