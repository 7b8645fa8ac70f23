"""What a whole request may ask for, and what makes it fail as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import client_quota_control, create_partitions
from barnabas.metadata.producer_ids_control import BLOCK_SIZE, LAST_PRODUCER_ID
from barnabas.metadata.record_codec import encode_record
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import ControllerHarness


def refusal(harness: ControllerHarness, key: ApiKey, request: Any, **options: Any) -> tuple[ErrorCode, str]:
    error = harness.later(key, request, **options).exception()
    assert isinstance(error, KafkaError)
    return error.code, error.message


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        (2, ErrorCode.INVALID_REQUEST, "This version does not support topic deletion."),
        (3, ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled."),
        (6, ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled."),
    ],
)
def test_topic_deletion_may_be_disabled(version: int, code: ErrorCode, message: str) -> None:
    harness = ControllerHarness(delete_topic_enable=False)
    harness.register()
    harness.create("a")
    request = messages.DeleteTopicsRequest(topic_names=["a"])
    assert refusal(harness, ApiKey.DELETE_TOPICS, request, version=version) == (code, message)
    assert "a" in harness.controller.image.topics.by_name


def quota_request(entities: int, *ops: tuple[str, float]) -> messages.AlterClientQuotasRequest:
    made = messages.AlterClientQuotasRequest
    return made(
        entries=[
            made.EntryData(
                entity=[made.EntityData(entity_type="user", entity_name=f"u{i}")],
                ops=[made.OpData(key=key, value=value) for key, value in ops],
            )
            for i in range(entities)
        ]
    )


def test_more_quota_records_than_a_batch_may_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quota_control, "MAX_RECORDS_PER_REQUEST", 4)
    harness = ControllerHarness()
    ops = (("producer_byte_rate", 1.0), ("consumer_byte_rate", 1.0))
    code, message = refusal(harness, ApiKey.ALTER_CLIENT_QUOTAS, quota_request(3, *ops))
    assert (code, message) == (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    assert harness.send(ApiKey.ALTER_CLIENT_QUOTAS, quota_request(2, *ops)).entries[1].error_code == 0


def test_a_limit_that_is_set_twice_makes_its_entity_fail() -> None:
    request = quota_request(1, ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))
    (entry,) = ControllerHarness().send(ApiKey.ALTER_CLIENT_QUOTAS, request).entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST
    assert entry.error_message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=u0})"


def test_more_added_partitions_than_a_batch_may_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ControllerHarness()
    harness.register()
    harness.create("a", "b")
    made = messages.CreatePartitionsRequest

    def grow(*counts: int) -> messages.CreatePartitionsRequest:
        topics = [
            made.CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in zip("ab", counts, strict=False)
        ]
        return made(topics=topics)

    message = "Excessively large number of additional partitions per request."
    monkeypatch.setattr(create_partitions, "MAX_RECORDS_PER_REQUEST", 4)
    for request in (grow(6), grow(4, 3)):
        assert refusal(harness, ApiKey.CREATE_PARTITIONS, request) == (ErrorCode.POLICY_VIOLATION, message)
    results = harness.send(ApiKey.CREATE_PARTITIONS, grow(3, 3)).results
    assert [(result.name, result.error_code) for result in results] == [("a", 0), ("b", 0)]
    assert harness.send(ApiKey.CREATE_PARTITIONS, grow(7)).results[0].error_code == 0


def test_producer_ids_end_with_the_last_whole_block() -> None:
    harness = ControllerHarness()
    epoch = harness.register()
    request = messages.AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    last = LAST_PRODUCER_ID - BLOCK_SIZE
    record = messages.ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=last)
    harness.driver.append([encode_record(record, 33)])
    harness.restart()
    answer = harness.send(ApiKey.ALLOCATE_PRODUCER_IDS, request)
    assert (answer.producer_id_start, answer.producer_id_len) == (last, BLOCK_SIZE)
    code, message = refusal(harness, ApiKey.ALLOCATE_PRODUCER_IDS, request)
    assert code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert message == "Exhausted all producerIds as the last block was allocated"


def test_a_topic_created_without_numbers_has_the_brokers_defaults() -> None:
    harness = ControllerHarness(num_partitions=3, default_replication_factor=2)
    harness.register(1)
    harness.register(2)
    result = harness.create("a", partitions=-1).topics[0]
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 2)


def test_the_limit_of_a_request_counts_defaults_and_assignments() -> None:
    harness = ControllerHarness(num_partitions=5001)
    harness.register()
    made = messages.CreateTopicsRequest
    topics = [made.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in "ab"]
    message = "Excessively large number of partitions per request."
    assert refusal(harness, ApiKey.CREATE_TOPICS, made(topics=topics)) == (ErrorCode.POLICY_VIOLATION, message)
    topics[1].assignments = [made.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    assert [topic.error_code for topic in harness.send(ApiKey.CREATE_TOPICS, made(topics=topics)).topics] == [0, 0]


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ([0, 0], "Found multiple manual partition assignments for partition 0"),
        ([1], "partitions should be a consecutive 0-based integer sequence"),
        ([0, 2], "partitions should be a consecutive 0-based integer sequence"),
    ],
)
def test_assigned_partitions_are_numbered_from_zero(indexes: list[int], message: str) -> None:
    harness = ControllerHarness()
    harness.register()
    made = messages.CreateTopicsRequest
    assignments = [made.CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in indexes]
    topic = made.CreatableTopic(name="a", num_partitions=-1, replication_factor=-1, assignments=assignments)
    result = harness.send(ApiKey.CREATE_TOPICS, made(topics=[topic])).topics[0]
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    topic.assignments = [made.CreatableReplicaAssignment(partition_index=i, broker_ids=[1]) for i in (1, 0)]
    assert harness.send(ApiKey.CREATE_TOPICS, made(topics=[topic])).topics[0].error_code == 0


def test_a_deletion_that_names_nothing_is_rejected() -> None:
    made = messages.DeleteTopicsRequest
    request = made(topics=[made.DeleteTopicState(name=None)])
    (result,) = ControllerHarness().send(ApiKey.DELETE_TOPICS, request).responses
    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Neither topic name nor id were specified.",
    )


def test_partitions_that_cannot_be_placed_are_not_added() -> None:
    harness = ControllerHarness()
    epoch = harness.register()
    harness.create("a")
    harness.heartbeat(1, epoch, want_fence=True)
    made = messages.CreatePartitionsRequest
    topic = made.CreatePartitionsTopic(name="a", count=2, assignments=None)
    (result,) = harness.send(ApiKey.CREATE_PARTITIONS, made(topics=[topic])).results
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced" in result.error_message
