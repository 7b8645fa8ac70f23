"""How another process asks for the restart of a node; `tests/process/test_supervisor_pipe.py` has both ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.local_supervisor import NotSupervised, ask_for_restart


def test_a_folder_without_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(NotSupervised):
        ask_for_restart(tmp_path / "absent", 1)
