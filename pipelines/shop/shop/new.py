"""Puts a copy of this project into a folder: yours to change, and all its tables and offsets stay in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
_IN_A_PROJECT = ("conf", "shop", "transformations")


def new(folder: Path) -> Path:
    """Copy the project into a folder; the declarative form keeps its offsets there."""
    folder = folder.resolve()
    for name in _IN_A_PROJECT:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    spec = (PROJECT / "spark-pipeline.yml").read_text()
    (folder / "spark-pipeline.yml").write_text(
        re.sub("(?m)^storage:.*", f"storage: {(folder / 'storage').as_uri()}", spec)
    )
    return folder
