from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.log.disk import OsDisk
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConfigRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.replication.replica_changes import apply_delta
from barnabas.steps import run_on_the_spot, step
from tests.replication.hosting import NODE, Hosting, topic_id


def test_the_epoch_of_this_broker_is_that_of_its_registration(hosting: Hosting) -> None:
    """The image may have that of its life before."""
    hosting.replay(*(RegisterBrokerRecord(broker_id=each, broker_epoch=5) for each in (NODE, 2)))
    hosting.replicas.own_broker_epoch = lambda: 9
    assert [hosting.replicas.broker_epoch(each) for each in (NODE, 2, 3)] == [9, 5, -1]


def code_of(hosting: Hosting, topic: str, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        hosting.replicas.partition(topic, index)
    return refused.value.code


def test_a_partition_that_is_not_here_has_the_right_error(hosting: Hosting) -> None:
    hosting.create_topic("here", 2)
    hosting.create_topic("elsewhere", replicas=(2,), leader=2)
    assert hosting.replicas.partition("here", 1).index == 1
    assert code_of(hosting, "here", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(hosting, "elsewhere", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(hosting, "nowhere", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert repr(hosting.replicas) == "<ReplicaManager node=1 topics=2 partitions=2>"


def test_a_broker_hosts_its_own_replicas_of_a_topic(hosting: Hosting) -> None:
    records = [
        PartitionRecord(partition_id=index, topic_id=topic_id(9), replicas=[node], isr=[node], leader=node)
        for index, node in enumerate((NODE, 2, NODE))
    ]
    hosting.replay(TopicRecord(name="t", topic_id=topic_id(9)), *records)
    assert list(hosting.replicas.topics["t"].partitions) == [0, 2]


def test_logs_are_created_on_first_use(hosting: Hosting) -> None:
    hosting.create_topic("t", 100)
    assert not hosting.logs.logs
    assert hosting.replicas.size_of(hosting.replicas.partition("t", 3)) == 0
    assert not hosting.logs.logs
    hosting.append("t", b"v", index=3)
    assert list(hosting.logs.logs) == [("t", 3)]
    assert hosting.replicas.size_of(hosting.replicas.partition("t", 3)) > 0


def test_a_log_that_cannot_be_opened_is_an_error_in_the_log(hosting: Hosting, caplog: pytest.LogCaptureFixture) -> None:
    """A replica that is alone in sync stays the leader, and Kafka's broker would halt: somebody has to read why."""
    hosting.create_topic("t", 2)
    for index in range(2):
        Path(hosting.logs.root_dir, f"t-{index}").write_text("in the way")
    for _ in range(50):
        with pytest.raises(KafkaStorageError):
            hosting.append("t", b"v")
    with pytest.raises(KafkaStorageError):
        hosting.append("t", b"v", index=1)
    root = hosting.logs.root_dir
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", f"The log of t-{index} in {root} cannot be opened: cannot create t-{index}: File exists")
        for index in range(2)
    ]
    hosting.replicas.close()
    assert "(49 lines about t-0 in the last minute; this is the last one)" in caplog.messages[-1]


def test_a_topic_created_again_is_empty(hosting: Hosting) -> None:
    """Trap 9: the new topic has another id, and nothing of the old one is in it."""
    old_id = hosting.create_topic("t")
    hosting.append("t", b"old")
    old = hosting.replicas.partition("t", 0)
    hosting.delete_topic(old_id)
    assert old.is_deleted
    assert code_of(hosting, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    hosting.create_topic("t", number=77)
    assert hosting.replicas.partition("t", 0) is not old
    assert hosting.replicas.partition("t", 0).log.log_end_offset == 0
    assert list(hosting.replicas.topics_by_id) == [hosting.image.topics.by_name["t"].topic_id]


def test_deletion_and_creation_in_one_delta(hosting: Hosting) -> None:
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.protocol.messages import RemoveTopicRecord

    old_id = hosting.create_topic("t")
    hosting.append("t", b"old")
    assert isinstance(hosting.image.topics.by_id[old_id].name, str)
    delta = MetadataDelta(hosting.image)
    for record in (
        RemoveTopicRecord(topic_id=old_id),
        TopicRecord(name="t", topic_id=topic_id(50)),
        PartitionRecord(partition_id=0, topic_id=topic_id(50), replicas=[NODE], isr=[NODE], leader=NODE),
    ):
        delta.replay(record)
    hosting.image = delta.apply()
    run_on_the_spot(apply_delta(hosting.replicas, delta, hosting.image), None)
    assert hosting.replicas.topics["t"].topic_id == topic_id(50)
    assert hosting.replicas.partition("t", 0).log.log_end_offset == 0


def test_settings_change_with_the_metadata(hosting: Hosting) -> None:
    hosting.create_topic("t")
    hosting.append("t", b"v")
    log = hosting.replicas.partition("t", 0).log
    hosting.configs["t"] = LogConfig(retention_ms=5)
    hosting.replay(ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5"))
    assert log.config.retention_ms == 5
    hosting.configs["t"] = LogConfig(retention_ms=6)
    hosting.replay(ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="6"))
    assert log.config.retention_ms == 6


def test_a_replica_that_moves_away_is_deleted(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    hosting.append("t", b"v")
    hosting.change(id_, replicas=[2], isr=[2], leader=2)
    assert code_of(hosting, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not hosting.logs.logs


def test_internal_appends_resolve_when_committed(hosting: Hosting) -> None:
    hosting.create_topic("__consumer_offsets", replicas=(NODE, 2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record, record]))
    assert not future.done()
    partition = hosting.replicas.partition("__consumer_offsets", 0)
    partition.update_follower(2, 2)
    hosting.replicas.delayed_produces.notify(partition)
    assert future.result() == 1


def test_an_internal_append_of_a_sole_replica_is_done_at_once(hosting: Hosting) -> None:
    hosting.create_topic("__consumer_offsets")
    record = (hosting.now_ms(), b"k", b"v", [])
    assert hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record])).result() == 0


def test_an_internal_append_waits_as_long_as_it_takes(hosting: Hosting) -> None:
    hosting.create_topic("__consumer_offsets", replicas=(NODE, 2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record]))
    hosting.advance(20_000)
    assert not future.done()
    partition = hosting.replicas.partition("__consumer_offsets", 0)
    partition.log.high_watermark = 1
    hosting.replicas.high_watermark_moved(partition)
    assert future.result() == 0
    assert hosting.replicas.delayed_produces.watched == 0


def test_an_internal_append_with_a_time_limit(hosting: Hosting) -> None:
    hosting.create_topic("t", replicas=(NODE, 2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("t", 0, build_batch([record]), timeout_ms=5_000)
    hosting.advance(4_999)
    assert not future.done()
    hosting.advance(1)
    error = future.exception()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.REQUEST_TIMED_OUT


def test_an_internal_append_below_the_high_watermark_is_committed_whatever_the_isr(hosting: Hosting) -> None:
    id_ = hosting.create_topic("__consumer_offsets", replicas=(NODE, 2), config=LogConfig(min_insync_replicas=2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record]))
    partition = hosting.replicas.partition("__consumer_offsets", 0)
    partition.log.high_watermark = 1
    hosting.change(id_, isr=[NODE])
    assert future.result() == 0


def test_a_smaller_min_insync_replicas_commits_what_waits(hosting: Hosting) -> None:
    id_ = hosting.create_topic("__consumer_offsets", replicas=(NODE, 2), config=LogConfig(min_insync_replicas=2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record]))
    hosting.change(id_, isr=[NODE])
    assert not future.done()
    hosting.configs["__consumer_offsets"] = LogConfig(min_insync_replicas=1)
    hosting.replay(
        ConfigRecord(resource_type=2, resource_name="__consumer_offsets", name="min.insync.replicas", value="1")
    )
    assert future.result() == 0


def test_a_deleted_partition_ends_the_wait_of_an_internal_append(hosting: Hosting) -> None:
    id_ = hosting.create_topic("__consumer_offsets", replicas=(NODE, 2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record]))
    hosting.delete_topic(id_)
    error = future.exception()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_that_steps_down_ends_the_wait(hosting: Hosting) -> None:
    id_ = hosting.create_topic("__consumer_offsets", replicas=(NODE, 2))
    record = (hosting.now_ms(), b"k", b"v", [])
    future = hosting.replicas.append_internal("__consumer_offsets", 0, build_batch([record]))
    hosting.change(id_, leader=2)
    error = future.exception()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_commit_of_what_is_in_the_log(hosting: Hosting) -> None:
    id_ = hosting.create_topic("__consumer_offsets", replicas=(NODE, 2))
    hosting.append("__consumer_offsets", b"a", b"b")
    replicas, partition = hosting.replicas, hosting.replicas.partition("__consumer_offsets", 0)
    partition.log.high_watermark = 1
    assert replicas.committed_offset_internal("__consumer_offsets", 0) == 1
    assert replicas.commit_of_internal("__consumer_offsets", 0, 0).result() == 0
    waiting, other = (replicas.commit_of_internal("__consumer_offsets", 0, 1) for _ in range(2))
    other.cancel()
    hosting.advance(20_000)
    assert not waiting.done()
    hosting.change(id_, leader=2)
    for lost in (waiting, replicas.commit_of_internal("__consumer_offsets", 0, 1)):
        error = lost.exception()
        assert isinstance(error, KafkaError)
        assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replicas.delayed_produces.watched == 0


