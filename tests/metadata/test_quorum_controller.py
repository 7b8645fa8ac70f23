"""The controller's promises: order, commit before answer, one epoch after another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.metadata import quorum_controller
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_codec import UnknownRecord
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import uuid_to_str
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.control import parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.steps import run_on_the_spot
from tests.api.held_executor import HeldExecutor
from tests.metadata.controller_harness import ControllerHarness


def create(name: str, partitions: int = 1) -> messages.CreateTopicsRequest:
    topic = messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
    return messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def registered() -> ControllerHarness:
    harness = ControllerHarness()
    harness.register()
    return harness


def test_the_answer_waits_for_the_commit_and_so_do_readers() -> None:
    harness = registered()
    harness.log.hold = True
    future = harness.later(ApiKey.CREATE_TOPICS, create("a"))
    assert not future.done()
    assert "a" not in harness.controller.image.topics.by_name
    harness.log.release()
    assert future.done()
    assert "a" in harness.controller.image.topics.by_name


def test_a_second_request_sees_what_the_first_has_appended() -> None:
    harness = registered()
    harness.log.hold = True
    first, second = (harness.later(ApiKey.CREATE_TOPICS, create("a")) for _ in range(2))
    # The refusal rests on something uncommitted, so it waits as well: the first could still be lost.
    assert not second.done()
    harness.log.release()
    assert first.result().topics[0].error_code == ErrorCode.NONE
    assert second.result().topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_commits_are_told_once_and_in_order() -> None:
    harness = registered()
    told: list[tuple[int, list[str]]] = []

    def listen(delta: MetadataDelta, image: MetadataImage) -> None:
        names = [topic.name for topic in delta.topics.created()] if delta.topics else []
        told.append((image.provenance.offset, names))

    run_on_the_spot(harness.loader.add_late_publisher(listen), None)
    assert told.pop() == (harness.controller.image.provenance.offset, [])
    harness.log.hold = True
    for name in "abc":
        harness.later(ApiKey.CREATE_TOPICS, create(name))
    assert told == []
    while harness.log.waiting:
        harness.log.release()
    assert [names for _, names in told] == [["a"], ["b"], ["c"]]
    assert [offset for offset, _ in told] == sorted(offset for offset, _ in told)


def test_a_late_listener_hears_everything_at_once() -> None:
    harness = registered()
    harness.create("a", "b")
    heard: list[Any] = []
    run_on_the_spot(harness.loader.add_late_publisher(lambda delta, image: heard.append((delta, image))), None)
    ((delta, image),) = heard
    assert image is harness.controller.image
    assert sorted(topic.name for topic in delta.topics.created()) == ["a", "b"]


def test_a_restart_gives_the_same_image_in_a_new_epoch() -> None:
    harness = registered()
    harness.create("a", partitions=3, configs={"retention.ms": "5"})
    before = harness.controller.image
    harness.restart()
    after = harness.controller.image
    assert (after.topics, after.configs, after.cluster, after.features) == (
        before.topics,
        before.configs,
        before.cluster,
        before.features,
    )
    assert after.provenance.epoch == before.provenance.epoch + 1


def test_requests_before_the_epochs_first_commit_wait_for_it() -> None:
    harness = registered()
    harness.log.hold = True
    harness.restart()
    future = harness.later(ApiKey.CREATE_TOPICS, create("a"))
    assert not future.done()
    assert not harness.controller.is_active
    harness.log.hold = False
    harness.log.release()
    assert future.result().topics[0].error_code == ErrorCode.NONE


def test_after_the_close_nobody_is_controller_here() -> None:
    harness = registered()
    harness.log.hold = True
    waiting = harness.later(ApiKey.CREATE_TOPICS, create("a"))
    harness.controller.close()
    for future in (waiting, harness.later(ApiKey.CREATE_TOPICS, create("b"))):
        error = future.exception()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.NOT_CONTROLLER
    harness.log.release()
    assert harness.log.end_offset == harness.driver.node.end_offset


def test_a_request_whose_time_is_over_is_not_begun() -> None:
    harness = registered()
    error = harness.later(ApiKey.CREATE_TOPICS, create("a"), deadline_ms=harness.now_ms - 1).exception()
    assert error.code is ErrorCode.REQUEST_TIMED_OUT
    assert "a" not in harness.controller.image.topics.by_name


def test_an_api_that_is_not_the_controllers() -> None:
    error = registered().later(ApiKey.PRODUCE, messages.ProduceRequest()).exception()
    assert error.code is ErrorCode.UNSUPPORTED_VERSION


def test_more_partitions_than_a_batch_may_hold_are_refused() -> None:
    harness = registered()
    error = harness.later(ApiKey.CREATE_TOPICS, create("a", partitions=10_001)).exception()
    assert error.code is ErrorCode.POLICY_VIOLATION
    assert error.message == "Excessively large number of partitions per request."


def test_a_snapshot_is_written_by_size_and_read_at_the_next_start() -> None:
    harness = ControllerHarness(snapshots=SnapshotPolicy(max_bytes=2000))
    harness.register()
    harness.create("a", partitions=50)
    (snapshot,) = harness.log.snapshots
    assert snapshot == SnapshotId(harness.controller.image.provenance.offset + 1, 1)
    assert not harness.log.batches
    before = harness.controller.image
    harness.restart()
    assert harness.controller.image.topics == before.topics
    assert harness.controller.image.features == before.features
    harness.create("b")
    assert sorted(harness.controller.image.topics.by_name) == ["a", "b"]


def test_a_listener_that_fails_stops_the_node() -> None:
    harness = registered()

    def fail(delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.topics is not None:
            raise ValueError("cannot")

    run_on_the_spot(harness.loader.add_late_publisher(fail), None)
    harness.later(ApiKey.CREATE_TOPICS, create("a"))
    assert [str(fault) for fault in harness.faults] == ["cannot"]
    error = harness.later(ApiKey.CREATE_TOPICS, create("b")).exception()
    assert (error.code, error.message) == (ErrorCode.NOT_CONTROLLER, "The controller has stopped: cannot")


def test_a_committed_record_of_a_later_kafka_stops_the_node() -> None:
    harness = registered()
    harness.driver.append([b"\x01\x7f\x00\x00"])
    (fault,) = harness.faults
    assert isinstance(fault, UnknownRecord)
    assert not harness.controller.is_active


def test_topic_ids_are_drawn_from_the_given_randomness() -> None:
    ids = []
    for _ in range(2):
        harness = registered()
        ids.append(harness.create("a", "b").topics[1].topic_id)
    assert ids[0] == ids[1]


def test_version_7_answers_with_id_and_effective_settings() -> None:
    result = registered().create("a", configs={"retention.ms": "5"}).topics[0]
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("5", 1)
    assert configs["segment.bytes"] == ("1073741824", 5)
    assert configs["min.insync.replicas"] == ("1", 3)
    assert "internal.segment.bytes" not in configs
    assert list(configs) == sorted(configs)


@pytest.mark.slow
def test_four_thousand_partitions_in_one_request() -> None:
    harness = registered()
    result = harness.create("big", partitions=4000).topics[0]
    assert result.num_partitions == 4000
    partitions = harness.controller.image.topics.by_name["big"].partitions
    assert list(partitions) == list(range(4000))


def test_repr() -> None:
    harness = registered()
    harness.create("a", partitions=2)
    image = f"<MetadataImage offset={harness.log.end_offset - 1} epoch=1 brokers=[1] topics=1>"
    assert repr(harness.controller) == f"<LocalController id=1 <QuorumController id=1 active {image} pending=0>>"
    assert repr(harness.loader) == f"<MetadataLoader caught up next={harness.log.end_offset} {image}>"
    assert repr(harness.generator).startswith("<SnapshotGenerator since=")
    topic = harness.controller.image.topics.by_name["a"]
    assert repr(topic) == f"<TopicImage a id={uuid_to_str(topic.topic_id)} partitions=2>"
    active = harness.active
    harness.controller.close()
    assert repr(harness.controller) == "<LocalController id=1 standby>"
    assert "resigned" in repr(active)


def test_commits_are_counted_with_their_time() -> None:
    harness = registered()
    commits, commit_ms = harness.controller.counts.commits, harness.controller.counts.commit_ms
    harness.log.hold = True
    harness.later(ApiKey.CREATE_TOPICS, create("a"))
    # A refusal without records waits for the commit, and is none itself.
    harness.later(ApiKey.CREATE_TOPICS, create("a"))
    harness.now_ms += 7
    harness.log.release()
    assert (harness.controller.counts.commits - commits, harness.controller.counts.commit_ms - commit_ms) == (1, 7)


def test_the_loaded_log_counts_towards_the_next_snapshot() -> None:
    harness = registered()
    harness.create("a", partitions=50)
    harness.snapshots = SnapshotPolicy(max_bytes=2000)
    harness.restart()
    assert list(harness.log.snapshots) == [SnapshotId(harness.controller.image.provenance.offset + 1, 2)]


def test_a_snapshot_that_arrives_while_serving_deletes_what_it_lacks() -> None:
    harness, elsewhere = registered(), registered()
    for each in (harness, elsewhere):
        each.create("kept", "gone", "again")
    harness.driver.resign()
    names = [messages.DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("gone", "again")]
    elsewhere.send(ApiKey.DELETE_TOPICS, messages.DeleteTopicsRequest(topics=names))
    elsewhere.create("again", configs={"retention.ms": "5"})
    snapshot = elsewhere.write_snapshot()
    harness.log.snapshots = elsewhere.log.snapshots
    harness.log.trim()
    before = harness.controller.image.topics
    harness.loader.on_high_watermark(snapshot.end_offset)
    assert harness.controller.image.topics == elsewhere.controller.image.topics
    assert harness.controller.image.configs == elsewhere.controller.image.configs
    delta, _ = harness.commits[-1]
    assert sorted(topic.name for topic in delta.topics.deleted.values()) == ["again", "gone"]
    assert [topic.name for topic in delta.topics.created()] == ["again"]
    assert harness.controller.image.topics.by_name["kept"] is before.by_name["kept"]


def test_a_snapshot_names_the_voters_as_of_its_last_record() -> None:
    harness = registered()
    committed = harness.driver.node.voters
    # Voters are in force once their record is in the log, and this one is not committed.
    more = VoterSet.of([*committed.voters, Voter(2, b"e" * 16)])
    harness.driver.node.history.add(VotersFrom(harness.log.end_offset, more))
    snapshot = harness.write_snapshot()
    data = harness.log.read_snapshot(snapshot)
    (_, header), *_ = iter_batches(data)
    *_, record = iter_records(data[: header.size])
    assert VoterSet.from_record(parse_control_record(record).value) == committed


def test_min_insync_replicas_is_pinned_from_the_nodes_own_setting() -> None:
    for static, expected in (({}, "1"), ({"min.insync.replicas": "2"}, "2")):
        harness = ControllerHarness(static=static)
        assert harness.controller.image.configs.for_resource(4, "") == {"min.insync.replicas": expected}


@pytest.fixture
def apart() -> Iterator[ControllerHarness]:
    """A controller whose loop has an executor that waits."""
    loop = HeldExecutor()
    harness = ControllerHarness(loop=loop)
    harness.register()
    loop.held = []
    yield harness
    loop.close()


def let_go(harness: ControllerHarness) -> None:
    harness.loop.let_go()
    harness.loop.run_until_complete(asyncio.sleep(0.001))


def test_later_requests_wait_for_a_long_one(apart: ControllerHarness) -> None:
    first = apart.later(ApiKey.CREATE_TOPICS, create("a"), is_long=True)
    second = apart.later(ApiKey.CREATE_TOPICS, create("a"))
    assert (first.done(), second.done()) == (False, False)
    let_go(apart)
    assert first.result().topics[0].error_code == ErrorCode.NONE
    assert second.result().topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_the_controllers_own_changes_wait_for_a_long_request(apart: ControllerHarness) -> None:
    future = apart.later(ApiKey.CREATE_TOPICS, create("a"), is_long=True)
    apart.now_ms += 60_000
    apart.controller.tick()
    assert not apart.controller.image.cluster.brokers[1].fenced
    let_go(apart)
    assert future.result().topics[0].error_code == ErrorCode.NONE
    apart.controller.tick()  # Fences the broker, whose session is over.
    assert apart.controller.image.cluster.brokers[1].fenced


def test_a_long_request_may_be_appended_in_batches(apart: ControllerHarness) -> None:
    request = messages.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000)
    first = apart.later(ApiKey.ELECT_LEADERS, request, is_long=True)
    second = apart.later(ApiKey.CREATE_TOPICS, create("a"))
    assert (first.done(), second.done()) == (False, False)
    let_go(apart)
    assert first.result().replica_election_results == []
    assert second.result().topics[0].error_code == ErrorCode.NONE


def test_a_long_request_fails_when_the_controller_closes(apart: ControllerHarness) -> None:
    first = apart.later(ApiKey.CREATE_TOPICS, create("a"), is_long=True)
    second = apart.later(ApiKey.CREATE_TOPICS, create("b"))
    apart.controller.close()
    let_go(apart)
    assert [future.exception().code for future in (first, second)] == [ErrorCode.NOT_CONTROLLER] * 2


def test_a_change_of_many_records_is_prepared_apart(apart: ControllerHarness) -> None:
    future = apart.later(ApiKey.CREATE_TOPICS, create("a", partitions=1_000))
    assert not future.done()
    let_go(apart)
    assert len(apart.controller.image.topics.by_name["a"].partitions) == 1_000


@pytest.mark.parametrize("of_each", [1_001, 501])
def test_the_deletion_of_many_partitions_is_prepared_apart(apart: ControllerHarness, of_each: int) -> None:
    for name in ("a", "b"):
        apart.later(ApiKey.CREATE_TOPICS, create(name, partitions=of_each))
        let_go(apart)
    apart.loop.held = []
    small = messages.DeleteTopicsRequest(topic_names=["unknown"], timeout_ms=1000)
    assert apart.later(ApiKey.DELETE_TOPICS, small).done()
    future = apart.later(ApiKey.DELETE_TOPICS, messages.DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=1000))
    assert not future.done()
    let_go(apart)
    assert [each.error_code for each in future.result().responses] == [ErrorCode.NONE] * 2
    assert not apart.controller.image.topics.by_name


def test_a_change_of_too_many_records_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = registered()
    monkeypatch.setattr(quorum_controller, "MAX_RECORDS_PER_REQUEST", 5)
    error = harness.later(ApiKey.CREATE_TOPICS, create("a", partitions=6)).exception()
    assert error.code is ErrorCode.POLICY_VIOLATION
    assert "a" not in harness.controller.image.topics.by_name
