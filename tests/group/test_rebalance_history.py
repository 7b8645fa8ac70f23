"""What is remembered of rebalances, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.group.rebalance_history import RebalanceHistory, to_json, with_reason
from tests.group.consumer_script import ConsumerScriptRunner
from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("rebalance_history"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ConsumerScriptRunner)


class Clock:
    now_ms = 1000

    def __call__(self) -> int:
        return self.now_ms


def held(*partitions: int) -> frozenset[tuple[str, int]]:
    return frozenset(("t", partition) for partition in partitions)


def test_one_rebalance_from_cause_to_end() -> None:
    clock = Clock()
    history = RebalanceHistory(3, clock)
    history.because("g", 2, "member b joined", "b", "client")
    assert history.of("g") == []  # Not before the step is written.
    history.begun("g", 2)
    clock.now_ms = 1200
    history.moved("g", {"a": held(0, 1)}, {"a": held(0), "b": held(1, 2)})
    history.ended("g", 2)
    assert json.loads(to_json(history.of("g"))) == {
        "rebalances": [
            {
                "epoch": 2,
                "cause": "member b joined",
                "member_id": "b",
                "client_id": "client",
                "started_ms": 1000,
                "ended_ms": 1200,
                "superseded": False,
                "members": 2,
                "moved": [
                    {"topic": "t", "partition": 1, "from": "a", "to": "b"},
                    {"topic": "t", "partition": 2, "from": "", "to": "b"},
                ],
            }
        ]
    }


def test_a_step_without_a_cause_or_with_another_epoch_is_not_listed() -> None:
    history = RebalanceHistory(3, Clock())
    history.begun("g", 5)
    history.because("g", 7, "refused by the log")
    history.begun("g", 6)
    assert history.of("g") == []
    history.moved("g", {}, {"a": held(0)})
    history.ended("g", 1)
    assert history.of("g") == []


def test_the_next_rebalance_supersedes_one_that_goes_on() -> None:
    clock = Clock()
    history = RebalanceHistory(3, clock)
    for epoch in (2, 3):
        history.because("g", epoch, "cause")
        history.begun("g", epoch)
        clock.now_ms += 10
    first, second = history.of("g")
    assert (first.superseded, first.ended_ms) == (True, 1010)
    assert (second.superseded, second.ended_ms) == (False, None)


def test_only_the_newest_are_kept_and_only_of_groups_that_are_there() -> None:
    history = RebalanceHistory(2, Clock())
    for group_id in ("g", "h"):
        for epoch in (1, 2, 3):
            history.because(group_id, epoch, "cause")
            history.begun(group_id, epoch)
    assert [each.epoch for each in history.of("g")] == [2, 3]
    history.keep_only({"h"})
    assert history.of("g") == []
    assert len(history.of("h")) == 2


def test_why_a_member_left_is_the_rest_of_a_line() -> None:
    assert with_reason("the consumer is being closed") == ": the consumer is being closed"
    assert with_reason(None) == with_reason("") == ", and gave no reason"
