"""A broker that leaves in order: what it gives up first, for whom it waits, and what it does not get any more."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.metadata.controller_harness import INCARNATION, ControllerHarness


class Cluster:
    """Three brokers, and a topic with the given replicas of each partition."""

    def __init__(self, *assignments: tuple[int, ...], configs: dict[str, str] | None = None) -> None:
        self.harness = ControllerHarness()
        self.epochs = {broker: self.harness.register(broker) for broker in (1, 2, 3)}
        made = messages.CreateTopicsRequest
        topic = made.CreatableTopic(
            name="a",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                made.CreatableReplicaAssignment(partition_index=i, broker_ids=list(replicas))
                for i, replicas in enumerate(assignments)
            ],
            configs=[made.CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()],
        )
        if assignments:
            self.harness.send(ApiKey.CREATE_TOPICS, made(topics=[topic]))
        for broker in (1, 2, 3):
            self.beat(broker)

    @property
    def end(self) -> int:
        """The offset of the last record."""
        return self.harness.log.end_offset - 1

    def beat(self, broker: int, *, read: int | None = None, **wants: bool) -> Any:
        """A heartbeat of a broker that has read the metadata log up to an offset, all of it if None."""
        request = messages.BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self.epochs[broker],
            current_metadata_offset=self.end if read is None else read,
            **wants,
        )
        return self.harness.send(ApiKey.BROKER_HEARTBEAT, request)

    def stop(self, broker: int, **more: bool) -> bool:
        """Ask to shut down; returns whether the broker may."""
        answer = self.beat(broker, want_shut_down=True, **more)
        assert answer.is_fenced is answer.should_shut_down
        granted: bool = answer.should_shut_down
        return granted

    def now(self, index: int = 0) -> PartitionRegistration:
        return self.harness.controller.image.topics.by_name["a"].partitions[index]

    def broker(self, broker: int) -> tuple[bool, bool]:
        found = self.harness.controller.image.cluster.brokers[broker]
        return found.fenced, found.in_controlled_shutdown


def test_it_leaves_every_isr_before_it_stops() -> None:
    cluster = Cluster((1, 2), (2, 1), (3, 2))
    assert not cluster.stop(1)
    assert cluster.broker(1) == (False, True)
    assert [(cluster.now(i).leader, cluster.now(i).isr) for i in range(3)] == [(2, (2,)), (2, (2,)), (3, (3, 2))]


def test_it_may_stop_when_the_active_brokers_have_read_the_change() -> None:
    cluster = Cluster((1, 2, 3))
    assert not cluster.stop(1)
    handed_over = cluster.end
    for broker, read, granted in (
        (2, handed_over, False),
        (3, handed_over - 1, False),
        (3, handed_over, True),
    ):
        cluster.beat(broker, read=read)
        assert cluster.stop(1) is granted
    assert cluster.broker(1) == (True, True)


def test_a_follower_waits_for_its_leaders_too() -> None:
    cluster = Cluster((2, 1))
    assert not cluster.stop(1)
    assert (cluster.broker(1), cluster.now().isr) == ((False, True), (2,))
    assert not cluster.stop(1)
    cluster.beat(2)
    cluster.beat(3)
    assert cluster.stop(1)


def test_a_broker_without_replicas_stops_at_once() -> None:
    cluster = Cluster((2, 3))
    assert cluster.stop(1)
    assert cluster.broker(1) == (True, False)


def test_a_broker_that_is_fenced_or_wants_to_be_stops_at_once() -> None:
    cluster = Cluster((1, 2))
    assert cluster.stop(1, want_fence=True)
    assert cluster.now().leader == 2
    assert cluster.stop(1)


def test_brokers_that_are_fenced_or_stop_themselves_are_not_waited_for() -> None:
    cluster = Cluster((1, 2, 3))
    assert not cluster.stop(1)
    assert not cluster.stop(2)
    assert not cluster.stop(1)
    cluster.beat(3, want_fence=True)
    assert cluster.stop(1)
    assert cluster.stop(2)


def test_after_another_controller_has_taken_over_the_brokers_have_to_read_what_it_found() -> None:
    cluster = Cluster((1, 2, 3))
    assert not cluster.stop(1)
    cluster.harness.restart()
    found = cluster.end
    assert not cluster.stop(1)
    cluster.beat(2, read=found)
    cluster.beat(3, read=found - 1)
    assert not cluster.stop(1)
    cluster.beat(3, read=found)
    assert cluster.stop(1)


def test_one_node_alone_waits_for_nobody() -> None:
    cluster = Cluster((1,))
    for other in (2, 3):
        cluster.beat(other, want_fence=True)
    assert not cluster.stop(1)
    assert cluster.stop(1)


@pytest.mark.parametrize("is_unclean", [False, True])
def test_a_broker_that_shuts_down_is_never_elected(is_unclean: bool) -> None:
    configs = {"unclean.leader.election.enable": str(is_unclean).lower()}
    cluster = Cluster((2, 1), configs=configs)
    assert not cluster.stop(1)
    cluster.beat(2, want_fence=True)
    assert (cluster.now().leader, cluster.now().elr) == (-1, (2,))
    for election in (0, 1):
        topics = [messages.ElectLeadersRequest.TopicPartitions(topic="a", partitions=[0])]
        request = messages.ElectLeadersRequest(election_type=election, topic_partitions=topics, timeout_ms=1)
        (result,) = cluster.harness.send(ApiKey.ELECT_LEADERS, request).replica_election_results[0].partition_result
        assert result.error_code != ErrorCode.NONE
    assert cluster.now().leader == -1


def test_a_broker_that_was_fenced_in_its_shutdown_leads_only_as_a_new_incarnation() -> None:
    cluster = Cluster((1,))
    assert not cluster.stop(1)
    cluster.beat(1, want_shut_down=False)
    cluster.harness.now_ms += cluster.harness.settings.broker_session_timeout_ms - 1
    for other in (2, 3):
        cluster.beat(other)
    cluster.harness.now_ms += 1
    cluster.harness.controller.tick()
    assert cluster.broker(1) == (True, True)
    # The same incarnation again: it is still shutting down.
    assert not cluster.beat(1).is_fenced
    assert cluster.now().leader == -1
    cluster.beat(1, want_fence=True)
    epoch = cluster.epochs[1]
    cluster.epochs[1] = cluster.harness.register(1, incarnation_id=b"n" * 16, previous_broker_epoch=epoch)
    assert INCARNATION != b"n" * 16
    assert (cluster.broker(1), cluster.now().leader) == ((False, False), 1)


def test_a_new_topic_does_not_use_a_broker_that_shuts_down() -> None:
    cluster = Cluster((1, 2, 3))
    assert not cluster.stop(1)
    cluster.harness.create("b", partitions=6)
    partitions = cluster.harness.controller.image.topics.by_name["b"].partitions.values()
    assert {partition.leader for partition in partitions} == {2, 3}


def test_a_restart_without_an_orderly_stop_leaves_isr_and_elr() -> None:
    cluster = Cluster((1, 2, 3), (2, 3, 1), configs={"min.insync.replicas": "3"})
    cluster.beat(3, want_fence=True)
    assert (cluster.now().isr, cluster.now().elr) == ((1, 2), (3,))
    # 1 restarts within its session, 3 after it was fenced; neither says that it stopped.
    cluster.epochs[3] = cluster.harness.register(3, unfence=False, incarnation_id=b"3" * 16)
    assert (cluster.now().isr, cluster.now().elr) == ((1, 2), ())
    cluster.harness.now_ms += cluster.harness.settings.broker_session_timeout_ms
    cluster.beat(2)
    cluster.epochs[1] = cluster.harness.register(1, unfence=False, incarnation_id=b"1" * 16)
    for index in (0, 1):
        now = cluster.now(index)
        assert (now.leader, now.isr, now.elr) == (2, (2,), ())


@pytest.mark.parametrize(("previous", "is_trusted"), [(0, True), (-1, False), (1, False)])
def test_the_epoch_of_the_last_incarnation_proves_an_orderly_stop(previous: int, is_trusted: bool) -> None:
    cluster = Cluster((1,))
    cluster.beat(1, want_fence=True)
    assert (cluster.now().isr, cluster.now().elr) == ((), (1,))
    said = cluster.epochs[1] + previous if previous >= 0 else -1
    cluster.harness.register(1, unfence=False, incarnation_id=b"n" * 16, previous_broker_epoch=said)
    assert cluster.now().elr == ((1,) if is_trusted else ())
