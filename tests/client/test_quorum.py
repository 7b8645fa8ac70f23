"""The quorum of controllers."""

from __future__ import annotations

import pytest

from barnabas.client.admin import Admin, Quorum, QuorumReplica
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import every_version, only

R = messages.DescribeQuorumResponse


def answer(**fields: object) -> R:
    partition = R.PartitionData(
        leader_id=2,
        leader_epoch=5,
        high_watermark=90,
        current_voters=[
            R.ReplicaState(replica_id=2, log_end_offset=91),
            R.ReplicaState(replica_id=1, log_end_offset=90),
        ],
        observers=[R.ReplicaState(replica_id=7, log_end_offset=80)],
    )
    for name, value in fields.items():
        setattr(partition, name, value)
    return R(topics=[R.TopicData(topic_name="__cluster_metadata", partitions=[partition])])


@pytest.mark.parametrize("version", every_version(messages.DescribeQuorumRequest))
def test_leader_voters_and_observers(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeQuorumRequest, version)
    memory.handlers["DescribeQuorumRequest"] = lambda *_: answer()
    replicas = [QuorumReplica(1, 90, True), QuorumReplica(2, 91, True), QuorumReplica(7, 80, False)]
    assert admin.describe_quorum() == Quorum(2, 5, 90, replicas)


def test_errors_of_the_request_and_of_the_partition_are_raised(memory: MemoryCluster, admin: Admin) -> None:
    for response in (
        R(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, topics=[]),
        answer(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        memory.handlers["DescribeQuorumRequest"] = lambda *_, response=response: response
        with pytest.raises(KafkaError):
            admin.describe_quorum()
