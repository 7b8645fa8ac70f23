"""A copy of the shop's project, made from anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_it_makes_a_project_and_does_not_touch_another_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barnabas.demo.new_shop", "mine"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert made.stdout == f"the shop's pipeline is in {tmp_path}/mine\n"
    assert {each.name for each in (tmp_path / "mine").iterdir()} == {
        "conf",
        "shop",
        "transformations",
        "spark-pipeline.yml",
    }
    assert (
        f"storage: {(tmp_path / 'mine' / 'storage').as_uri()}\n"
        in (tmp_path / "mine" / "spark-pipeline.yml").read_text()
    )
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (1, "Error: mine is not empty (name a new folder)\n")
