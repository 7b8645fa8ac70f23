"""A proposed change of the ISR: what it sends, whom the high watermark waits for meanwhile, and how it ends."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.partition_state import (
    CommittedPartitionState,
    IsrProposal,
    PendingExpandIsr,
    PendingIsrChange,
    PendingShrinkIsr,
)

COMMITTED = CommittedPartitionState(isr=(1, 2), partition_epoch=5)
EPOCHS = {1: 10, 2: 20, 3: 30}


def expand() -> PendingExpandIsr:
    return COMMITTED.expand(3, 4, EPOCHS)


def shrink() -> PendingShrinkIsr:
    return COMMITTED.shrink([2], 4, EPOCHS)


def test_the_replica_that_may_join_counts_already() -> None:
    change = expand()
    assert isinstance(change, PendingExpandIsr)
    assert (change.isr, change.maximal_isr, change.partition_epoch) == ((1, 2), (1, 2, 3), 5)
    assert change.sent == IsrProposal(leader_epoch=4, partition_epoch=5, isr=((1, 10), (2, 20), (3, 30)))


def test_the_replicas_that_may_leave_count_still() -> None:
    change = shrink()
    assert isinstance(change, PendingShrinkIsr)
    assert (change.isr, change.maximal_isr, change.partition_epoch) == ((1, 2), (1, 2), 5)
    assert change.sent == IsrProposal(leader_epoch=4, partition_epoch=5, isr=((1, 10),))
    assert (COMMITTED.isr, COMMITTED.maximal_isr) == ((1, 2), (1, 2))


def test_a_broker_epoch_that_is_not_known() -> None:
    assert COMMITTED.expand(3, 4, {3: 30}).sent.isr == ((1, -1), (2, -1), (3, 30))


def test_only_members_leave_and_only_others_join() -> None:
    with pytest.raises(AssertionError):
        COMMITTED.expand(2, 4, EPOCHS)
    with pytest.raises(AssertionError):
        COMMITTED.shrink([2, 3], 4, EPOCHS)


@pytest.mark.parametrize("change", [expand(), shrink()])
def test_the_answer_is_committed(change: PendingIsrChange) -> None:
    assert change.completed(4, 6, (1, 3)) == CommittedPartitionState((1, 3), 6)
    assert change.completed(4, 5, (1, 2)) == COMMITTED, "the controller had nothing to change"


@pytest.mark.parametrize("change", [expand(), shrink()])
@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(3, 6), (5, 6), (4, 4)])
def test_an_answer_from_another_time_changes_nothing(
    change: PendingIsrChange, leader_epoch: int, partition_epoch: int
) -> None:
    assert change.completed(leader_epoch, partition_epoch, (1,)) is change


@pytest.mark.parametrize("change", [expand(), shrink()])
@pytest.mark.parametrize(
    ("code", "is_reverted", "is_sent_again"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, True, False),
        (ErrorCode.INELIGIBLE_REPLICA, True, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, False, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, False),
        (ErrorCode.INVALID_REQUEST, False, False),
        (ErrorCode.NEW_LEADER_ELECTED, False, False),
        (ErrorCode.NOT_CONTROLLER, False, True),
        (ErrorCode.REQUEST_TIMED_OUT, False, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False, True),
    ],
)
def test_an_error_takes_the_change_back_only_if_it_was_surely_not_applied(
    change: PendingIsrChange, code: ErrorCode, is_reverted: bool, is_sent_again: bool
) -> None:
    assert change.failed(code) is (COMMITTED if is_reverted else change)
    assert change.is_sent_again(code) == is_sent_again


def test_two_equal_changes_are_two() -> None:
    assert expand() != expand()
    assert CommittedPartitionState((1, 2), 5) == COMMITTED
