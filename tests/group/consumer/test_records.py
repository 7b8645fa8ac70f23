"""The records of consumer groups, byte for byte as a broker of Apache Kafka 4.3.1 has written them.

The member's life: a static consumer of librdkafka joins a topic of three partitions, leaves for a while, and its session ends.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.consumer import records
from barnabas.group.consumer.member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    MemberState,
    with_epoch,
)
from barnabas.group.topic_hash import group_hash, topic_hash
from barnabas.metadata.cluster_image import ClusterImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.messages import ConsumerGroupCurrentMemberAssignmentValue

SERDE = RecordSerde("group")
GROUP, TOPIC = "gda3985", "da3985"
TOPIC_ID = bytes.fromhex("bfa07a9fb39c40dc90930823e01ef385")
_GROUP_KEY = "0007" + GROUP.encode().hex()
_MEMBER_KEY = _GROUP_KEY + "0016" + "70436d352f4f413852725764785473764d3136472f41"
MEMBER = ConsumerGroupMember(
    member_id="pCm5/OA8RrWdxTsvM16G/A",
    instance_id="i0",
    client_id="c0",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=300_000,
    subscribed_topic_names=frozenset({TOPIC}),
)
PARTITION = PartitionRegistration((1,), (1,), 1, 0, 0)


def written(record: CoordinatorRecord) -> tuple[str, str | None]:
    key, value = SERDE.encode(record)
    decoded = SERDE.decode(key, value)
    assert SERDE.encode(decoded) == (key, value)
    return key.hex(), None if value is None else value.hex()


def test_a_member() -> None:
    assert written(records.member_record(GROUP, MEMBER)) == (
        "0005" + _MEMBER_KEY,
        "0000036930000363300b2f3132372e302e302e31020764613339383501000493e00001000100",
    )


def test_the_group_epoch_with_the_hash_of_its_topics() -> None:
    topic = TopicImage(TOPIC, TOPIC_ID, {0: PARTITION, 1: PARTITION, 2: PARTITION})
    metadata_hash = group_hash({TOPIC: topic_hash(topic, ClusterImage())})
    assert written(records.epoch_record(GROUP, 2, metadata_hash)) == (
        "0003" + _GROUP_KEY,
        "000000000002010008da3b5d51de7a6d95",
    )
    assert written(records.epoch_record(GROUP, 3, 0)) == ("0003" + _GROUP_KEY, "00000000000300")


def test_the_target_assignment() -> None:
    assert written(records.target_record(GROUP, MEMBER.member_id, {TOPIC_ID: frozenset({0, 1, 2})})) == (
        "0007" + _MEMBER_KEY,
        "000002bfa07a9fb39c40dc90930823e01ef385040000000000000001000000020000",
    )
    assert written(records.target_epoch_record(GROUP, 2, 0x01A1FE81B46E)) == (
        "0006" + _GROUP_KEY,
        "000000000002010008000001a1fe81b46e",
    )


def test_where_a_member_is() -> None:
    joined = replace(
        MEMBER, member_epoch=2, previous_member_epoch=0, assigned=with_epoch({TOPIC_ID: frozenset({0, 1, 2})}, 2)
    )
    assert written(records.current_record(GROUP, joined)) == (
        "0008" + _MEMBER_KEY,
        "000000000002000000000002bfa07a9fb39c40dc90930823e01ef3850400000000000000010000000201000d04000000020000000200000002"
        "0100",
    )
    away = replace(joined, member_epoch=-2, assigned=with_epoch(joined.assigned, 0))
    assert written(records.current_record(GROUP, away)) == (
        "0008" + _MEMBER_KEY,
        "0000fffffffe000000000002bfa07a9fb39c40dc90930823e01ef3850400000000000000010000000201000d04000000000000000000000000"
        "0100",
    )


def test_the_end_of_a_member() -> None:
    assert [written(record) for record in records.removal_of_member(GROUP, MEMBER.member_id)] == [
        ("0008" + _MEMBER_KEY, None),
        ("0007" + _MEMBER_KEY, None),
        ("0005" + _MEMBER_KEY, None),
    ]


def test_a_member_is_the_same_after_its_records() -> None:
    member = replace(
        MEMBER,
        member_epoch=4,
        previous_member_epoch=3,
        state=MemberState.UNREVOKED_PARTITIONS,
        rack_id="r",
        subscribed_topic_regex="t.*",
        server_assignor="range",
        assigned={TOPIC_ID: {0: 2, 1: 4}},
        pending_revocation={TOPIC_ID: {2: 3}},
        classic=ClassicMemberMetadata(6000, (("range", b"a"), ("sticky", b"b"))),
    )
    read = ConsumerGroupMember(member_id=member.member_id)
    assert read.with_metadata(member.metadata_value()).with_assignment(member.assignment_value()) == member


def test_a_record_without_epochs_has_the_members() -> None:
    Partitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7, assigned_partitions=[Partitions(topic_id=TOPIC_ID, partitions=[0, 1])]
    )
    assert MEMBER.with_assignment(value).assigned == {TOPIC_ID: {0: 7, 1: 7}}


def test_a_state_that_is_not_known_is_kept_apart() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=7, state=9)
    assert MEMBER.with_assignment(value).state is MemberState.UNKNOWN


def test_the_states_of_a_member_are_written_as_kafka_numbers_them() -> None:
    assert [(state.name, state.value) for state in MemberState] == [
        ("STABLE", 0),
        ("UNREVOKED_PARTITIONS", 1),
        ("UNRELEASED_PARTITIONS", 2),
        ("UNKNOWN", 127),
    ]


def test_a_member_without_its_assignment_is_about_to_leave() -> None:
    member = replace(
        MEMBER,
        member_epoch=4,
        previous_member_epoch=3,
        assigned={TOPIC_ID: {0: 2}},
        pending_revocation={TOPIC_ID: {2: 3}},
    ).without_assignment()
    assert (member.member_epoch, member.previous_member_epoch) == (-1, -1)
    assert (member.assigned, member.pending_revocation) == ({}, {})
