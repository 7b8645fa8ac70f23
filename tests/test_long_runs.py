"""A line of a long run takes the place of the one before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.long_runs import PAGE, LongRun


def test_the_last_green_run_of_each_kind_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    head = PAGE.read_text().partition("|--:|---|\n")
    page.write_text(head[0] + head[1])
    monkeypatch.setattr(sys, "argv", ["program", "--seeds", "1-3", "--record"])
    LongRun("kills", "kills on kafka", is_kept=True, page=page).ended("3 seeds")
    LongRun("kills", "kills on barnabas", is_kept=True, page=page).ended("2 seeds")
    LongRun("kills", "kills on barnabas", is_kept=True, page=page).ended("4 seeds")
    LongRun("kills", "kills on kafka", is_kept=False, page=page).ended("not kept")
    lines = page.read_text().removeprefix(head[0] + head[1]).splitlines()
    assert [line.split(" | ")[0] for line in lines] == ["| kills on barnabas", "| kills on kafka"]
    assert '`make kills ARGS="--seeds 1-3"`' in lines[0]
    assert lines[0].endswith("| 0.0 min | 4 seeds |")


def test_the_page_has_whole_lines() -> None:
    _, _, table = PAGE.read_text().partition("|---|---|---|---|--:|---|\n")
    assert [line for line in table.splitlines() if line.count("|") != 7 or not line.startswith("| ")] == []
