"""Changes of many partitions: batches, turns of the loop, and what waits meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.metadata.batches import CHANGE, in_batches
from barnabas.metadata.partition_change_builder import PartitionChangeBuilder
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.records.record_batch import read_header
from barnabas.turns import TURN
from tests.metadata.controller_harness import ControllerHarness, directory_of
from tests.short_turns import set_turn

SESSION_MS = 50_000
PARTITIONS_PER_BATCH = TURN // CHANGE


class Turns:
    """A loop whose turns the test runs one by one."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], Any]] = []

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: object = None) -> None:
        self.ready.append(lambda: callback(*args))

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def get_debug(self) -> bool:
        return False

    def run_one(self) -> None:
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()

    def run_all(self) -> int:
        """Run until nothing is ready; returns the number of turns."""
        turns = 0
        while self.ready:
            self.run_one()
            turns += 1
        return turns


def cluster(*topics: int, assigned: tuple[int, ...] = (1, 2)) -> ControllerHarness:
    """A controller on a loop of turns with two brokers, and one topic for each number of partitions."""
    harness = ControllerHarness(broker_session_timeout_ms=SESSION_MS)
    for broker in (1, 2):
        harness.register(broker)
    topic = messages.CreateTopicsRequest.CreatableTopic
    replicas = messages.CreateTopicsRequest.CreatableReplicaAssignment
    for number, partitions in enumerate(topics):
        assignments = [replicas(partition_index=i, broker_ids=list(assigned)) for i in range(partitions)]
        created = topic(name=f"t{number}", num_partitions=-1, replication_factor=-1, assignments=assignments)
        harness.send(ApiKey.CREATE_TOPICS, messages.CreateTopicsRequest(topics=[created]))
    harness.loop = harness.controller._loop = harness.active._loop = Turns()  # type: ignore[assignment]
    return harness


def beat(harness: ControllerHarness, broker: int, **wants: bool) -> Any:
    registered = harness.controller.image.cluster.brokers[broker]
    request = messages.BrokerHeartbeatRequest(
        broker_id=broker, broker_epoch=registered.epoch, current_metadata_offset=10**6, **wants
    )
    return harness.later(ApiKey.BROKER_HEARTBEAT, request)


def leaders(harness: ControllerHarness) -> set[int]:
    topics = harness.controller.image.topics.by_name.values()
    return {partition.leader for topic in topics for partition in topic.partitions.values()}


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, 3 * CHANGE)


def sizes(harness: ControllerHarness, since: int) -> list[int]:
    headers = (read_header(batch) for batch in harness.log.read(since, harness.log.end_offset))
    return [header.next_offset - header.base_offset for header in headers]


@pytest.mark.slow
def test_a_broker_with_33_000_partitions_is_fenced_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = cluster(9_000, 9_000, 9_000, 6_000)
    built = 0
    build = PartitionChangeBuilder.build

    def count(self: PartitionChangeBuilder, topic_id: bytes, index: int) -> Any:
        nonlocal built
        built += 1
        return build(self, topic_id, index)

    monkeypatch.setattr(PartitionChangeBuilder, "build", count)
    harness.now_ms += SESSION_MS
    beat(harness, 2)
    end, appends = harness.log.end_offset, len(harness.log.batches)
    harness.controller.tick()
    turns = 1
    while harness.loop.ready:
        # What a turn may cost: so many partitions looked at, and one batch.
        assert built <= PARTITIONS_PER_BATCH + 1
        assert len(harness.log.batches) - appends <= 1
        built, appends, turns = 0, len(harness.log.batches), turns + 1
        harness.loop.run_one()
    assert PARTITIONS_PER_BATCH <= 500
    assert turns >= 33_000 / PARTITIONS_PER_BATCH
    assert sum(sizes(harness, end)) == 33_001
    assert max(sizes(harness, end)) <= PARTITIONS_PER_BATCH + 1
    assert harness.controller.image.cluster.brokers[1].fenced
    assert leaders(harness) == {2}