def test_internal_reads_yield_every_batch_from_the_offset(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(segment_bytes=300))
    for number in range(20):
        hosting.append("t", b"%d" % number, b"x" * 50)
    batches = list(hosting.replicas.read_internal("t", 0, 7))
    offsets = [record.offset for found in batches for record in iter_records(found)]
    assert offsets == list(range(6, 40)), "the batch that holds offset 7 begins at 6"
    assert list(hosting.replicas.read_internal("t", 0, 40)) == []


def test_logs_that_the_metadata_does_not_assign_are_set_aside(hosting: Hosting) -> None:
    hosting.logs.get_or_create("gone", 0, topic_id(99), LogConfig())
    hosting.create_topic("t")
    hosting.append("t", b"v")
    assert step(hosting.replicas.set_strays_aside(), hosting.loop) == [("gone", 0)]
    assert list(hosting.logs.logs) == [("t", 0)]


def test_the_volume_has_its_sizes_or_minus_1(hosting: Hosting) -> None:
    ((directory, total, free),) = hosting.replicas.describe_volumes()
    assert directory is hosting.logs
    assert total >= free > 0
    assert OsDisk().exists(directory.root_dir)


def test_a_volume_that_cannot_be_read_is_described_without_numbers(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError

    monkeypatch.setattr(hosting.logs, "disk_usage", refuse)
    assert list(hosting.replicas.describe_volumes()) == [(hosting.logs, -1, -1)]


def test_the_topics_of_coordinators_are_internal(hosting: Hosting) -> None:
    names = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__mine", "orders"]
    for name in names:
        hosting.create_topic(name)
    assert [hosting.replicas.topics[name].is_internal for name in names] == [True, True, True, False, False]
