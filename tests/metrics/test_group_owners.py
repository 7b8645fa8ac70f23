"""The member that owns a partition, as labels name it."""

from __future__ import annotations

from barnabas.group.classic.consumer_protocol import write_assignment
from barnabas.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.metrics.monitored import Monitored, coordinate, value


def test_the_member_that_has_a_partition_is_named(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(
        name="range", metadata=b"\0\0" + ConsumerProtocolSubscription(topics=["t"]).encode(0)
    )
    joined = node.ask(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[protocol],
        ),
        3,
    )
    assert joined.error_code == 0
    given = ConsumerProtocolAssignment(
        assigned_partitions=[ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0])]
    )
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=write_assignment(given, 0)
    )
    synced = node.ask(
        SyncGroupRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[assignment]
        ),
        2,
    )
    assert synced.error_code == 0
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id, topics=topics
    )
    assert node.ask(request, 7).topics[0].partitions[0].error_code == 0
    samples = node.samples()
    assert value(samples, "kafka_consumergroup_members", consumergroup="g") == 1
    (tags,) = [dict(tags) for name, tags in samples if name == "kafka_consumergroup_group_offset"]
    assert (tags["consumer_id"], tags["client_id"]) == (joined.member_id, "test")
    assert tags["member_host"].endswith("10.0.0.9")
    assert value(samples, "kafka_server_group_coordinator_metrics_group_count", protocol="classic") == 1
