"""The pipe of the supervisor: who writes into it, and what it makes of that."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.client.local_supervisor import (
    SUPERVISOR_PIPE,
    LocalNodes,
    NotResized,
    NotSupervised,
    SupervisedNode,
    ask_for_nodes,
    ask_for_resize,
    ask_for_restart,
)
from barnabas.config.cannot_start import CannotStart
from barnabas.process.supervisor_pipe import SupervisorPipe

NODES = LocalNodes("id-of-it", [SupervisedNode(1, "h:1", "/c/node-1", True)])


class Supervised:
    """Remembers what it was asked for, and grows to no more than four nodes."""

    def __init__(self) -> None:
        self.restarted: list[int] = []
        self.resized: list[tuple[int, int]] = []

    def heeds(
        self,
    ) -> tuple[Callable[[int], None], Callable[[], LocalNodes], Callable[[int, int], Awaitable[LocalNodes]]]:
        return self.restart, self.described, self.resize

    def restart(self, node_id: int) -> None:
        self.restarted.append(node_id)

    def described(self) -> LocalNodes:
        return NODES

    async def resize(self, had: int, wanted: int) -> LocalNodes:
        self.resized.append((had, wanted))
        if wanted > 5:
            raise PermissionError(13, "Permission denied")
        if wanted > 4:
            raise CannotStart("node 5 does not start: port taken")
        return NODES._replace(changes_copies=True)


def test_nodes_are_restarted_by_their_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    supervised = Supervised()

    async def run() -> None:
        # A supervisor that was killed has left these.
        os.mkfifo(tmp_path / SUPERVISOR_PIPE)
        os.mkfifo(tmp_path / ".answer-7")
        with SupervisorPipe(asyncio.get_running_loop(), tmp_path, *supervised.heeds()):
            assert not (tmp_path / ".answer-7").exists()
            assert (tmp_path / SUPERVISOR_PIPE).stat().st_mode & 0o777 == 0o600
            ask_for_restart(tmp_path, 2)
            (tmp_path / SUPERVISOR_PIPE).write_text("all\n\nnodes ../../x\n restart 13")
            while not supervised.restarted:
                await asyncio.sleep(0)
            (tmp_path / SUPERVISOR_PIPE).write_text("\n")
            while len(supervised.restarted) < 2:
                await asyncio.sleep(0)

    asyncio.run(run())
    assert supervised.restarted == [2, 13]
    assert capsys.readouterr().err.splitlines() == [
        f"error: {tmp_path}/.supervisor: {line!r} is not a request, such as: restart 2"
        for line in ("all", "nodes ../../x")
    ]
    assert not (tmp_path / SUPERVISOR_PIPE).exists()


def test_who_asks_gets_an_answer(tmp_path: Path) -> None:
    supervised = Supervised()

    async def run() -> None:
        with SupervisorPipe(asyncio.get_running_loop(), tmp_path, *supervised.heeds()):
            assert await asyncio.to_thread(ask_for_nodes, tmp_path) == NODES
            assert (await asyncio.to_thread(ask_for_resize, tmp_path, 3, 4)).changes_copies
            with pytest.raises(NotResized, match=r"^node 5 does not start: port taken$"):
                await asyncio.to_thread(ask_for_resize, tmp_path, 4, 5)
            with pytest.raises(NotResized, match=r"^cannot use .*: Permission denied$"):
                await asyncio.to_thread(ask_for_resize, tmp_path, 4, 6)

    asyncio.run(run())
    assert supervised.resized == [(3, 4), (4, 5), (4, 6)]
    assert list(tmp_path.iterdir()) == []


def test_who_was_killed_while_it_waited_leaves_nothing(tmp_path: Path) -> None:
    supervised = Supervised()

    async def run() -> None:
        with SupervisorPipe(asyncio.get_running_loop(), tmp_path, *supervised.heeds()):
            os.mkfifo(tmp_path / ".answer-7")
            (tmp_path / SUPERVISOR_PIPE).write_text("nodes .answer-8\nresize 3 4 .answer-7\n")
            while (tmp_path / ".answer-7").exists():
                await asyncio.sleep(0)

    asyncio.run(run())
    assert supervised.resized == [(3, 4)]


def test_a_supervisor_that_ends_does_not_keep_who_asks(tmp_path: Path) -> None:
    async def run() -> None:
        with SupervisorPipe(asyncio.get_running_loop(), tmp_path, *Supervised().heeds()):
            asking = asyncio.ensure_future(asyncio.to_thread(ask_for_nodes, tmp_path))
            await asyncio.sleep(0)
            # The loop does not turn, so nobody reads the request.
            while not list(tmp_path.glob(".answer-*")):
                pass
        with pytest.raises(NotSupervised, match="no cluster of `barnabas start --nodes` runs in"):
            await asking

    asyncio.run(run())


def test_without_a_supervisor_nobody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(NotSupervised, match="no cluster of `barnabas start --nodes` runs in"):
        ask_for_restart(tmp_path, 1)
    os.mkfifo(tmp_path / SUPERVISOR_PIPE)
    with pytest.raises(NotSupervised, match="no cluster of `barnabas start --nodes` runs in"):
        ask_for_restart(tmp_path, 1)
    (tmp_path / SUPERVISOR_PIPE).unlink()
    (tmp_path / SUPERVISOR_PIPE).write_text("a file")
    with pytest.raises(NotSupervised, match="is not the pipe of a supervisor"):
        ask_for_restart(tmp_path, 1)
