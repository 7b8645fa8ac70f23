"""Records of internal topics in fields: those of a broker's own topics, and each type by itself."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.internal_records import decoded, decoded_lines
from barnabas.client.admin import Admin, TopicPartition
from barnabas.main import command_group
from barnabas.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareSnapshotKey,
    ShareSnapshotValue,
    TopicRecord,
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.protocol.primitives import uuid_to_str
from barnabas.protocol.versioned import PREFIX, encode_metadata_record
from tests.cli.test_record_format import RECORD
from tests.cli.test_record_printer import message

TOPIC_ID = bytes(range(16))


def versioned(number: int, record: Any, version: int) -> bytes:
    return PREFIX.pack(number) + bytes(record.encode(version))


def test_a_commit() -> None:
    key = versioned(1, OffsetCommitKey(group="g", topic="t", partition=3), 0)
    value = OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=5, topic_id=TOPIC_ID)
    found = decoded("__consumer_offsets", key, versioned(4, value, 4))
    assert found == {
        "key": {"type": 1, "name": "OffsetCommitKey", "data": {"group": "g", "topic": "t", "partition": 3}},
        "value": {
            "version": 4,
            "data": {
                "offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5, "topicId": uuid_to_str(TOPIC_ID),
            },
        },
    }  # fmt: skip
    assert "value" not in decoded("__consumer_offsets", key, None), "a tombstone"


def test_the_members_of_a_classic_group() -> None:
    subscription = versioned(0, ConsumerProtocolSubscription(topics=["t"], user_data=b"\xff"), 0)
    assigned = [ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])]
    member = GroupMetadataValue.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", subscription=subscription,
        assignment=versioned(0, ConsumerProtocolAssignment(assigned_partitions=assigned), 0),
    )  # fmt: skip
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="m", members=[member])
    key = versioned(2, GroupMetadataKey(group="g"), 0)
    shown = decoded("__consumer_offsets", key, versioned(3, value, 3))["value"]["data"]["members"][0]
    assert shown["subscription"]["topics"] == ["t"]
    assert shown["subscription"]["userData"] == base64.b64encode(b"\xff").decode()
    assert shown["assignment"]["assignedPartitions"] == [{"topic": "t", "partitions": [0, 1]}]
    value.protocol_type = "connect"
    shown = decoded("__consumer_offsets", key, versioned(3, value, 3))["value"]["data"]["members"][0]
    assert shown["subscription"] == base64.b64encode(subscription).decode()


def test_transactions_shares_and_metadata() -> None:
    key = versioned(0, TransactionLogKey(transactional_id="pay"), 0)
    partitions = [TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[1])]
    value = versioned(1, TransactionLogValue(producer_id=9, transaction_partitions=partitions), 1)
    found = decoded("__transaction_state", key, value)
    assert found["key"]["data"] == {"transactionalId": "pay"}
    assert found["value"]["data"]["transactionPartitions"] == [{"topic": "t", "partitionIds": [1]}]
    batch = ShareSnapshotValue.StateBatch(first_offset=1, last_offset=2, delivery_state=0, delivery_count=3)
    key = versioned(0, ShareSnapshotKey(group_id="g", topic_id=TOPIC_ID, partition=0), 0)
    found = decoded("__share_group_state", key, versioned(0, ShareSnapshotValue(state_batches=[batch]), 0))
    assert found["key"]["data"]["topicId"] == uuid_to_str(TOPIC_ID)
    assert found["value"]["data"]["stateBatches"][0]["deliveryCount"] == 3
    record = encode_metadata_record(TopicRecord(name="t", topic_id=TOPIC_ID), 0)
    assert decoded("__cluster_metadata", None, record) == {
        "value": {"type": 2, "name": "TopicRecord", "data": {"name": "t", "topicId": uuid_to_str(TOPIC_ID)}}
    }


@pytest.mark.parametrize("key", [None, b"", b"\0", PREFIX.pack(99), PREFIX.pack(1) + b"\0\5short"])
def test_what_is_not_known_is_printed_as_it_is(key: bytes | None) -> None:
    printed = json.loads(decoded_lines([message(RECORD._replace(topic="__consumer_offsets", key=key, value=b"\xff"))]))
    assert printed["value_base64"] == "/w=="
    assert json.loads(decoded_lines([message(RECORD)]))["value"] == "value"


def test_the_records_of_a_broker() -> None:
    with barnabas.Broker() as broker:
        broker.create_topic("orders")
        with Admin(broker.bootstrap_servers) as admin:
            admin.alter_group_offsets("shop", {TopicPartition("orders", 0): (0, "", -1)})
        line = ["consume", "__consumer_offsets", "-e", "-b", broker.bootstrap_servers]
        printed = CliRunner().invoke(command_group(), line, prog_name="barnabas").stdout.splitlines()
        (record,) = [each for each in map(json.loads, printed) if each["key"]["name"] == "OffsetCommitKey"]
        assert record["key"]["data"] == {"group": "shop", "topic": "orders", "partition": 0}
        assert (record["value"]["version"], record["value"]["data"]["offset"]) == (4, 0)
        raw = CliRunner().invoke(command_group(), [*line, "-f", "json"], prog_name="barnabas").stdout.splitlines()
        assert "value_base64" in json.loads(raw[-1]), "json is as for every topic"
