"""Heartbeats that say what the logs have, and the elections that follow them."""

from __future__ import annotations

import pytest

from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from tests.metadata.controller_harness import ControllerHarness

Log = messages.BrokerHeartbeatRequest.ReplicaLog
MINUTES = 300_000


class Cluster:
    """Three brokers that have all lost their power, and topic a on them; broker 3 was the last to leave the in-sync replicas."""

    def __init__(self) -> None:
        self.harness = harness = ControllerHarness()
        for broker_id in (1, 2, 3):
            harness.register(broker_id, incarnation_id=b"first" + bytes(11))
        topic = messages.CreateTopicsRequest.CreatableTopic
        assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])
        asked = topic(name="a", num_partitions=-1, replication_factor=-1, assignments=[assignment])
        harness.send(ApiKey.CREATE_TOPICS, messages.CreateTopicsRequest(topics=[asked], timeout_ms=1000))
        for broker_id in (1, 2, 3):
            harness.active.broker_disconnected(broker_id, harness.controller.image.cluster.brokers[broker_id].epoch)
        self.epochs = {
            broker_id: harness.register(broker_id, unfence=False, incarnation_id=b"second" + bytes(10))
            for broker_id in (1, 2, 3)
        }

    @property
    def partition(self) -> PartitionRegistration:
        return self.harness.controller.image.topics.by_name["a"].partitions[0]

    def beat(self, broker_id: int, end: int | None = None, *, leader_epoch: int | None = None) -> int:
        """Send a heartbeat that says where the broker's log ends; return who leads after it."""
        topic_id = self.harness.controller.image.topics.by_name["a"].topic_id
        epoch = self.partition.leader_epoch if leader_epoch is None else leader_epoch
        log = Log(
            topic_id=topic_id,
            partition=0,
            current_leader_epoch=epoch,
            last_written_leader_epoch=0,
            log_end_offset=end or 0,
        )
        self.harness.heartbeat(broker_id, self.epochs[broker_id], replica_logs=[] if end is None else [log])
        return self.partition.leader


def test_the_last_heartbeat_elects_the_longest_log() -> None:
    cluster = Cluster()
    assert (cluster.partition.isr, cluster.partition.elr, cluster.partition.last_known_elr) == ((), (), (3,))
    assert [cluster.beat(3, 5), cluster.beat(1, 7), cluster.beat(2, 6)] == [-1, -1, 1]
    assert cluster.partition.isr == (1,)
    assert cluster.harness.controller.counts.unclean_elections == 1


def test_a_log_is_said_also_after_the_broker_is_unfenced() -> None:
    cluster = Cluster()
    assert [cluster.beat(each) for each in (1, 2, 3)] == [-1, -1, -1]
    assert [cluster.beat(3, 5), cluster.beat(1, 7), cluster.beat(2, 6)] == [-1, -1, 1]


def test_a_former_leader_epoch_says_nothing() -> None:
    cluster = Cluster()
    now = cluster.partition.leader_epoch
    assert [cluster.beat(3, 5), cluster.beat(1, 7), cluster.beat(2, 6, leader_epoch=now - 1)] == [-1, -1, -1]
    assert cluster.beat(2, 6) == 1


def test_a_broker_that_restarts_has_to_say_it_again() -> None:
    cluster = Cluster()
    cluster.beat(1, 7)
    cluster.beat(3, 5)
    cluster.harness.active.broker_disconnected(1, cluster.epochs[1])
    cluster.epochs[1] = cluster.harness.register(1, unfence=False, incarnation_id=b"third" + bytes(11))
    assert cluster.beat(2, 6) == -1, "broker 1 may have lost more"
    assert cluster.beat(1, 4) == 2


def test_a_new_controller_begins_anew() -> None:
    cluster = Cluster()
    cluster.beat(3, 5)
    cluster.beat(1, 7)
    cluster.harness.restart()
    assert [cluster.beat(2, 6), cluster.beat(3, 5), cluster.beat(1, 7)] == [-1, -1, 1]


@pytest.mark.parametrize("ms", [MINUTES - 1000, MINUTES])
def test_a_replica_that_stays_away_is_not_waited_for_without_end(ms: int) -> None:
    cluster = Cluster()
    cluster.beat(3, 5)
    cluster.beat(2, 6)
    for _ in range(ms // 1000):
        cluster.harness.now_ms += 1000
        cluster.harness.active.tick()
        if cluster.harness.now_ms % 5000 == 0:
            cluster.beat(3, 5)
            cluster.beat(2, 6)
    assert cluster.partition.leader == (2 if ms == MINUTES else -1)


def test_a_broker_that_does_not_speak_of_logs_ends_the_wait() -> None:
    cluster = Cluster()
    cluster.beat(3, 5)
    cluster.beat(2, 6)
    cluster.harness.heartbeat(1, cluster.epochs[1])
    cluster.harness.now_ms += 1000
    cluster.harness.active.tick()
    assert cluster.partition.leader == 3
