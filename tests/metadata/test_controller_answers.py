"""Every request to the controller is answered, whatever fails: a manager, the log, the replay, the commit, the controller."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import quorum_controller
from barnabas.metadata.controller_request import FORWARDING_TIMEOUT_MS, LATE, UNCOMMITTED
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.managers import manager_of
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft import raft_node
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.steps import run_on_the_spot
from tests.metadata.controller_harness import ControllerHarness, ControllerLog
from tests.metadata.test_quorum_controller import create, registered


def elected(harness: ControllerHarness) -> ControllerHarness:
    """Restart; the new epoch's first record waits for its commit."""
    harness.log.hold = True
    harness.restart()
    assert not harness.controller.is_active
    return harness


def release_all(harness: ControllerHarness) -> None:
    harness.log.hold = False
    while harness.log.waiting:
        harness.log.release()


def ask(harness: ControllerHarness, name: str, **options: Any) -> Any:
    return harness.later(ApiKey.CREATE_TOPICS, create(name), **options)


def failure(future: Any) -> tuple[ErrorCode, str]:
    error = future.exception()
    assert isinstance(error, KafkaError)
    return error.code, error.message


def created(future: Any) -> bool:
    return bool(future.result().topics[0].error_code == ErrorCode.NONE)


def fail_on(monkeypatch: pytest.MonkeyPatch, name: str, outcome: Exception | ControllerResult[Any]) -> None:
    """Make CreateTopics of one name raise, or return this result."""

    def manager(view: ControllerView, request: messages.CreateTopicsRequest) -> ControllerResult[Any]:
        if request.topics[0].name != name:
            create_topics = manager_of(ApiKey.CREATE_TOPICS)
            assert create_topics is not None
            return create_topics(view, request)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(quorum_controller, "manager_of", lambda api_key: manager)


def test_an_exception_of_a_manager_is_the_answer_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = registered()
    fail_on(monkeypatch, "bad", ValueError("a bug"))
    assert str(ask(harness, "bad").exception()) == "a bug"
    assert created(ask(harness, "good"))
    assert harness.faults == []


def test_a_request_that_fails_when_the_epoch_begins_leaves_the_others_their_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = elected(registered())
    fail_on(monkeypatch, "bad", ValueError("a bug"))
    bad, cancelled, good = (ask(harness, name) for name in ("bad", "cancelled", "good"))
    cancelled.cancel()
    release_all(harness)
    assert str(bad.exception()) == "a bug"
    assert created(good)
    # Its connection was closed before the request was begun.
    assert "cancelled" not in harness.controller.image.topics.by_name


def test_records_that_cannot_be_replayed_are_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = registered()
    end = harness.log.end_offset
    orphan = messages.PartitionRecord(topic_id=b"x" * 16)
    fail_on(monkeypatch, "bad", ControllerResult(None, [messages.NoOpRecord(), orphan]))
    assert isinstance(ask(harness, "bad").exception(), AssertionError)
    assert harness.log.end_offset == end
    assert created(ask(harness, "good"))


def test_a_record_that_cannot_be_encoded_is_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = registered()
    record = messages.ConfigRecord(resource_type=2, resource_name="a", name="n", value=5)  # type: ignore[arg-type]
    fail_on(monkeypatch, "bad", ControllerResult(None, [record]))
    assert ask(harness, "bad").exception() is not None
    assert created(ask(harness, "good"))
    assert not harness.controller.image.configs.for_resource(2, "a")


def test_a_log_that_refuses_a_batch_fails_its_request_alone() -> None:
    harness = registered()
    harness.log.hold = True
    before = ask(harness, "before")
    harness.log.error = OSError("no space left")
    refused = ask(harness, "a")
    harness.log.error = None
    after = ask(harness, "a")
    assert failure(refused) == (ErrorCode.KAFKA_STORAGE_ERROR, "no space left")
    release_all(harness)
    assert created(before)
    assert created(after)
    assert sorted(harness.controller.image.topics.by_name) == ["a", "before"]
    assert harness.controller.image.provenance.offset == harness.log.end_offset - 1


