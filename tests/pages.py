"""The samples of a page, run as the files that a reader would write."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def blocks(page: str, language: str = "python") -> list[str]:
    """Return the fenced blocks of a page below the root, such as README.md; "" names blocks without a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return [text for named, text in fenced if named == language]


def write_files(page: str, folder: Path) -> list[str]:
    """Write each block that begins with a comment naming a file; return the names."""
    names = []
    for text in blocks(page):
        if named := re.match(r"# (\w+\.py)\n", text):
            (folder / named[1]).write_text(text)
            names.append(named[1])
    return names


def run_pytest(
    folder: Path, *options: str, python: str | Path = sys.executable, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder in a process that knows nothing of this run."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}
    # Hypothesis is a third of the time in which pytest starts, and no page uses it.
    without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    command = [str(python), "-m", "pytest", *without, *options, str(folder)]
    return subprocess.run(
        command, cwd=cwd or folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