def test_a_change_is_split_by_the_partitions_that_are_looked_at(three: None) -> None:
    record = messages.PartitionChangeRecord
    changes = [record(partition_id=i) if i % 2 else None for i in range(8)]
    batches = in_batches(iter(changes), record(partition_id=99))
    assert [[each.partition_id for each in next(batches)] for _ in range(2)] == [[99, 1], [3, 5]]
    with pytest.raises(StopIteration) as last:
        next(batches)
    assert [each.partition_id for each in last.value.value] == [7]


def test_a_change_of_one_batch_needs_no_turn(three: None) -> None:
    harness = cluster(3)
    assert beat(harness, 1, want_fence=True).result().is_fenced
    assert harness.loop.ready == []


def test_the_answer_waits_for_the_commit_of_the_last_batch(three: None) -> None:
    harness = cluster(7)
    end = harness.log.end_offset
    future = beat(harness, 1, want_fence=True)
    harness.log.hold = True
    harness.loop.run_all()
    assert sizes(harness, end) == [3, 3, 2]
    assert not harness.controller.image.cluster.brokers[1].fenced
    assert not future.done()
    while harness.log.waiting:
        harness.log.release()
    assert future.result().is_fenced
    assert leaders(harness) == {2}


def test_a_broker_is_fenced_by_the_last_record(three: None) -> None:
    """So a controller that stops half-way leaves a broker that the next one fences again."""
    harness = cluster(7)
    future = beat(harness, 1, want_fence=True)
    harness.loop.run_one()
    harness.controller.close()
    harness.loop.run_all()
    assert future.exception().code is ErrorCode.NOT_CONTROLLER
    harness.loop = None
    harness.restart()
    image = harness.controller.image
    assert not image.cluster.brokers[1].fenced
    assert sorted(p.leader for p in image.topics.by_name["t0"].partitions.values()) == [1, 2, 2, 2, 2, 2, 2]
    harness.controller.tick()
    harness.now_ms += SESSION_MS
    harness.controller.tick()
    assert harness.controller.image.cluster.brokers[1].fenced


@pytest.mark.parametrize("turns", [0, 1])
def test_a_broker_whose_unfencing_stopped_half_way_leads_the_rest_after_its_next_heartbeat(
    three: None, turns: int
) -> None:
    harness = cluster(7, assigned=(1,))
    beat(harness, 1, want_fence=True)
    harness.loop.run_all()
    future = beat(harness, 1)
    for _ in range(turns):
        harness.loop.run_one()
    harness.log.error = OSError(28, "No space left on device")
    harness.loop.run_all()
    assert future.exception().code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not harness.controller.image.cluster.brokers[1].fenced
    assert leaders(harness) == {1, -1}
    harness.log.error = None
    beat(harness, 1)
    harness.loop.run_all()
    assert leaders(harness) == {1}
    end = harness.log.end_offset
    assert not beat(harness, 1).result().is_fenced
    assert harness.log.end_offset == end


def test_the_next_controller_finishes_an_unfencing_too(three: None) -> None:
    harness = cluster(7, assigned=(1,))
    beat(harness, 1, want_fence=True)
    harness.loop.run_all()
    beat(harness, 1)
    harness.controller.close()
    harness.loop.run_all()
    harness.loop = None
    harness.restart()
    assert leaders(harness) == {1, -1}
    beat(harness, 1)
    assert leaders(harness) == {1}


def test_requests_and_the_controllers_own_changes_wait_in_between(three: None) -> None:
    harness = cluster(7)
    fencing = beat(harness, 1, want_fence=True)
    elected = harness.later(
        ApiKey.ELECT_LEADERS, messages.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000)
    )
    harness.now_ms += SESSION_MS
    harness.controller.tick()
    assert not fencing.done()
    assert not elected.done()
    harness.loop.run_all()
    assert fencing.result().is_fenced
    # The first replica of all seven is fenced by now.
    (topic,) = elected.result().replica_election_results
    expected = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert [each.error_code for each in topic.partition_result] == [expected] * 7
    assert not harness.controller.image.cluster.brokers[2].fenced
    harness.controller.tick()
    harness.loop.run_all()
    assert harness.controller.image.cluster.brokers[2].fenced


