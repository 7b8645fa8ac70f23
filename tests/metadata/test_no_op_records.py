"""When the active controller writes a NoOpRecord: in an idle log that somebody follows."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.raft.leader import Leader, ReplicaProgress
from barnabas.raft.replica_key import ReplicaKey
from tests.metadata.controller_harness import ControllerHarness

INTERVAL_MS = 500


def harness(*, is_followed: bool = True, interval_ms: int = INTERVAL_MS) -> ControllerHarness:
    made = ControllerHarness(max_idle_interval_ms=interval_ms)
    made.register()
    if is_followed:
        state = made.driver.node.quorum.state
        assert isinstance(state, Leader)
        observer = ReplicaKey(2, b"o" * 16)
        state.observers[observer] = ReplicaProgress(2, observer.directory_id, 0, made.now_ms, made.now_ms)
    made.controller.tick()
    return made


def written_in(made: ControllerHarness, ms: int, *, every: int = 100) -> int:
    """Tick at an interval; return how many records that has written."""
    before = made.driver.node.end_offset
    for _ in range(ms // every):
        made.now_ms += every
        made.controller.tick()
    return made.driver.node.end_offset - before


def test_a_log_that_stands_still_gets_a_record() -> None:
    made = harness()
    assert written_in(made, INTERVAL_MS - 100) == 0
    assert written_in(made, 100) == 1
    image: Any = made.commits[-1][1]
    assert image.provenance.offset == made.driver.node.end_offset - 1, "it is published as any other"
    assert written_in(made, 10 * INTERVAL_MS) == 10


def test_any_other_record_puts_it_off() -> None:
    made = harness()
    written_in(made, INTERVAL_MS - 100)
    made.create("t")
    assert written_in(made, INTERVAL_MS) == 0
    assert written_in(made, 100) == 1


@pytest.mark.parametrize("options", [{"is_followed": False}, {"interval_ms": 0}])
def test_none_is_written(options: dict[str, Any]) -> None:
    """A node alone costs nothing while it is idle."""
    assert written_in(harness(**options), 10 * INTERVAL_MS) == 0
