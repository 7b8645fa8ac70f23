"""`shop new` makes a folder with the whole project, whose offsets stay in it."""

from __future__ import annotations

from pathlib import Path

import yaml
from click.testing import CliRunner

from shop.__main__ import shop


def test_a_new_folder_has_the_project_and_its_own_storage(tmp_path: Path):
    folder = tmp_path / "mine"
    said = CliRunner().invoke(shop, ["new", str(folder)])
    assert (said.exit_code, said.output) == (0, f"the shop's pipeline is in {folder}\n")
    spec = yaml.safe_load((folder / "spark-pipeline.yml").read_text())
    assert spec["storage"] == f"file://{folder}/storage"
    assert {path.name for path in folder.iterdir()} == {"conf", "shop", "transformations", "spark-pipeline.yml"}
    assert not list(folder.rglob("__pycache__"))


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("x")
    said = CliRunner().invoke(shop, ["new", str(tmp_path)])
    assert (said.exit_code, said.output) == (1, f"Error: {tmp_path} is not empty (name a new folder)\n")
