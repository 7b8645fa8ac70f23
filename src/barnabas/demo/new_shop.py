"""`python -m barnabas.demo.new_shop FOLDER`: types `python -m shop new FOLDER` where the project is, in a wheel or in a clone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent / "project"
"""Where a wheel has the project; in a clone it is `pipelines/shop`."""
IN_A_CLONE = Path(__file__).parents[3] / "pipelines" / "shop"


def shop_new(*words: str, stdout: int | None = None) -> int:
    """Return the exit code of `python -m shop new` with these words."""
    project = PROJECT if PROJECT.exists() else IN_A_CLONE
    command = f"import runpy, sys; sys.path[0] = {str(project)!r}; runpy.run_module('shop', run_name='__main__')"
    return subprocess.run([sys.executable, "-c", command, "new", *words], check=False, stdout=stdout).returncode


def copy_project(folder: Path) -> None:
    """Put a copy of the project into a folder that may have other files."""
    if code := shop_new("--beside", str(folder), stdout=subprocess.DEVNULL):
        raise RuntimeError(f"`shop new {folder}` ended with {code}")


if __name__ == "__main__":
    sys.exit(shop_new(*sys.argv[1:]))
