"""A process of the demo: it is started again after a kill, and its last words are known."""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas.demo.child_process import ChildProcess

# Creates a file, then waits for its end, or ends by itself if the file is there.
PROGRAM = """
import os, signal, sys
if os.path.exists("there"):
    sys.exit("the file is there")
open("there", "w").close()
signal.pause()
"""


def test_a_kill_a_start_and_its_last_words(tmp_path: Path) -> None:
    child = ChildProcess([sys.executable, "-c", PROGRAM], tmp_path, tmp_path / "child.log", {})
    assert child.last_words() is None
    child.start()
    while not (tmp_path / "there").exists():
        assert child.last_words() is None
    child.kill()
    assert child.last_words() is None
    child.start()
    while (said := child.last_words()) is None:
        pass
    assert said == f"the file is there ({tmp_path / 'child.log'} has the rest)"
    child.stop()
