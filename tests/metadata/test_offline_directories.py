"""Directories that a broker loses while it goes on: its replicas there leave ISRs and leaderships, its others stay."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.metadata.features_image import FeaturesImage
from barnabas.metadata.metadata_version import DIRECTORY_ASSIGNMENT_SINCE
from barnabas.metadata.offline_directories import on_directories_offline
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from tests.metadata.test_assign_replicas import FIRST, SECOND, Cluster

STRANGE = b"\7" * 16


class TwoDirectories(Cluster):
    """Broker 1 has one directory, broker 2 two; topics a and b, led by 2, are in its FIRST and its SECOND."""

    def __init__(self) -> None:
        super().__init__()
        self.create("b", 2, 1)
        for name, directory in (("a", FIRST), ("b", SECOND)):
            assert self.assign(directory, topic_id=self.harness.controller.image.topics.by_name[name].topic_id) == 0

    def create(self, name: str, *replicas: int) -> None:
        topic = messages.CreateTopicsRequest.CreatableTopic
        assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment(
            partition_index=0, broker_ids=list(replicas)
        )
        asked = topic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
        self.harness.send(ApiKey.CREATE_TOPICS, messages.CreateTopicsRequest(topics=[asked], timeout_ms=1000))

    def of(self, name: str) -> PartitionRegistration:
        return self.harness.controller.image.topics.by_name[name].partitions[0]

    def state(self, name: str) -> tuple[int, tuple[int, ...]]:
        return self.of(name).leader, self.of(name).isr

    def beat(self, *offline: bytes, **fields: Any) -> Any:
        return self.harness.heartbeat(2, self.epoch, offline_log_dirs=list(offline), **fields)

    @property
    def offered(self) -> tuple[bytes, ...]:
        return self.harness.controller.image.cluster.brokers[2].directories


def test_only_the_replicas_in_the_directory_that_failed_go_offline(caplog: pytest.LogCaptureFixture) -> None:
    cluster = TwoDirectories()
    assert (cluster.state("a"), cluster.state("b")) == ((2, (2, 1)), (2, (2, 1)))
    with caplog.at_level(logging.WARNING):
        answer = cluster.beat(FIRST)
    assert (answer.is_fenced, answer.is_caught_up) == (False, True)
    assert (cluster.state("a"), cluster.state("b")) == ((1, (1,)), (2, (2, 1)))
    # The partition keeps the directory: a disk that is found again is assigned already.
    assert cluster.of("a").directories[0] == FIRST
    assert cluster.offered == (SECOND,)
    assert [record.getMessage() for record in caplog.records] == [
        "Broker 2 has lost the directories AQEBAQEBAQEBAQEBAQEBAQ; it goes on with 1"
    ]
    end = cluster.harness.log.end_offset
    cluster.beat(FIRST)
    assert cluster.harness.log.end_offset == end


def test_the_registration_comes_after_the_partitions() -> None:
    cluster = TwoDirectories()
    view = cluster.harness.view()
    batches = on_directories_offline(view, view.image.cluster.brokers[2], [STRANGE, FIRST])
    assert batches is not None
    with pytest.raises(StopIteration) as end:
        next(batches)
    partition, registration = end.value.value
    assert (type(partition).__name__, partition.leader, partition.isr) == ("PartitionChangeRecord", 1, [1])
    assert (type(registration).__name__, registration.log_dirs) == ("BrokerRegistrationChangeRecord", [SECOND])


def test_a_directory_that_is_not_offered_changes_nothing() -> None:
    cluster = TwoDirectories()
    view = cluster.harness.view()
    broker = view.image.cluster.brokers[2]
    assert on_directories_offline(view, broker, [STRANGE]) is None
    assert on_directories_offline(view, broker, []) is None
    old = view.image._replace(features=FeaturesImage(DIRECTORY_ASSIGNMENT_SINCE - 1))
    assert on_directories_offline(view._replace(image=old), broker, [FIRST]) is None


def test_a_sole_replica_waits_for_its_directory_and_leads_when_it_is_back() -> None:
    cluster = TwoDirectories()
    cluster.create("one", 2)
    topic_id = cluster.harness.controller.image.topics.by_name["one"].topic_id
    assert cluster.assign(FIRST, topic_id=topic_id) == 0
    cluster.beat(FIRST)
    assert cluster.of("one").leader == -1
    cluster.beat(FIRST)
    assert cluster.of("one").leader == -1
    cluster.harness.heartbeat(2, cluster.epoch, want_shut_down=True)
    cluster.harness.heartbeat(2, cluster.epoch, want_shut_down=True)
    previous = cluster.epoch
    cluster.epoch = cluster.register(2, FIRST, SECOND, incarnation=b"i" * 16, previous_broker_epoch=previous)
    assert cluster.offered == (FIRST, SECOND)
    assert cluster.of("one").leader == 2


def test_an_eligible_replica_that_returns_with_another_disk_does_not_lead() -> None:
    cluster = TwoDirectories()
    cluster.create("one", 2)
    topic_id = cluster.harness.controller.image.topics.by_name["one"].topic_id
    assert cluster.assign(FIRST, topic_id=topic_id) == 0
    cluster.beat(FIRST)
    assert (cluster.of("one").leader, cluster.of("one").elr) == (-1, (2,))
    cluster.harness.heartbeat(2, cluster.epoch, want_shut_down=True)
    cluster.harness.heartbeat(2, cluster.epoch, want_shut_down=True)
    previous, third = cluster.epoch, b"\3" * 16
    cluster.epoch = cluster.register(2, SECOND, third, incarnation=b"i" * 16, previous_broker_epoch=previous)
    assert cluster.assign(third, topic_id=topic_id) == 0
    one = cluster.of("one")
    assert (one.leader, one.elr, one.isr, one.directories) == (-1, (), (), (third,))


def test_a_broker_without_any_directory_left_keeps_its_registration() -> None:
    cluster = TwoDirectories()
    cluster.beat(FIRST, SECOND)
    assert (cluster.state("a"), cluster.state("b")) == ((1, (1,)), (1, (1,)))
    assert cluster.offered == (FIRST, SECOND)


def test_a_broker_that_is_fenced_is_unfenced_by_the_heartbeat_after() -> None:
    cluster = TwoDirectories()
    assert cluster.beat(want_fence=True).is_fenced
    assert cluster.beat(FIRST).is_fenced
    assert cluster.offered == (SECOND,)
    assert not cluster.beat(FIRST).is_fenced
    assert cluster.state("a") == (1, (1,))


def test_a_broker_that_shuts_down_does_that_first() -> None:
    cluster = TwoDirectories()
    cluster.beat(FIRST, want_shut_down=True)
    assert (cluster.state("a"), cluster.state("b")) == ((1, (1,)), (1, (1,)))
    assert cluster.offered == (FIRST, SECOND)
