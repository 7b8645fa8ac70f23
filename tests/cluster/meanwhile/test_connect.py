"""Planted losses and doubles of Connect's lines are found; a line that the sink writes again is counted."""

from __future__ import annotations

import pytest

from tests.cluster.meanwhile.connect import judge_lines

GIVEN = ["line 0", "line 1", "line 2"]


@pytest.mark.parametrize(
    ("topic", "written", "found"),
    [
        ("012", "012", {}),
        ("012", "01012", {}),
        ("0112", "012", {"twice in the topic": 1}),
        ("02", "02", {"lost on the way to the topic": 1}),
        ("012", "02", {"lost on the way to the file": 1, "out of order": 1}),
        ("021", "021", {"out of order": 1}),
    ],
)
def test_lines(topic, written, found):
    verdict = judge_lines(GIVEN, [f"line {each}" for each in topic], [f"line {each}" for each in written])
    assert {kind: len(examples) for kind, examples in verdict.problems.items()} == found


def test_what_the_sink_wrote_again_is_counted():
    verdict = judge_lines(GIVEN, GIVEN, ["line 0", "line 0", "line 1", "line 2"])
    assert verdict.counted["written again by the sink"] == 1


def test_nothing_given_is_wrong():
    assert judge_lines([], [], []).problems == {"empty checks": ["no line was given"]}
