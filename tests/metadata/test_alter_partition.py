"""AlterPartition: which proposals of a leader are accepted, and what it learns from the answer."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.batches import CHANGE
from barnabas.metadata.partition_registration import LEADER_RECOVERED, LEADER_RECOVERING, PartitionRegistration
from barnabas.metadata.record_codec import encode_record
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import ControllerHarness, directory_of
from tests.short_turns import set_turn

INELIGIBLE, INVALID = ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST


class Cluster:
    """Four brokers and a topic, whose partition 0 has the replicas 1, 2 and 3."""

    def __init__(self, partitions: int = 1) -> None:
        self.harness = ControllerHarness()
        self.epochs = {broker: self.harness.register(broker) for broker in (1, 2, 3, 4)}
        made = messages.CreateTopicsRequest
        assignments = [
            made.CreatableReplicaAssignment(partition_index=i, broker_ids=[1, 2, 3]) for i in range(partitions)
        ]
        topic = made.CreatableTopic(name="a", num_partitions=-1, replication_factor=-1, assignments=assignments)
        self.harness.send(ApiKey.CREATE_TOPICS, made(topics=[topic]))
        self.topic_id = self.harness.controller.image.topics.by_name["a"].topic_id

    def now(self, index: int = 0) -> PartitionRegistration:
        return self.harness.controller.image.topics.by_name["a"].partitions[index]

    def write(self, **fields: Any) -> None:
        record = messages.PartitionChangeRecord(partition_id=0, topic_id=self.topic_id, **fields)
        self.harness.driver.append([encode_record(record, 33)])
        self.harness.restart()

    def proposal(self, *isr: int, epochs: dict[int, int] | None = None, **fields: Any) -> Any:
        made = messages.AlterPartitionRequest
        now = self.now()
        known = self.epochs | (epochs or {})
        values = {"leader_epoch": now.leader_epoch, "partition_epoch": now.partition_epoch} | fields
        members = [made.BrokerState(broker_id=broker, broker_epoch=known.get(broker, -1)) for broker in isr]
        return made.PartitionData(new_isr_with_epochs=members, **values)

    def ask(self, *proposals: Any, by: int = 1, topic_id: bytes | None = None) -> Any:
        made = messages.AlterPartitionRequest
        topic = made.TopicData(topic_id=topic_id or self.topic_id, partitions=list(proposals))
        request = made(broker_id=by, broker_epoch=self.epochs[by], topics=[topic])
        (answer,) = self.harness.send(ApiKey.ALTER_PARTITION, request).topics
        assert answer.topic_id == topic.topic_id
        return answer.partitions

    def propose(self, *isr: int, by: int = 1, epochs: dict[int, int] | None = None, **fields: Any) -> ErrorCode:
        (result,) = self.ask(self.proposal(*isr, epochs=epochs, **fields), by=by)
        return ErrorCode(result.error_code)


def test_an_isr_shrinks_and_grows_again() -> None:
    cluster = Cluster()
    for epoch, isr in enumerate([(1, 2), (1,), (1, 3, 2)], start=1):
        (result,) = cluster.ask(cluster.proposal(*isr))
        assert result == messages.AlterPartitionResponse.PartitionData(
            partition_index=0, leader_id=1, leader_epoch=0, isr=list(isr), partition_epoch=epoch
        )
        assert cluster.now().isr == isr


def test_a_proposal_that_changes_nothing_is_answered_with_what_is() -> None:
    cluster = Cluster()
    end = cluster.harness.log.end_offset
    (result,) = cluster.ask(cluster.proposal(1, 2, 3))
    assert (result.error_code, result.isr, result.partition_epoch) == (ErrorCode.NONE, [1, 2, 3], 0)
    assert cluster.harness.log.end_offset == end


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"leader_epoch": 3}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 3}, ErrorCode.INVALID_UPDATE_VERSION),
        # The first that holds decides.
        ({"leader_epoch": 1, "partition_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 3, "partition_epoch": 3}, ErrorCode.NOT_CONTROLLER),
        ({"by": 2, "partition_epoch": 3}, INVALID),
        ({"by": 2, "leader_epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_recovery_state": LEADER_RECOVERING}, INVALID),
        ({"leader_recovery_state": 2}, INVALID),
        ({}, ErrorCode.NONE),
    ],
)
def test_the_leader_and_the_controller_must_agree_on_epochs(fields: dict[str, int], error: ErrorCode) -> None:
    cluster = Cluster()
    cluster.write(leader=2)
    cluster.write(leader=1)
    cluster.write(isr=[1, 3])
    cluster.write(isr=[1, 3, 2])
    before = cluster.now()
    assert (before.leader_epoch, before.partition_epoch) == (2, 4)
    by = fields.pop("by", 1)
    assert cluster.propose(1, 2, by=by, **fields) is error
    assert cluster.now().isr == ((1, 2) if error is ErrorCode.NONE else before.isr)


@pytest.mark.parametrize("isr", [(2, 3), (1, 4), (1, 2, 2), (), (1, 2, 9)])
def test_an_isr_has_the_leader_and_replicas_once(isr: tuple[int, ...]) -> None:
    assert Cluster().propose(*isr) is INVALID


def test_a_leader_that_recovers_is_alone_until_it_has_recovered() -> None:
    cluster = Cluster()
    cluster.write(isr=[1], leader_recovery_state=LEADER_RECOVERING)
    assert cluster.propose(1, 2, leader_recovery_state=LEADER_RECOVERING) is INVALID
    assert cluster.propose(1, leader_recovery_state=LEADER_RECOVERING) is ErrorCode.NONE
    (result,) = cluster.ask(cluster.proposal(1, 2, leader_recovery_state=LEADER_RECOVERED))
    assert (result.isr, result.leader_recovery_state) == ([1, 2], LEADER_RECOVERED)
    assert cluster.now().leader_recovery_state == LEADER_RECOVERED
    assert cluster.propose(1, leader_recovery_state=LEADER_RECOVERING) is INVALID


def test_a_member_that_is_fenced_or_shuts_down_is_not_eligible() -> None:
    cluster = Cluster()
    cluster.harness.heartbeat(2, cluster.epochs[2], want_fence=True)
    assert cluster.now().isr == (1, 3)
    assert cluster.propose(1, 2, 3) is INELIGIBLE
    cluster.harness.heartbeat(2, cluster.epochs[2])
    assert cluster.propose(1, 2, 3) is ErrorCode.NONE
    change = messages.BrokerRegistrationChangeRecord(
        broker_id=3, broker_epoch=cluster.epochs[3], in_controlled_shutdown=1
    )
    cluster.harness.driver.append([encode_record(change, 33)])
    cluster.harness.restart()
    assert cluster.propose(1, 2, 3) is INELIGIBLE
    assert cluster.propose(1, 2) is ErrorCode.NONE


def test_a_member_whose_directory_has_failed_does_not_join_again() -> None:
    """Its last fetch was answered before it failed, and lets the leader propose it."""
    cluster = Cluster()
    assert cluster.propose(1, 2) is ErrorCode.NONE
    change = messages.BrokerRegistrationChangeRecord(
        broker_id=3, broker_epoch=cluster.epochs[3], log_dirs=[directory_of(9)]
    )
    cluster.harness.driver.append([encode_record(change, 33)])
    cluster.harness.restart()
    assert cluster.propose(1, 2, 3) is INELIGIBLE
    assert cluster.now().isr == (1, 2)


def test_a_member_of_another_incarnation_is_not_eligible() -> None:
    cluster = Cluster()
    assert cluster.propose(1, 2, epochs={2: cluster.epochs[2] - 1}) is INELIGIBLE
    assert cluster.propose(1, 2, epochs={2: cluster.epochs[2] + 1}) is INELIGIBLE
    # The leader may not know it.
    assert cluster.propose(1, 2, epochs={2: -1}) is ErrorCode.NONE
    # Restarted within its session: the old incarnation is not what is in the ISR.
    cluster.harness.heartbeat(2, cluster.epochs[2], want_fence=True)
    cluster.harness.register(2, incarnation_id=b"x" * 16)
    assert cluster.propose(1, 2) is INELIGIBLE


def test_a_replica_that_is_not_registered_is_not_eligible() -> None:
    cluster = Cluster()
    cluster.harness.send(ApiKey.UNREGISTER_BROKER, messages.UnregisterBrokerRequest(broker_id=3))
    assert cluster.propose(1, 2, 3, epochs={3: -1}) is INELIGIBLE


def test_version_2_names_no_epochs() -> None:
    cluster = Cluster()
    proposal = cluster.proposal()
    proposal.new_isr = [1, 3]
    (result,) = cluster.ask(proposal)
    assert (result.error_code, result.isr) == (ErrorCode.NONE, [1, 3])


def test_a_broker_epoch_that_is_over_is_rejected_whole() -> None:
    cluster = Cluster()
    cluster.epochs[1] -= 1
    with pytest.raises(KafkaError) as caught:
        cluster.ask(cluster.proposal(1))
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_an_unknown_topic_fails_alone() -> None:
    cluster = Cluster()
    (result,) = cluster.ask(cluster.proposal(1), topic_id=b"?" * 16)
    assert (result.error_code, result.partition_index) == (ErrorCode.UNKNOWN_TOPIC_ID, 0)


def test_the_leader_that_completes_a_reassignment_may_lose_its_leadership() -> None:
    cluster = Cluster()
    directories = [directory_of(broker_id) for broker_id in (4, 1, 2, 3)]
    cluster.write(replicas=[4, 1, 2, 3], directories=directories, adding_replicas=[4], removing_replicas=[1, 2, 3])
    (result,) = cluster.ask(cluster.proposal(1, 2, 3, 4))
    assert result == messages.AlterPartitionResponse.PartitionData(
        partition_index=0, error_code=ErrorCode.NEW_LEADER_ELECTED
    )
    now = cluster.now()
    assert (now.replicas, now.isr, now.leader, now.leader_epoch, now.is_reassigning) == ((4,), (4,), 4, 1, False)


def test_a_replica_that_the_isr_loses_below_min_isr_is_eligible() -> None:
    cluster = Cluster()
    made = messages.IncrementalAlterConfigsRequest
    config = made.AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")
    resource = made.AlterConfigsResource(resource_type=2, resource_name="a", configs=[config])
    cluster.harness.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, made(resources=[resource]))
    assert cluster.propose(1, 2) is ErrorCode.NONE
    assert cluster.now().elr == ()
    assert cluster.propose(1) is ErrorCode.NONE
    assert cluster.now().elr == (2,)
    assert cluster.propose(1, 3) is ErrorCode.NONE
    assert cluster.now().elr == ()


def test_many_partitions_are_altered_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(partitions=7)
    set_turn(monkeypatch, 3 * CHANGE)
    before = len(cluster.harness.log.batches)
    results = cluster.ask(*(cluster.proposal(1, 2, partition_index=index) for index in range(9)))
    expected = [ErrorCode.NONE] * 7 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert [(each.partition_index, each.error_code) for each in results] == list(enumerate(expected))
    assert len(cluster.harness.log.batches) - before == 3
    assert all(cluster.now(index).isr == (1, 2) for index in range(7))
