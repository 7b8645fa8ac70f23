"""What became of a share group's records: from states that are given, and of a real member's records on both brokers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from starlette.testclient import TestClient

import barnabas
from barnabas.cli import share_deliveries
from barnabas.cli.group import described_group
from barnabas.cli.share_deliveries import HELD_NOW, ShareReading, share_reading
from barnabas.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType, TopicPartition, result
from barnabas.client.group_offsets import ShareOffset
from barnabas.client.share_states import ShareState
from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.state_batches import RecordState, StateBatch
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission
from barnabas.security.acls import ResourceType as AclType
from tests.conform.brokers import await_leaders, broker

PATIENCE_SECONDS = 60
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
STATE = ShareState(4, (StateBatch(4, 6, RecordState.AVAILABLE, 2), StateBatch(7, 7, RecordState.ARCHIVED, 5)))


class FakeAdmin:
    """Answers with what it is given, or raises it."""

    def __init__(self, found: dict[TopicPartition, Any] | KafkaError) -> None:
        self._found = found

    def read_share_states(self, group_id: str, partitions: list[TopicPartition]) -> dict[TopicPartition, Any]:
        if isinstance(self._found, KafkaError):
            raise self._found
        return self._found


def reading(found: dict[TopicPartition, Any] | KafkaError) -> ShareReading:
    return share_reading(FakeAdmin(found), "q", {T0: ShareOffset(4, 9), T1: ShareOffset(0, None)})  # type: ignore[arg-type]


def test_a_state_as_data_and_as_tables() -> None:
    found = reading({T0: STATE})
    (partition,) = found.data()["deliveries"]  # type: ignore[misc]
    assert partition == {
        "topic": "t", "partition": 0, "start_offset": 4, "lag": 9, "available": 3, "acknowledged": 0, "archiving": 0,
        "archived": 1, "max_delivery_count": 5, "batches": [
            {"first_offset": 4, "last_offset": 6, "records": 3, "state": "AVAILABLE", "delivery_count": 2},
            {"first_offset": 7, "last_offset": 7, "records": 1, "state": "ARCHIVED", "delivery_count": 5},
        ],
    }  # fmt: skip
    counts, batches = found.tables()
    assert counts.rows == [("t", 0, 4, 9, 3, 0, 0, 1, 5)]
    assert batches.rows == [("t", 0, 4, 6, 3, "AVAILABLE", 2), ("t", 0, 7, 7, 1, "ARCHIVED", 5)]


def test_a_group_that_has_not_begun_has_no_start_offset() -> None:
    (table,) = reading({T1: ShareState(-1)}).tables()
    assert table.rows == [("t", 1, None, None, 0, 0, 0, 0, 0)]


def test_long_lists_say_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_deliveries, "_BATCHES_SHOWN", 1)
    _, batches = reading({T0: STATE}).tables()
    assert (len(batches.rows), batches.title) == (1, "Delivered, and not behind the start offset; the first 1 of 2")


def test_what_cannot_be_read_is_a_sentence() -> None:
    denied = reading(error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert denied.unknown[0].startswith("Topic __share_group_state: ")
    assert denied.unknown[0].endswith("(this user is not allowed to do that).")
    assert denied.data() == {"deliveries": [], "deliveries_unknown": list(denied.unknown)}
    (table,) = denied.tables()
    assert table.columns == ("DELIVERIES-UNKNOWN",)
    lost = error_for(
        ErrorCode.OFFSET_NOT_AVAILABLE, "the last 9 records of partition 1 of __share_group_state do not have it"
    )
    some = reading({T0: STATE, T1: lost, TopicPartition("t", 2): lost})
    assert some.unknown == ("The last 9 records of partition 1 of __share_group_state do not have it.",)
    assert len(some.tables()) == 3


SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
}


def joined(bootstrap: str, admin: Admin) -> ShareConsumer:
    """Return a member of group q, which begins at the first of six records of the topic jobs."""
    admin.create_topics([NewTopic("jobs", 1, 1)])
    await_leaders(bootstrap, {"jobs": 1})
    begins = {ConfigResource(ResourceType.GROUP, "q"): [ConfigChange("share.auto.offset.reset", "earliest")]}
    assert list(admin.alter_configs(begins).values()) == [None]
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(6):
        producer.produce("jobs", str(number), partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    member = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": "q", "share.acknowledgement.mode": "explicit"})
    member.subscribe(["jobs"])
    return member


def taken(consumer: ShareConsumer, count: int) -> dict[int, Any]:
    """Return so many records by offset."""
    found: dict[int, Any] = {}
    until = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} records have come"
        found |= {each.offset(): each for each in consumer.poll(1) if not each.error()}
    return found


def seen(admin: Admin) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Return what is said of the only partition, and its batches as rows."""
    described = described_group(
        admin, result(admin.describe_groups(["q"])["q"]), with_members=False, with_partitions=True
    )
    assert "deliveries_unknown" not in described.data
    (partition,) = described.data["deliveries"]
    (row,) = described.data["partitions"]
    assert row["lag_to_last_stable_offset"] == row["lag"] == partition["lag"]
    batches = partition.pop("batches")
    return partition, [tuple(each.values()) for each in batches]


