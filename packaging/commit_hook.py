"""A hook of the build: writes the commit into the wheel and the source package, as `barnabas/commit.txt`.

`barnabas --version` reads it there (`src/barnabas/version.py`, which also asks git). An editable installation has none: it is the
checkout. A wheel that is made from a source package takes the file that lies in it.
"""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACES = {"sdist": "src/barnabas/commit.txt", "wheel": "barnabas/commit.txt"}


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds one file to what is built, if a commit is known."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root) / "src" / "barnabas"
        commit = runpy.run_path(str(source / "version.py"))["commit"]()
        if version == "editable" or commit is None or (source / "commit.txt").exists():
            return
        self._folder = tempfile.TemporaryDirectory()
        written = Path(self._folder.name) / "commit.txt"
        written.write_text(f"{commit}\n")
        build_data["force_include"][str(written)] = _PLACES[self.target_name]
