"""Share groups in their shard, in virtual time: epochs, assignment, silence, new partitions, a share coordinator that fails."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest
from barnabas.steps import start
from tests.coordinator.shards import shard_of
from tests.group.share.hosting import INTERVAL_MS, SESSION_MS, FakePersister, Host


def test_a_partition_is_begun_with_the_groups_epoch_and_assigned_after_it() -> None:
    host = Host()
    first = host.heartbeat("m", 0, "q")
    assert [(g, p, e, s) for g, _, p, e, s in host.persister.begun] == [("g", 0, 2, -1), ("g", 1, 2, -1)]
    assert (first.member_epoch, first.assignment.topic_partitions) == (2, [])
    host.loop.advance(INTERVAL_MS)
    second = host.heartbeat("m", 2)
    assert second.member_epoch == 3
    assert host.assigned("m") == {host.q: frozenset({0, 1})}


def test_the_assignment_interval_holds_the_next_assignment_back() -> None:
    host = Host()
    host.heartbeat("m", 0, "q")
    early = host.heartbeat("m", 2)
    assert (early.member_epoch, early.assignment) == (2, None)
    assert host.group.group_epoch == 3, "the group has moved on"
    host.loop.advance(INTERVAL_MS)
    assert host.heartbeat("m", 2).member_epoch == 3


def test_a_lost_answer_is_asked_for_again_with_the_epoch_before() -> None:
    host = Host()
    epoch = host.join("m")
    assert host.heartbeat("m", epoch).error_code == 0
    previous = host.group.members["m"].previous_member_epoch
    again = host.heartbeat("m", previous)
    assert (again.error_code, again.member_epoch) == (0, epoch)


def test_a_silent_member_is_removed_and_its_partitions_go_to_others() -> None:
    host = Host()
    host.join("loud")
    host.join("silent")
    epoch = host.group.members["loud"].member_epoch
    for _ in range(10):
        host.loop.advance(SESSION_MS // 9)
        epoch = host.heartbeat("loud", epoch).member_epoch
    assert list(host.group.members) == ["loud"]
    assert host.assigned("loud") == {host.q: frozenset({0, 1})}
    host.loop.advance(SESSION_MS)
    assert host.group.is_empty
    assert host.group.target_assignment == {}


def test_after_a_failover_members_have_a_session_from_then() -> None:
    host = Host()
    host.join("m")
    host.loop.advance(SESSION_MS - 1)
    host.fail_over()
    host.loop.advance(SESSION_MS - 1)
    assert "m" in host.group.members
    host.loop.advance(1)
    assert host.group.is_empty


def test_a_failover_keeps_everything() -> None:
    host = Host(q=2, r=1)
    host.join("a", "q", "r")
    host.join("b", "q")
    before = host.group
    host.fail_over()
    after = host.group
    for name in ("group_epoch", "assignment_epoch", "metadata_hash", "members", "target_assignment"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.subscribed_topic_names == before.subscribed_topic_names
    assert {k: v.partitions for k, v in after.state_partitions.initialized.items()} == {
        k: v.partitions for k, v in before.state_partitions.initialized.items()
    }


def test_new_partitions_are_begun_and_assigned() -> None:
    host = Host()
    epoch = host.join("m")
    host.coordinator.on_topics_changed(host.metadata.set_topic("q", 4))
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0, 1, 2, 3})}
    assert sorted(partition for _, _, partition, _, _ in host.persister.begun) == [0, 1, 2, 3]


def test_a_topic_that_comes_later() -> None:
    host = Host(other=1)
    epoch = host.join("m", "q")
    assert host.assigned("m") == {}
    host.coordinator.on_topics_changed(host.metadata.set_topic("q", 1))
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0})}


def test_a_deleted_topic_leaves_the_assignment() -> None:
    host = Host(q=1, r=1)
    epoch = host.join("m", "q", "r")
    gone = bytes(host.metadata.image.topics.by_name["r"].topic_id)
    delta = host.metadata.delete_topic("r")
    host.coordinator.on_topics_changed(delta)
    host.coordinator.on_topics_deleted({"r": gone})
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0})}
    assert gone not in host.group.state_partitions.initialized


def test_what_the_share_coordinator_could_not_begin_is_begun_later() -> None:
    host = Host()
    host.persister.fails = {1}
    epoch = host.join("m")
    assert host.assigned("m") == {host.q: frozenset({0})}
    host.persister.fails = set()
    for _ in range(3):
        host.loop.advance(INTERVAL_MS)
        epoch = host.heartbeat("m", epoch).member_epoch
    assert host.assigned("m") == {host.q: frozenset({0, 1})}


def test_a_coordinator_that_died_between_note_and_call_asks_again() -> None:
    host = Host()
    host.persister.waits = True
    host.heartbeat("m", 0, "q")
    assert {t.partitions for t in host.group.state_partitions.initializing.values()} == {frozenset({0, 1})}
    host.persister = FakePersister(host.loop)
    host.fail_over()
    epoch = host.group.members["m"].member_epoch
    host.loop.advance(29_000)
    epoch = host.heartbeat("m", epoch).member_epoch
    assert host.persister.begun == [], "not before the retry interval"
    host.loop.advance(1_000)
    epoch = host.heartbeat("m", epoch).member_epoch
    assert len(host.persister.begun) == 2


def test_a_log_that_refuses_changes_nothing() -> None:
    host = Host()
    host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert host.heartbeat("m", 0, "q").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    host.log.refuse = None
    assert host.heartbeat("m", 0, "q").member_epoch == 2
    assert len(host.persister.begun) == 2


def test_lag() -> None:
    host = Host()
    host.join("m")
    host.persister.fails = {1}
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    answer = start(host.service.describe_offsets(asked), host.loop).result()
    (topic,) = answer.topics
    assert [(p.partition_index, p.start_offset, p.lag, p.error_code) for p in topic.partitions] == [
        (0, 10, 12, 0),
        (1, -1, -1, 0),
    ]


@pytest.mark.parametrize("failing", [set(), {1}])
def test_states_go_before_the_group(failing: set[int]) -> None:
    host = Host()
    host.join("m")
    assert start(host.service.delete_states(["g", "none"]), host.loop).result() == {"g": ErrorCode.NON_EMPTY_GROUP}
    host.heartbeat("m", -1)
    host.persister.fails = failing
    failed = start(host.service.delete_states(["g", "none"]), host.loop).result()
    assert failed == ({"g": ErrorCode.COORDINATOR_NOT_AVAILABLE} if failing else {})
    assert host.group.state_partitions.initialized == {}
    assert host.group.state_partitions.deleting == {host.q: "q"}
    host.persister.fails = set()
    start(host.service.delete_states(["g"]), host.loop).result()
    assert host.persister.deleted[-2:] == [(host.q, 0), (host.q, 1)], "what is still being deleted is deleted again"


def test_why_did_it_rebalance() -> None:
    host = Host()
    host.join("a")
    host.join("b")
    host.heartbeat("a", -1)
    history = shard_of(host.coordinator).environment.history
    causes = [record.cause for record in history.of("g")]
    assert [(record.member_id, record.client_id) for record in history.of("g") if "joined" in record.cause] == [
        ("a", "client"),
        ("b", "client"),
    ]
    assert causes[0] == "member a joined"
    assert "partitions are ready to be shared" in causes
    assert "member b joined" in causes
    assert causes[-1] == "member a was removed: it left"


def test_members_with_the_same_topics_divide_the_partitions_of_all_topics() -> None:
    host = Host(q=1, r=1)
    host.join("a", "q", "r")
    host.loop.advance(INTERVAL_MS)
    host.heartbeat("b", 0, "q", "r")
    host.heartbeat("a", host.group.members["a"].member_epoch)
    held = [(topic, *parts) for name in "ab" for topic, parts in host.assigned(name).items()]
    assert len(host.assigned("a")) == len(host.assigned("b")) == 1
    assert len(set(held)) == 2, "each partition has one member"
