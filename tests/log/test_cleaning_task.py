"""Tasks and events as lines of text."""

from __future__ import annotations

from pathlib import Path

from barnabas.log.cleaning_task import (
    CleaningDone,
    CleaningFailed,
    GroupCleaned,
    event_from_line,
    event_to_line,
    task_from_line,
    task_to_line,
)
from tests.log.test_cleaner_worker import a_task


def test_values_survive_the_way_to_the_child_and_back(tmp_path: Path) -> None:
    task = a_task(tmp_path / "orders-0")
    assert task_from_line(task_to_line(task)) == task
    for event in (
        GroupCleaned(3, 100, [3, 9]),
        CleaningDone(1, 2, 3, 4, 5, 6, 7, 8, 0.5, 0.25, 0.75),
        CleaningFailed("why", is_corrupt=True),
    ):
        assert event_from_line(event_to_line(event)) == event