def test_records_that_do_not_fit_a_batch_fail_their_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = registered()
    monkeypatch.setattr(raft_node, "MAX_BATCH_BYTES", 2000)
    error = harness.later(ApiKey.CREATE_TOPICS, create("a", partitions=100))
    assert failure(error)[0] is ErrorCode.POLICY_VIOLATION
    assert "101 records make a batch of" in failure(error)[1]
    assert created(ask(harness, "a"))


def test_an_append_that_breaks_stops_the_node_and_answers_what_waits() -> None:
    harness = registered()
    harness.log.hold = True
    waiting = ask(harness, "a")
    harness.log.error = ValueError("a bug")
    for future in (ask(harness, "b"), waiting, ask(harness, "c")):
        assert failure(future) == (ErrorCode.NOT_CONTROLLER, "The controller has stopped: a bug")
    assert harness.faults == [harness.log.error]


def test_a_commit_that_does_not_come_times_the_request_out() -> None:
    harness = registered()
    harness.log.hold = True
    # A deadline limits the beginning; the commit has the same time as without one.
    timed = ask(harness, "a", deadline_ms=harness.now_ms)
    # This one has no records; it waits for the first one's commit.
    refused = ask(harness, "a")
    harness.now_ms += 1
    later = ask(harness, "b")
    harness.now_ms += FORWARDING_TIMEOUT_MS - 1
    harness.controller.tick()
    assert not timed.done()
    harness.now_ms += 1
    harness.controller.tick()
    assert failure(timed) == failure(refused) == (ErrorCode.REQUEST_TIMED_OUT, UNCOMMITTED)
    assert not later.done()
    release_all(harness)
    assert created(later)
    assert sorted(harness.controller.image.topics.by_name) == ["a", "b"]


@pytest.mark.parametrize(("deadline_ms", "wait_ms"), [(None, FORWARDING_TIMEOUT_MS), (1_000_005, 5)])
def test_an_epoch_that_does_not_begin_times_the_request_out(deadline_ms: int | None, wait_ms: int) -> None:
    harness = elected(registered())
    future = ask(harness, "a", deadline_ms=deadline_ms)
    harness.now_ms += wait_ms
    harness.controller.tick()
    assert not future.done()
    harness.now_ms += 1
    harness.controller.tick()
    assert failure(future) == (ErrorCode.REQUEST_TIMED_OUT, LATE)
    release_all(harness)
    assert "a" not in harness.controller.image.topics.by_name


@pytest.mark.parametrize(("wait_ms", "begins"), [(FORWARDING_TIMEOUT_MS, True), (FORWARDING_TIMEOUT_MS + 1, False)])
def test_a_request_begins_within_its_time_or_not_at_all(wait_ms: int, begins: bool) -> None:
    harness = elected(registered())
    future = ask(harness, "a")
    harness.now_ms += wait_ms
    release_all(harness)
    assert (future.exception() is None) is begins
    assert ("a" in harness.controller.image.topics.by_name) is begins


def test_a_deadline_of_this_very_millisecond_is_met() -> None:
    harness = registered()
    assert created(ask(harness, "a", deadline_ms=harness.now_ms))


