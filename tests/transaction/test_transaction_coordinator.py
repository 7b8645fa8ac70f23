"""The coordinator on a log that can reject and delay: the order of waits, and retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.log.producer_state import MAX_EPOCH
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AllocateProducerIdsResponse
from barnabas.steps import start
from barnabas.transaction.markers import RETRY_BACKOFF_MS
from barnabas.transaction.transaction_coordinator import COMPLETE_RETRY_MS, TransactionCoordinator
from barnabas.transaction.transaction_shard import InitProducerId
from barnabas.transaction.transaction_state import TransactionState
from tests.coordinator.shards import shard_of
from tests.transaction.one_coordinator import Subject


def code(future: Any) -> ErrorCode:
    error = future.exception()
    assert isinstance(error, KafkaError)
    return error.code


def test_no_marker_before_the_outcome_is_committed() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.hold_commits = True
    ended = subject.end(producer)
    assert not ended.done()
    assert subject.partitions.written == []
    subject.log.release()
    subject.loop.run_ready()
    assert ended.result().producer_epoch == 1
    assert subject.partitions.written == [(("t", 0), 1, True)]
    assert subject.state() is TransactionState.COMPLETE_COMMIT


def test_an_outcome_that_was_not_committed_has_no_effect() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.hold_commits = True
    ended = subject.end(producer)
    subject.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    subject.loop.run_ready()
    assert code(ended) is ErrorCode.NOT_COORDINATOR
    assert subject.partitions.written == []
    assert subject.state() is TransactionState.ONGOING
    assert subject.end(producer, commit=False).result().producer_epoch == 1
    assert subject.partitions.written == [(("t", 0), 1, False)]


def test_a_prepare_above_the_high_watermark_has_no_marker_until_it_is_committed() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.hold_commits = True
    ended = subject.end(producer)
    subject.coordinator.on_resigned(0)
    subject.loop.run_ready()
    assert code(ended) is ErrorCode.NOT_COORDINATOR
    subject.elect(1)
    subject.loop.advance(20_000)
    assert subject.partitions.written == []
    assert code(subject.init()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code(subject.end(producer)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    subject.log.release()
    subject.loop.run_ready()
    assert subject.partitions.written == [(("t", 0), 1, True)]
    assert subject.state() is TransactionState.COMPLETE_COMMIT


def test_a_prepare_above_the_high_watermark_that_is_lost_has_no_effect() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.hold_commits = True
    ended = subject.end(producer)
    subject.coordinator.on_resigned(0)
    subject.loop.run_ready()
    assert code(ended) is ErrorCode.NOT_COORDINATOR
    subject.elect(1)
    subject.coordinator.on_resigned(0)
    subject.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    subject.loop.advance(20_000)
    assert subject.partitions.written == []
    subject.elect(3)
    assert subject.state() is TransactionState.ONGOING
    assert subject.end(producer, commit=False).result().producer_epoch == 1
    assert subject.partitions.written == [(("t", 0), 1, False)]


def test_nobody_is_fenced_by_an_epoch_that_is_not_committed() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.hold_commits = True
    begun = subject.init()  # Fences the producer, once it is committed.
    added = subject.add(producer)
    assert not added.done()
    subject.coordinator.on_resigned(0)
    subject.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    subject.loop.run_ready()
    assert code(begun) is code(added) is ErrorCode.NOT_COORDINATOR
    subject.elect(1)
    assert subject.add(producer).result() is None


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_errors_of_the_log_become_errors_of_the_coordinator(refused: ErrorCode, told: ErrorCode) -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.refuse = refused
    assert code(subject.end(producer)) is told
    subject.log.refuse = None
    assert subject.end(producer).result().producer_epoch == 1


def test_a_failed_complete_record_is_retried() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.partitions.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    subject.end(producer)
    subject.partitions.error = None
    subject.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    subject.loop.advance(200)
    assert subject.partitions.written, "the markers are written"
    assert subject.state() is TransactionState.PREPARE_COMMIT
    subject.log.refuse = None
    subject.loop.advance(COMPLETE_RETRY_MS)
    assert subject.state() is TransactionState.COMPLETE_COMMIT


def test_the_next_coordinator_finishes_decided_transactions() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.partitions.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    subject.end(producer)
    subject.load_again()
    subject.partitions.error = None
    subject.loop.advance(500)
    assert subject.partitions.written == [(("t", 0), 1, True)], "once: the first coordinator has given up"
    assert subject.state() is TransactionState.COMPLETE_COMMIT


def test_a_transaction_that_a_newer_epoch_has_overtaken_ends_and_its_id_gets_another_producer_id() -> None:
    subject = Subject()
    producer_id, epoch = subject.begin()
    subject.partitions.error = ErrorCode.INVALID_PRODUCER_EPOCH
    subject.end((producer_id, epoch), commit=False)
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert subject.state() is TransactionState.COMPLETE_ABORT
    assert subject.partitions.written == []
    begun = subject.init()
    subject.loop.run_ready()
    assert begun.result().producer_id != producer_id
    assert code(subject.add((producer_id, epoch + 1))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_overtaken_transaction_waits_for_a_producer_id() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.refuse_ids = True
    subject.partitions.error = ErrorCode.INVALID_PRODUCER_EPOCH
    others = (InitProducerId(f"other-{number}", 60_000) for number in range(9))
    while not start(subject.coordinator.init_producer_id(next(others)), subject.loop).exception():
        """Use up the ids of the block."""
    subject.end(producer)
    subject.loop.advance(5_000)
    assert subject.state() is TransactionState.PREPARE_COMMIT
    subject.refuse_ids = False
    subject.loop.advance(2 * COMPLETE_RETRY_MS)
    assert subject.state() is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("refused", ["marker", "complete"])
def test_an_ending_goes_on_in_a_higher_epoch_of_the_same_coordinator(refused: str) -> None:
    subject = Subject()
    producer = subject.begin()
    if refused == "marker":
        subject.partitions.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        subject.log.hold_commits = True
    subject.end(producer)
    if refused == "complete":
        subject.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        subject.log.release()
        subject.loop.run_ready()
        assert len(subject.partitions.written) == 1
    subject.elect(5)
    subject.partitions.error = subject.log.refuse = None
    subject.loop.advance(RETRY_BACKOFF_MS)
    assert subject.partitions.written == [(("t", 0), 1, True)]
    assert subject.partitions.coordinator_epochs == [5 if refused == "marker" else 0]
    assert subject.state() is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("drop", [lambda coordinator: coordinator.on_resigned(0), TransactionCoordinator.close])
def test_nothing_is_written_after_a_resignation(drop: Callable[[TransactionCoordinator], None]) -> None:
    subject = Subject()
    producer = subject.begin()
    subject.partitions.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    subject.end(producer)
    drop(subject.coordinator)
    subject.partitions.error = None
    subject.loop.advance(500)
    assert subject.partitions.written == []
    assert code(subject.init()) is ErrorCode.NOT_COORDINATOR


def test_a_resignation_of_an_older_epoch_changes_nothing() -> None:
    subject = Subject()
    subject.elect(3)
    subject.begin()
    subject.coordinator.on_resigned(0, 2)
    assert subject.state() is TransactionState.ONGOING
    subject.coordinator.on_resigned(0, 3)
    assert code(subject.init()) is ErrorCode.NOT_COORDINATOR


def test_requests_fail_while_the_partition_is_loading() -> None:
    subject = Subject()
    subject.coordinator.on_resigned(0)
    subject.coordinator.on_elected(0, 1)
    assert code(subject.init()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code(start(subject.coordinator.list_all(), subject.loop)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_partition_that_failed_to_load_does_not_hide_the_others() -> None:
    subject = Subject()
    subject.begin()
    subject.log.batches[1] = [b"no batch"]
    subject.coordinator.on_elected(1, 0)
    subject.loop.run_ready()
    assert [found.transactional_id for found in start(subject.coordinator.list_all(), subject.loop).result()] == ["tx"]


def test_without_producer_ids_clients_retry() -> None:
    subject = Subject()
    subject.refuse_ids = True
    assert code(subject.init()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    subject.refuse_ids = False
    assert subject.init().result().producer_id == 1000


def test_after_a_restart_a_repeated_init_is_fenced() -> None:
    """As in Kafka: the last epoch is not in the log."""
    subject = Subject()
    begun = subject.init().result()
    expected = (begun.producer_id, begun.producer_epoch)
    assert subject.init(expected=expected).result().producer_epoch == 1
    assert subject.init(expected=expected).result().producer_epoch == 1
    subject.load_again()
    assert code(subject.init(expected=expected)) is ErrorCode.PRODUCER_FENCED


def exhaust(subject: Subject, epoch: int = MAX_EPOCH - 1) -> tuple[int, int]:
    """An open transaction at the last epoch that a client may have."""
    from dataclasses import replace

    producer_id, _ = subject.begin()
    shard = shard_of(subject.coordinator)
    shard.transactions["tx"] = replace(shard.transactions["tx"], producer_epoch=epoch)
    return producer_id, epoch


def test_an_exhausted_epoch_ends_under_a_new_producer_id() -> None:
    subject = Subject()
    producer = exhaust(subject)
    ended = subject.end(producer).result()
    assert (ended.producer_id, ended.producer_epoch) == (1001, 0)
    assert subject.partitions.written == [(("t", 0), MAX_EPOCH, True)]
    again = subject.end(producer).result()
    assert (again.producer_id, again.producer_epoch) == (1001, 0)
    initialized = subject.init(expected=producer).result()
    assert (initialized.producer_id, initialized.producer_epoch) == (1001, 0), "its answer was lost"


@pytest.mark.parametrize("level", [1, 2])
def test_fencing_at_the_last_epoch(level: int) -> None:
    subject = Subject()
    subject.level = level
    exhaust(subject)
    assert code(subject.init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert subject.partitions.written == [(("t", 0), MAX_EPOCH, False)]
    begun = subject.init().result()
    # Version 2 has taken the new id already and bumps its epoch; version 1 takes it now.
    assert (begun.producer_id, begun.producer_epoch) == (1001, 1 if level == 2 else 0)


def test_a_timed_out_transaction_that_has_ended_is_not_aborted() -> None:
    subject = Subject(abort_timed_out_interval_ms=1000)
    producer = subject.begin()
    found = start(subject.coordinator.describe("tx"), subject.loop).result()
    subject.end(producer)
    subject.coordinator._on_timed_out(found)
    assert subject.partitions.written == [(("t", 0), 1, True)]
    subject.loop.advance(70_000)
    assert subject.state() is TransactionState.COMPLETE_COMMIT


def test_an_open_transaction_is_aborted_after_its_timeout() -> None:
    subject = Subject(abort_timed_out_interval_ms=1000)
    subject.begin()
    subject.loop.advance(60_000)
    assert subject.state() is TransactionState.ONGOING
    subject.loop.advance(1000)
    assert subject.state() is TransactionState.COMPLETE_ABORT
    assert subject.partitions.written == [(("t", 0), 1, False)]


def test_a_closed_connection_stops_no_marker() -> None:
    subject = Subject()
    producer = subject.begin()
    subject.log.hold_commits = True
    ended = subject.end(producer)
    ended.cancel()  # As when the connection is closed.
    subject.loop.run_ready()
    assert ended.cancelled()
    subject.log.release()
    subject.loop.run_ready()
    assert subject.partitions.written == [(("t", 0), 1, True)]
    assert subject.state() is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_that_is_committed_after_its_client_has_timed_out_gets_its_markers(commit: bool) -> None:
    subject = Subject(request_timeout_ms=3000)
    producer = subject.begin()
    subject.log.hold_commits = True
    ended = subject.end(producer, commit=commit)
    subject.loop.advance(3000)
    assert code(ended) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert subject.partitions.written == []
    subject.log.release()
    subject.loop.run_ready()
    assert subject.partitions.written == [(("t", 0), 1, commit)]
    assert subject.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)


def test_a_producer_id_that_is_allocated_late_is_used() -> None:
    subject = Subject()
    subject.held_ids = []
    begun = subject.init()
    assert not begun.done()
    subject.held_ids[0].set_result(AllocateProducerIdsResponse(producer_id_start=70, producer_id_len=2))
    subject.loop.run_ready()
    assert begun.result().producer_id == 70


@pytest.mark.parametrize(
    ("failure", "type_"), [(KafkaError(ErrorCode.NOT_CONTROLLER), KafkaError), (ValueError("a bug"), ValueError)]
)
def test_a_late_failure_reaches_the_response(failure: Exception, type_: type[Exception]) -> None:
    subject = Subject()
    subject.held_ids = []
    begun = subject.init()
    subject.held_ids[0].set_exception(failure)
    subject.loop.run_ready()
    assert isinstance(begun.exception(), type_)