@pytest.mark.slow
@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.DESCRIBE])
def test_who_may_not_read_the_states_sees_the_rest(operation: AclOperation) -> None:
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    denied = AclBinding(
        AclType.TOPIC, "__share_group_state", PatternType.LITERAL, "User:ANONYMOUS", "*", operation, Permission.DENY
    )
    allowed = denied._replace(operation=AclOperation.DESCRIBE, permission_type=Permission.ALLOW)
    with barnabas.Broker(config={**SETTINGS, **authorizer}) as running, Admin(running.bootstrap_servers) as admin:
        member = joined(running.bootstrap_servers, admin)
        for each in taken(member, 6).values():
            member.acknowledge(each, AcknowledgeType.RELEASE)
        member.commit_sync(PATIENCE_SECONDS)
        assert seen(admin)[0]["available"] == 6
        assert admin.create_acls([denied, allowed]) == [None, None]
        found = described_group(
            admin, result(admin.describe_groups(["q"])["q"]), with_members=False, with_partitions=True
        ).data
        member.close()
    (sentence,) = found["deliveries_unknown"]
    assert sentence.startswith("Topic __share_group_state: ")
    assert sentence.endswith("(this user is not allowed to do that).")
    assert (found["deliveries"], found["total_lag"], found["lag_to_last_stable_offset"]) == ([], 6, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["barnabas", pytest.param("apache-kafka", marks=pytest.mark.conform)])
def test_released_and_rejected_records(name: str, tmp_path: Path) -> None:
    accept, release, reject = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
    with broker(name, tmp_path, SETTINGS) as running, Admin(running.bootstrap_servers) as admin:
        bootstrap = running.bootstrap_servers
        member = joined(bootstrap, admin)
        first = taken(member, 6)
        for offset, kind in enumerate((accept, release, reject, accept, release, accept)):
            member.acknowledge(first[offset], kind)
        member.commit_sync(PATIENCE_SECONDS)
        partition, batches = seen(admin)
        assert partition == {
            "topic": "jobs", "partition": 0, "start_offset": 0, "lag": 2, "available": 2, "acknowledged": 3,
            "archiving": 0, "archived": 1, "max_delivery_count": 1,
        }  # fmt: skip
        assert batches == [
            (0, 0, 1, "ACKNOWLEDGED", 1), (1, 1, 1, "AVAILABLE", 1), (2, 2, 1, "ARCHIVED", 1),
            (3, 3, 1, "ACKNOWLEDGED", 1), (4, 4, 1, "AVAILABLE", 1), (5, 5, 1, "ACKNOWLEDGED", 1),
        ]  # fmt: skip

        for each in taken(member, 2).values():
            assert each.delivery_count() == 2
            member.acknowledge(each, release)
        member.commit_sync(PATIENCE_SECONDS)
        partition, batches = seen(admin)
        assert (partition["start_offset"], partition["lag"], partition["max_delivery_count"]) == (1, 2, 2)
        assert [each[:2] for each in batches] == [(offset, offset) for offset in range(1, 6)]
        assert [each[3:] for each in batches if each[0] in (1, 4)] == [("AVAILABLE", 2)] * 2

        with TestClient(
            Console([AskedCluster("local", lambda: Admin(bootstrap))]).app(), base_url="http://localhost"
        ) as browser:
            page = browser.get("/clusters/local/group?id=q").text
            twin = browser.get("/clusters/local/group?id=q&format=json").json()
        member.close()
    assert HELD_NOW in page
    assert "MAX-DELIVERY-COUNT" in page
    assert twin["group"]["deliveries"][0] == partition | {"batches": twin["group"]["deliveries"][0]["batches"]}
    assert [tuple(each.values()) for each in twin["group"]["deliveries"][0]["batches"]] == batches
    assert twin["pace"]["lag"] == twin["pace"]["lag_to_last_stable_offset"] == 2
