"""Planted losses, doubles and torn transactions are found, and so is a check of nothing."""

from __future__ import annotations

import pytest

from tests.cluster.exchange_judge import (
    SENT_AGAIN,
    Committed,
    Read,
    Written,
    judge_group,
    judge_records,
    judge_transactions,
)


def wrong(verdict):
    return {kind: len(examples) for kind, examples in verdict.problems.items()}


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({0: [0, 2, 4], 1: [1, 3]}, {}),
        ({0: [0, 4], 1: [1, 3]}, {"lost": 1}),
        ({0: [0, 2, 4]}, {"lost": 2}),
        ({0: [0, 2, 2, 4], 1: [1, 3]}, {"doubled": 1}),
        ({0: [0, 4, 2], 1: [1, 3]}, {"out of order": 1}),
        ({0: [0, 2, 4, 6], 1: [1, 3]}, {"never acknowledged": 1}),
    ],
)
def test_records(there, found):
    verdict = judge_records({0: [0, 2, 4], 1: [1, 3]}, {each: by((7, 0), *numbers) for each, numbers in there.items()})
    assert wrong(verdict) == found
    assert verdict.counted["acknowledged"] == 5


def by(producer, *numbers):
    return [Written(each, producer) for each in numbers]


@pytest.mark.parametrize(
    ("log", "again", "found"),
    [
        (by((7, 0), 0, 2) + by((7, 1), 2, 4), 1, {}),
        (by((7, 0), 0, 2, 4) + by((7, 1), 2, 4), 2, {}),
        (by((7, 0), 0, 2) + by((7, 1), 2, 2, 4), 0, {"doubled": 1}),
        (by((7, 0), 0, 4) + by((7, 1), 2, 4), 1, {"out of order": 1}),
    ],
)
def test_a_client_that_raised_its_epoch_may_have_sent_a_record_twice(log, again, found):
    verdict = judge_records({0: [0, 2, 4]}, {0: log})
    assert wrong(verdict) == found
    assert verdict.counted[SENT_AGAIN] == again


@pytest.mark.parametrize("told", [{}, {0: []}, {0: [1], 1: []}])
def test_no_records_are_no_proof(told):
    assert "empty checks" in wrong(judge_records(told, {each: by((7, 0), *numbers) for each, numbers in told.items()}))


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (([0, 1, 3], [0, 1, 3]), {}),
        (([0, 1], [0, 1]), {}),
        (([0, 1, 3], [0, 1]), {"torn": 1}),
        (([0], [0]), {"committed but lost": 1}),
        (([0, 1, 2], [0, 1, 2]), {"aborted but visible": 1}),
        (([0, 0, 1], [0, 1]), {"twice": 1}),
        (([1, 0], [0, 1]), {"out of order": 1}),
        (([0, 1, 9], [0, 1, 9]), {"never begun": 1}),
    ],
)
def test_transactions(parts, found):
    """0 and 1 were committed, 2 was aborted, and the outcome of 3 is open."""
    assert wrong(judge_transactions([0, 1], [2], parts, 4)) == found


def test_no_transactions_are_no_proof():
    assert wrong(judge_transactions([], [], ([], []), 0)) == {"empty checks": 1}


READS = [Read(0, 0), Read(0, 1), Committed(0, 1), Read(0, 2)]


@pytest.mark.parametrize(
    ("more", "end", "kept", "found"),
    [
        ([], 3, 1, {}),
        ([Read(0, 1), Read(0, 2)], 3, 1, {}),
        ([Read(0, 0), Read(0, 1), Read(0, 2)], 3, 1, {"before the committed offset": 1}),
        ([Read(0, 4)], 5, 1, {"skipped": 1}),
        ([], 4, 1, {"unread": 1}),
        ([], 3, 0, {"offsets not kept": 1}),
    ],
)
def test_a_group(more, end, kept, found):
    assert wrong(judge_group([*READS, *more], {0: end}, {0: kept})) == found


def test_a_group_that_reads_nothing_is_no_proof():
    assert wrong(judge_group([], {}, {})) == {"empty checks": 1}


def test_a_verdict_in_words():
    assert str(judge_records({0: [1, 2]}, {0: by((7, 0), 1)})) == (
        "2 acknowledged, 0 sent again by the client in a new epoch, 1 lost, 0 doubled, 0 out of order, "
        "0 never acknowledged, 0 empty checks; lost: partition 0: 2"
    )
