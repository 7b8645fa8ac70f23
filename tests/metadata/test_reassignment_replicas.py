"""The steps of a reassignment: from one list of replicas to another, and back."""

from __future__ import annotations

import pytest

from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.reassignment_replicas import ReassignmentReplicas, Reverted, revert


@pytest.mark.parametrize(
    ("current", "target", "replicas", "adding", "removing"),
    [
        ((1, 2, 3), (3, 4), (3, 4, 1, 2), (4,), (1, 2)),
        ((1, 2, 3), (3, 2, 1), (3, 2, 1), (), ()),
        ((1,), (1, 3, 2), (1, 3, 2), (2, 3), ()),
        ((2, 1), (2,), (2, 1), (), (1,)),
        ((1, 2), (4, 3), (4, 3, 1, 2), (3, 4), (1, 2)),
    ],
)
def test_the_replicas_that_leave_are_the_last(
    current: tuple[int, ...],
    target: tuple[int, ...],
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
) -> None:
    step = ReassignmentReplicas.between(current, target)
    assert step == (replicas, adding, removing)
    assert step.target == target


def test_it_is_completed_by_an_isr_with_the_whole_target() -> None:
    step = ReassignmentReplicas.between((1, 2, 3), (3, 4))
    assert [step.is_completed_by(isr) for isr in ((1, 2, 3), (4,), (3, 4), (1, 3, 4))] == [False, False, True, True]
    assert not ReassignmentReplicas.between((1, 2), (2, 1)).is_completed_by((1, 2))


@pytest.mark.parametrize(
    ("replicas", "isr", "adding", "reverted"),
    [
        ((3, 4, 1, 2), (1, 2, 4), (3, 4), Reverted((1, 2), (1, 2), is_unclean=False)),
        ((3, 1, 2), (3, 2), (3,), Reverted((1, 2), (2,), is_unclean=False)),
        ((3, 1, 2), (3,), (3,), Reverted((1, 2), (1,), is_unclean=True)),
        ((3, 4), (3,), (3, 4), None),
    ],
)
def test_a_cancelled_reassignment_takes_its_new_replicas_out(
    replicas: tuple[int, ...], isr: tuple[int, ...], adding: tuple[int, ...], reverted: Reverted | None
) -> None:
    partition = PartitionRegistration(replicas, isr, isr[0], 0, 0, adding_replicas=adding, removing_replicas=(1, 2))
    assert revert(partition) == reverted
