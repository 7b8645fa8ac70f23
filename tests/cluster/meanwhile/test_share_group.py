"""Planted omissions and repetitions of a share group are found, and so is a check of nothing."""

from __future__ import annotations

import pytest

from tests.cluster.meanwhile.share_group import Accepted, Delivered, judge_share_group

FIRST = [Delivered(0, 0), Delivered(0, 1), Accepted(0, 0), Accepted(0, 1)]


def wrong(events, ends, left):
    return {kind: len(examples) for kind, examples in judge_share_group(events, ends, left).problems.items()}


@pytest.mark.parametrize(
    ("more", "left", "found"),
    [
        ([Delivered(0, 2), Accepted(0, 2)], {0: 0}, {}),
        ([Delivered(0, 2)], {0: 0}, {}),
        ([Delivered(0, 2)], {0: None}, {}),
        ([Delivered(0, 2), Delivered(0, 2), Accepted(0, 2)], {0: 0}, {}),
        ([], {0: 0}, {"left out": 1}),
        ([Delivered(0, 2), Accepted(0, 2), Delivered(0, 1)], {0: 0}, {"given again after it was accepted": 1}),
        ([Delivered(0, 2), Accepted(0, 2)], {0: 1}, {"not finished": 1}),
        ([Delivered(0, 2), Accepted(0, 2)], {}, {"not finished": 1}),
    ],
)
def test_share_group(more, left, found):
    assert wrong([*FIRST, *more], {0: 3}, left) == found


def test_nothing_seen_is_wrong():
    assert wrong([], {}, {}) == {"empty checks": 1}


def test_deliveries_before_an_answer_are_counted():
    verdict = judge_share_group([Delivered(0, 0), *FIRST], {0: 2}, {0: 0})
    assert verdict.counted["more than once, before an answer"] == 1
