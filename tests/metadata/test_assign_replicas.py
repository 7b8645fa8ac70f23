"""AssignReplicasToDirs: where a broker with several directories has put its replicas."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.assign_replicas import assign_replicas_to_dirs
from barnabas.metadata.directory_ids import LOST, UNASSIGNED
from barnabas.metadata.features_image import FeaturesImage
from barnabas.metadata.metadata_version import DIRECTORY_ASSIGNMENT_SINCE
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import CLUSTER_ID, ControllerHarness, directory_of

FIRST, SECOND = b"\1" * 16, b"\2" * 16
Request = messages.AssignReplicasToDirsRequest


class Cluster:
    """Broker 1 with one directory, broker 2 with two, and topic a on both."""

    def __init__(self) -> None:
        self.harness = ControllerHarness()
        self.harness.register(1)
        self.epoch = self.register(2, FIRST, SECOND)
        topic = messages.CreateTopicsRequest.CreatableTopic
        assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])
        asked = topic(name="a", num_partitions=-1, replication_factor=-1, assignments=[assignment])
        self.harness.send(ApiKey.CREATE_TOPICS, messages.CreateTopicsRequest(topics=[asked], timeout_ms=1000))

    def register(self, broker_id: int, *directories: bytes, incarnation: bytes = bytes(16), **fields: Any) -> int:
        made = messages.BrokerRegistrationRequest
        levels = self.harness.controller.image.features.all_finalized()
        request = made(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            features=[made.Feature(name=n, min_supported_version=0, max_supported_version=99) for n in levels],
            log_dirs=list(directories),
            incarnation_id=incarnation,
            **fields,
        )
        epoch: int = self.harness.send(ApiKey.BROKER_REGISTRATION, request).broker_epoch
        self.harness.heartbeat(broker_id, epoch)
        return epoch

    @property
    def topic_id(self) -> bytes:
        return self.harness.controller.image.topics.by_name["a"].topic_id

    @property
    def partition(self) -> PartitionRegistration:
        return self.harness.controller.image.topics.by_name["a"].partitions[0]

    def assign(self, directory: bytes, *, topic_id: bytes | None = None, index: int = 0, **fields: Any) -> int:
        """Assign partition 0 of the topic; return its error code."""
        partition = Request.PartitionData(partition_index=index)
        topic = Request.TopicData(topic_id=topic_id or self.topic_id, partitions=[partition])
        request = Request(directories=[Request.DirectoryData(id=directory, topics=[topic])])
        for name, value in {"broker_id": 2, "broker_epoch": self.epoch, **fields}.items():
            setattr(request, name, value)
        answer = self.harness.send(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request)
        assert answer.error_code == 0
        (answered,) = answer.directories
        assert (answered.id, answered.topics[0].topic_id) == (directory, topic.topic_id)
        assert answered.topics[0].partitions[0].partition_index == index
        code: int = answered.topics[0].partitions[0].error_code
        return code


def test_a_broker_tells_which_directory_it_has_chosen() -> None:
    cluster = Cluster()
    assert cluster.partition.directories == (UNASSIGNED, directory_of(1))
    assert cluster.assign(SECOND) == 0
    assert cluster.partition.directories == (SECOND, directory_of(1))
    end = cluster.harness.log.end_offset
    # To say it again changes nothing.
    assert cluster.assign(SECOND) == 0
    assert cluster.harness.log.end_offset == end
    assert (cluster.partition.leader, cluster.partition.isr) == (2, (2, 1))


@pytest.mark.parametrize("directory", [LOST, b"\7" * 16], ids=["lost", "of nobody"])
def test_a_replica_in_a_directory_that_is_not_offered_leaves_the_isr(directory: bytes) -> None:
    cluster = Cluster()
    assert cluster.assign(directory) == 0
    assert cluster.partition.directories == (directory, directory_of(1))
    assert (cluster.partition.leader, cluster.partition.isr, cluster.partition.leader_epoch) == (1, (1,), 1)


def test_errors_are_of_single_partitions() -> None:
    cluster = Cluster()
    assert cluster.assign(FIRST, topic_id=b"?" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.assign(FIRST, index=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    epoch = cluster.harness.register(3)
    code = cluster.assign(directory_of(3), broker_id=3, broker_epoch=epoch)
    assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_another_epoch_of_the_broker_is_stale() -> None:
    cluster = Cluster()
    with pytest.raises(KafkaError) as caught:
        cluster.assign(FIRST, broker_epoch=cluster.epoch - 1)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_before_directories_have_names_it_is_rejected() -> None:
    view = Cluster().harness.view()
    old = view.image._replace(features=FeaturesImage(DIRECTORY_ASSIGNMENT_SINCE - 1))
    with pytest.raises(KafkaError) as caught:
        assign_replicas_to_dirs(view._replace(image=old), Request(broker_id=2))
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_last_known_leader_with_another_disk_waits_for_an_operator() -> None:
    cluster = Cluster()
    # Broker 2 crashes, and returns with another disk.
    harness = cluster.harness
    topic = messages.CreateTopicsRequest.CreatableTopic
    assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[2])
    asked = topic(name="one", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    harness.send(ApiKey.CREATE_TOPICS, messages.CreateTopicsRequest(topics=[asked], timeout_ms=1000))
    one = harness.controller.image.topics.by_name["one"].topic_id
    assert cluster.assign(FIRST, topic_id=one) == 0
    active = harness.controller.active
    assert active is not None
    active.broker_disconnected(2, cluster.epoch)
    third = b"\3" * 16
    cluster.epoch = cluster.register(2, third, incarnation=b"i" * 16)

    def known() -> tuple[int, tuple[int, ...], tuple[bytes, ...]]:
        partition = harness.controller.image.topics.by_name["one"].partitions[0]
        return partition.leader, partition.last_known_elr, partition.directories

    assert known() == (-1, (2,), (FIRST,))
    for _ in range(2):
        assert cluster.assign(third, topic_id=one) == 0
        harness.heartbeat(2, cluster.epoch)
        assert known() == (-1, (), (third,))
    wanted = messages.ElectLeadersRequest.TopicPartitions(topic="one", partitions=[0])
    asked_for = messages.ElectLeadersRequest(election_type=1, topic_partitions=[wanted], timeout_ms=1000)
    harness.send(ApiKey.ELECT_LEADERS, asked_for)
    assert known() == (2, (), (third,))


def test_a_last_known_leader_whose_disk_is_found_again_leads() -> None:
    cluster = Cluster()
    harness = cluster.harness
    topic = messages.CreateTopicsRequest.CreatableTopic
    assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[2])
    asked = topic(name="one", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    harness.send(ApiKey.CREATE_TOPICS, messages.CreateTopicsRequest(topics=[asked], timeout_ms=1000))
    one = harness.controller.image.topics.by_name["one"].topic_id
    assert cluster.assign(FIRST, topic_id=one) == 0
    for incarnation, directory in ((b"i" * 16, b"\3" * 16), (b"j" * 16, FIRST)):
        harness.active.broker_disconnected(2, cluster.epoch)
        cluster.epoch = cluster.register(2, directory, incarnation=incarnation)
    assert harness.controller.image.topics.by_name["one"].partitions[0].leader == 2
