"""How another process asks for the restart of a node; `tests/process/test_supervisor_pipe.py` has both ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from barnabas.client.local_supervisor import SUPERVISOR_PIPE, NotSupervised, ask_for_restart


def test_a_folder_without_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(NotSupervised):
        ask_for_restart(tmp_path / "absent", 1)


def test_a_supervisor_that_does_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SUPERVISOR_PIPE)
    reader = os.open(tmp_path / SUPERVISOR_PIPE, os.O_RDWR | os.O_NONBLOCK)
    try:
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(reader, bytes(4096))
        with pytest.raises(NotSupervised, match="does not read its pipe: Resource temporarily unavailable"):
            ask_for_restart(tmp_path, 1)
    finally:
        os.close(reader)
