"""The pipe of the supervisor: who writes into it, and what it makes of that."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from barnabas.client.local_restart import RESTART_PIPE, NotSupervised, ask_for_restart
from barnabas.process.restart_pipe import RestartPipe


def test_nodes_are_asked_for_by_their_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        # A supervisor that was killed has left it.
        os.mkfifo(tmp_path / RESTART_PIPE)
        with RestartPipe(loop, tmp_path, asked.append):
            assert (tmp_path / RESTART_PIPE).stat().st_mode & 0o777 == 0o600
            ask_for_restart(tmp_path, 2)
            (tmp_path / RESTART_PIPE).write_text("all\n 13")
            while not asked:
                await asyncio.sleep(0)
            (tmp_path / RESTART_PIPE).write_text("\n")
            while len(asked) < 2:
                await asyncio.sleep(0)

    asyncio.run(run())
    assert asked == [2, 13]
    assert capsys.readouterr().err == f"error: {tmp_path}/.restart: 'all' is not the id of a node\n"
    assert not (tmp_path / RESTART_PIPE).exists()


def test_without_a_supervisor_nobody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(NotSupervised, match="no cluster of `barnabas start --nodes` runs in"):
        ask_for_restart(tmp_path, 1)
    os.mkfifo(tmp_path / RESTART_PIPE)
    with pytest.raises(NotSupervised, match="no cluster of `barnabas start --nodes` runs in"):
        ask_for_restart(tmp_path, 1)
    (tmp_path / RESTART_PIPE).unlink()
    (tmp_path / RESTART_PIPE).write_text("a file")
    with pytest.raises(NotSupervised, match="is not the pipe of a supervisor"):
        ask_for_restart(tmp_path, 1)