def test_closing_answers_what_waits_for_the_epoch() -> None:
    harness = elected(registered())
    future = ask(harness, "a")
    harness.controller.close()
    assert failure(future) == (ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")
    release_all(harness)
    assert not harness.controller.is_active


def test_closing_leaves_cancelled_requests_alone() -> None:
    harness = registered()
    harness.log.hold = True
    cancelled, waiting = ask(harness, "a"), ask(harness, "b")
    cancelled.cancel()
    harness.controller.close()
    assert failure(waiting)[0] is ErrorCode.NOT_CONTROLLER


def test_a_cancelled_request_is_committed_and_the_next_one_answered() -> None:
    harness = registered()
    harness.log.hold = True
    cancelled, waiting = ask(harness, "a"), ask(harness, "b")
    cancelled.cancel()
    release_all(harness)
    assert created(waiting)
    assert sorted(harness.controller.image.topics.by_name) == ["a", "b"]


def test_a_listener_that_fails_on_a_commit_answers_all_that_wait() -> None:
    harness = registered()

    def listen(delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.topics is not None:
            raise ValueError("cannot")

    harness.log.hold = True
    committed, uncommitted = ask(harness, "a"), ask(harness, "b")
    run_on_the_spot(harness.loader.add_late_publisher(listen), None)
    release_all(harness)
    assert created(committed)
    assert failure(uncommitted) == (ErrorCode.NOT_CONTROLLER, "The controller has stopped: cannot")
    assert "b" not in harness.controller.image.topics.by_name


def test_a_log_that_cannot_be_loaded_answers_what_waits() -> None:
    harness = registered()
    harness.log.hold = True
    harness.driver.append([b"\x01\x7f\x00\x00"])
    harness.log.waiting.clear()
    future = ask(elected(harness), "a")
    release_all(harness)
    assert failure(future)[0] is ErrorCode.NOT_CONTROLLER
    assert failure(future)[1].startswith("The controller has stopped: the metadata log holds a record")
    assert len(harness.faults) == 1


def test_an_activation_that_fails_stops_the_node_and_answers_what_waits() -> None:
    harness = ControllerHarness()
    harness.log = ControllerLog()
    future = ask(elected(harness), "a")
    harness.log.error = OSError("no space left")
    release_all(harness)
    reason = "KAFKA_STORAGE_ERROR: no space left"
    assert failure(future) == (ErrorCode.NOT_CONTROLLER, f"The controller has stopped: {reason}")
    assert [str(fault) for fault in harness.faults] == [reason]
    assert not harness.controller.is_active


@pytest.mark.parametrize("error", [OSError("no space left"), ValueError("a bug")])
def test_a_snapshot_that_fails_costs_no_answer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ControllerHarness(snapshots=SnapshotPolicy(max_bytes=2000))
    harness.register()

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(harness.log, "write_snapshot", fail)
    harness.create("a", partitions=50)
    harness.create("b", partitions=50)
    assert (harness.faults, harness.log.snapshots) == ([], {})
    assert sorted(harness.controller.image.topics.by_name) == ["a", "b"]


def test_a_broker_whose_fencing_cannot_be_written_is_fenced_a_session_later() -> None:
    harness = registered()
    timeout_ms = harness.settings.broker_session_timeout_ms
    harness.now_ms += timeout_ms
    harness.log.error = OSError("no space left")
    harness.controller.tick()
    assert not harness.controller.image.cluster.brokers[1].fenced
    harness.log.error = None
    harness.controller.tick()
    harness.now_ms += timeout_ms
    harness.controller.tick()
    assert harness.controller.image.cluster.brokers[1].fenced
    assert harness.faults == []


def test_a_controller_that_is_closed_fences_nobody() -> None:
    harness = registered()
    end = harness.log.end_offset
    harness.controller.close()
    assert harness.driver.closed
    harness.now_ms += 10 * harness.settings.broker_session_timeout_ms
    harness.controller.tick()
    assert harness.log.end_offset == end


def test_a_new_controller_gives_each_broker_a_full_session() -> None:
    harness = elected(registered())
    harness.now_ms += 10 * harness.settings.broker_session_timeout_ms
    harness.controller.tick()
    release_all(harness)
    harness.controller.tick()
    assert not harness.controller.image.cluster.brokers[1].fenced


def test_a_log_that_refuses_a_batch_makes_way_for_another_voter() -> None:
    harness = registered()
    other = Voter(2, b"e" * 16)
    harness.driver.node.log.history.add(VotersFrom(1000, VoterSet.of([*harness.driver.node.voters.voters, other])))
    harness.log.error = OSError("no space left")
    assert failure(ask(harness, "a")) == (ErrorCode.KAFKA_STORAGE_ERROR, "no space left")
    assert [str(fault) for fault in harness.faults] == ["no space left"]
