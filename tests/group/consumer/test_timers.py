"""The timers of consumer group members: by their scripts, and a timer that fires too late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.consumer.timers import ConsumerGroupTimers
from tests.group.consumer_script import ConsumerScriptRunner
from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("consumer/timers"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, ConsumerScriptRunner)


def test_a_timer_fences_only_a_member_that_is_still_there_and_still_late() -> None:
    runner = ConsumerScriptRunner()
    runner.run("> topic t 1\n> beat a\n")
    environment = runner.shard().environment
    member = environment.groups["g"].members["a"]
    timers, fenced = ConsumerGroupTimers(environment), []

    def fence(group: Any, members: Any, response: None, cause: str) -> CoordinatorResult[None]:
        fenced.append((group.group_id, [one.member_id for one in members], cause))
        return CoordinatorResult(None)

    timers.fence = fence
    timers.schedule_rebalance("g", replace(member, member_epoch=1, rebalance_timeout_ms=5))
    runner.loop.advance(5)
    timers.schedule_sync("g", replace(member, member_id="gone"), 5)
    timers.schedule_sync("none", member, 5)
    runner.loop.advance(5)
    assert fenced == []
    timers.schedule_rebalance("g", replace(member, rebalance_timeout_ms=5))
    runner.loop.advance(4)
    assert fenced == []
    runner.loop.advance(1)
    assert fenced == [("g", ["a"], "member a: did not give its partitions back at epoch 2 within 5 ms")]
