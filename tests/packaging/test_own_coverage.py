"""`make coverage`: which modules are measured, and what counts as too little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from own_coverage import FLOOR, FLOORS, SOURCE, judge, measurable, own_test, read_floors

from tests.pages import ROOT


def test_a_module_is_measured_by_the_test_module_of_its_name() -> None:
    assert own_test(SOURCE / "log" / "flusher.py") == ROOT / "tests" / "log" / "test_flusher.py"
    assert measurable([SOURCE / "turns.py", SOURCE / "__main__.py"]) == [SOURCE / "turns.py"]
    assert SOURCE / "raft" / "quorum.py" in measurable([SOURCE / "raft"])


@pytest.mark.parametrize(
    ("percent", "floors", "said"),
    [
        (FLOOR, {}, None),
        (100, {}, None),
        (FLOOR - 0.1, {}, "the floor is 80 %"),
        (60, {"a.py": 60}, None),
        (64.9, {"a.py": 60}, None),
        (59.9, {"a.py": 60}, "the floor is 60 %"),
        (65, {"a.py": 60}, "raise its floor from 60 %"),
        (FLOOR, {"a.py": 78}, "raise its floor from 78 %"),
    ],
)
def test_a_floor_holds_and_only_goes_up(percent: float, floors: dict[str, int], said: str | None) -> None:
    wrong = judge({"a.py": percent}, floors)
    assert len(wrong) == (said is not None)
    assert said is None or said in wrong[0]


def test_every_floor_is_of_a_module_that_is_measured_and_lies_below_the_common_one() -> None:
    floors = read_floors(FLOORS.read_text())
    measured = {str(module.relative_to(ROOT)) for module in measurable([SOURCE])}
    assert floors.keys() <= measured
    assert all(floor < FLOOR for floor in floors.values())


def test_how_floors_are_read() -> None:
    assert read_floors("# one\n71 src/a.py  # why\n\n 5   src/b.py\n") == {"src/a.py": 71, "src/b.py": 5}


@pytest.mark.slow
@pytest.mark.parametrize(("floor", "returned"), [("", 0), ("20 src/barnabas/words/nearest.py\n", 1)])
def test_a_module_is_measured(floor: str, returned: int, tmp_path: Path) -> None:
    """In a process of its own, as the module's tests run in a fork."""
    program = (
        "import own_coverage, pathlib, sys; own_coverage.FLOORS = pathlib.Path(sys.argv[1]);"
        "sys.argv[1:] = ['src/barnabas/words/nearest.py']; sys.exit(own_coverage.main())"
    )
    (tmp_path / "floors").write_text(floor)
    command = [sys.executable, "-c", program, str(tmp_path / "floors")]
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": "tools", "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == returned, done.stdout + done.stderr
    assert "100.0 %  src/barnabas/words/nearest.py" in done.stdout
    assert "1 modules measured, 1 of them wholly" in done.stdout