def test_leaders_of_all_partitions_are_elected_in_batches(three: None) -> None:
    harness = cluster(4, 4)
    beat(harness, 1, want_fence=True)
    harness.loop.run_all()
    beat(harness, 1)
    for index in range(4):
        topic_id = harness.controller.image.topics.by_name["t1"].topic_id
        proposal = messages.AlterPartitionRequest.PartitionData(
            partition_index=index, leader_epoch=1, partition_epoch=1, new_isr=[2, 1]
        )
        topic = messages.AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[proposal])
        epoch = harness.controller.image.cluster.brokers[2].epoch
        harness.later(
            ApiKey.ALTER_PARTITION, messages.AlterPartitionRequest(broker_id=2, broker_epoch=epoch, topics=[topic])
        )
    end = harness.log.end_offset
    request = messages.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000)
    future = harness.later(ApiKey.ELECT_LEADERS, request)
    assert harness.loop.run_all() > 1
    results = {each.topic: each.partition_result for each in future.result().replica_election_results}
    expected = {"t0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "t1": ErrorCode.NONE}
    for name, code in expected.items():
        assert [(each.partition_id, each.error_code) for each in results[name]] == [(i, code) for i in range(4)]
    assert sizes(harness, end) == [3, 1]


def test_a_heartbeat_that_has_to_wait_keeps_its_session(three: None) -> None:
    harness = cluster(7)
    beat(harness, 2)
    harness.now_ms += SESSION_MS - 1
    beat(harness, 1, want_fence=True)
    waiting = beat(harness, 2)
    stale = messages.BrokerHeartbeatRequest(broker_id=1, broker_epoch=0)
    refused = harness.later(ApiKey.BROKER_HEARTBEAT, stale)
    sessions = harness.active.sessions.last_contact_ms
    assert sessions[2] == harness.now_ms
    harness.loop.run_all()
    assert not waiting.result().is_fenced
    assert refused.exception().code is ErrorCode.STALE_BROKER_EPOCH


def test_the_epoch_of_a_broker_is_the_offset_of_its_record_after_many_batches(three: None) -> None:
    harness = cluster(7)
    end = harness.log.end_offset
    request = messages.BrokerRegistrationRequest
    features = [
        request.Feature(name=name, min_supported_version=0, max_supported_version=40)
        for name in harness.controller.image.cluster.brokers[1].supported_features
    ]
    asked = request(
        broker_id=1,
        cluster_id="test-cluster",
        incarnation_id=b"x" * 16,
        features=features,
        log_dirs=[directory_of(1)],
    )
    future = harness.later(ApiKey.BROKER_REGISTRATION, asked)
    harness.loop.run_all()
    assert sizes(harness, end) == [3, 3, 2]
    assert future.result().broker_epoch == end + 7 == harness.log.end_offset - 1
    assert harness.controller.image.cluster.brokers[1].epoch == end + 7


def test_a_log_that_fails_half_way_fails_the_request_alone(three: None, caplog: pytest.LogCaptureFixture) -> None:
    harness = cluster(7)
    future = beat(harness, 1, want_fence=True)
    harness.log.error = OSError(28, "No space left on device")
    harness.loop.run_all()
    assert future.exception().code is ErrorCode.KAFKA_STORAGE_ERROR
    harness.now_ms += 2 * SESSION_MS
    harness.controller.tick()
    harness.now_ms += SESSION_MS
    harness.controller.tick()
    harness.loop.run_all()
    assert "Cannot write what is due, such as fenced brokers or elections" in caplog.text
    harness.log.error = None
    for _ in range(2):  # The session of a broker that could not be fenced begins again.
        harness.now_ms += SESSION_MS
        harness.controller.tick()
        harness.loop.run_all()
    assert all(broker.fenced for broker in harness.controller.image.cluster.brokers.values())


def test_a_controller_that_resigned_in_between_appends_nothing_more(three: None) -> None:
    harness = cluster(7)
    future = beat(harness, 1, want_fence=True)
    harness.driver.resign()
    end = harness.log.end_offset
    harness.loop.run_all()
    assert future.exception().code is ErrorCode.NOT_CONTROLLER
    assert harness.log.end_offset == end
