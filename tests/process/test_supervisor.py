"""The supervisor of a local cluster, over small programs in place of nodes."""

from __future__ import annotations

import asyncio
import errno
import re
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.process.local_cluster import LocalCluster, open_cluster, size_of
from barnabas.process.resizable_folder import ResizableFolder
from barnabas.process.supervisor import NodeProcess, Supervisor

NODE = """
import os, pathlib, signal, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--config") + 1]).parent
lives = folder / "lives"
lives.write_text((lives.read_text() if lives.exists() else "") + "x")
def note(what):
    with open(folder.parent / "ended", "a") as ended:
        ended.write(what + folder.name[-1] + " ")
def stop(*_):
    note("terminated-")
    sys.exit()
signal.signal(signal.SIGTERM, stop)
if (folder / "broken").exists():
    sys.exit((folder / "broken").read_text() or "INFO\\nerror: port taken (try another)\\nbye")
if (folder / "slow").exists():
    signal.pause()
if "--mute" in sys.argv:
    sys.exit(3)
print("starting", flush=True)
print("barnabas ready on h:" + folder.name[-1], flush=True)
if "--die" in sys.argv and lives.read_text() == "x":
    os._exit(7)
if "--metrics-listen" in sys.argv:
    (folder / "metrics").write_text(sys.argv[sys.argv.index("--metrics-listen") + 1])
for line in sys.stdin:
    assert line == "leave\\n"
    note("left-")
    print("barnabas left", flush=True)
note("stopped-")
"""
"""A node that is ready at once and lives until a signal arrives or its input ends."""

Run = Callable[[Supervisor, "asyncio.Future[None]"], Coroutine[None, None, None]]


class Cluster:
    """A supervisor over the nodes of a folder, and what happens while it runs."""

    def __init__(
        self,
        folder: Path,
        nodes: int,
        *,
        restart: bool = False,
        arguments: tuple[str, ...] = (),
        metrics: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.restart, self.arguments, self.metrics = folder, restart, arguments, metrics
        cluster = open_cluster(folder, nodes, 0, self.format)
        self.resizable = ResizableFolder(
            folder, cluster, metrics_listen=metrics[0] if metrics else "", format_all=self.format
        )
        self.program = folder / "node.py"
        self.program.write_text(NODE)

    def run(self, meanwhile: Run) -> int:
        """Run the cluster until `meanwhile` has ended, and return the exit code."""

        async def both() -> int:
            loop = asyncio.get_running_loop()
            asked: asyncio.Future[None] = loop.create_future()
            supervisor = Supervisor(
                self.resizable,
                loop,
                restart=self.restart,
                arguments=self.arguments,
                program=(sys.executable, "-S", str(self.program)),
                metrics=self.metrics,
            )
            other = asyncio.ensure_future(meanwhile(supervisor, asked))
            try:
                return await supervisor.run(asked)
            finally:
                other.cancel()
                await asyncio.wait((other,))

        return asyncio.run(both())

    def format(self, cluster: LocalCluster, cluster_id: str) -> None:
        """Format nothing: the program needs no data."""

    @property
    def ended(self) -> list[str]:
        return (self.folder / "ended").read_text().split()

    def lives(self, node_id: int) -> int:
        return len((self.folder / f"node-{node_id}" / "lives").read_text())


async def printed(capsys: pytest.CaptureFixture[str], pattern: str, so_far: list[str]) -> None:
    """Wait until the supervisor has printed a line."""
    while not re.search(pattern, "".join(so_far)):
        await asyncio.sleep(0)
        out, err = capsys.readouterr()
        so_far += [out, err]


def processes(supervisor: Supervisor) -> dict[int, NodeProcess]:
    return {each.node.node_id: each for each in supervisor.nodes}


@pytest.mark.slow
def test_all_serve_and_no_node_stops_before_every_broker_has_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    so_far: list[str] = []

    async def stop(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", so_far)
        asked.set_result(None)

    cluster = Cluster(tmp_path, 5, metrics=tuple(f"h:{n}" for n in range(11, 16)))
    assert cluster.run(stop) == 0
    assert sorted(cluster.ended[:5]) == [f"left-{n}" for n in range(1, 6)]
    assert sorted(cluster.ended[5:]) == [f"stopped-{n}" for n in range(1, 6)]
    lines = "".join(so_far).splitlines()
    assert sorted(lines[:5]) == [
        f"node {n} ({'broker and controller' if n < 4 else 'broker'}) on h:{n}, metrics on h:{n + 10}, "
        f"files in {tmp_path}/node-{n}"
        for n in range(1, 6)
    ]
    assert lines[5:] == ["barnabas ready on h:1,h:2,h:3,h:4,h:5"]
    assert [(tmp_path / f"node-{n}" / "metrics").read_text() for n in range(1, 6)] == [f"h:{n}" for n in range(11, 16)]


@pytest.mark.slow
def test_a_crash_is_one_line_and_the_others_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    so_far: list[str] = []

    async def crash(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", so_far)
        processes(supervisor)[2].send(9)  # type: ignore[arg-type]
        await printed(capsys, "error: ", so_far)
        assert processes(supervisor)[1].is_running
        asked.set_result(None)

    cluster = Cluster(tmp_path, 2)
    assert cluster.run(crash) == 0
    assert f"error: node 2 was killed by SIGKILL (its log: {tmp_path}/node-2/node.log)\n" in "".join(so_far)
    assert (cluster.ended, cluster.lives(2)) == (["left-1", "stopped-1"], 1)


@pytest.mark.slow
def test_a_crash_is_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    so_far: list[str] = []

    async def crash(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", so_far)
        await printed(
            capsys, r"node 1 .*(\n.*)*node 1 ended with exit code 7 \(starting it again\)(\n.*)*node 1 ", so_far
        )
        asked.set_result(None)

    cluster = Cluster(tmp_path, 1, restart=True, arguments=("--die",))
    assert cluster.run(crash) == 0
    assert (cluster.ended, cluster.lives(1)) == (["left-1", "stopped-1"], 2)


@pytest.mark.slow
def test_a_node_that_was_stopped_in_order_stays_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    so_far: list[str] = []

    async def stop_one(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", so_far)
        processes(supervisor)[2].send(signal.SIGTERM)
        await printed(capsys, "error: ", so_far)
        asked.set_result(None)

    cluster = Cluster(tmp_path, 2, restart=True)
    assert cluster.run(stop_one) == 0
    assert f"error: node 2 was stopped (its log: {tmp_path}/node-2/node.log)\n" in "".join(so_far)
    assert (cluster.ended, cluster.lives(2)) == (["terminated-2", "left-1", "stopped-1"], 1)


async def nothing(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
    await asyncio.Event().wait()


@pytest.mark.slow
def test_a_node_that_does_not_start_ends_the_start(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, restart=True)
    (tmp_path / "node-2" / "broken").touch()
    (tmp_path / "node-2" / "node.log").write_text("error: of an earlier run\n")
    with pytest.raises(CannotStart) as caught:
        cluster.run(nothing)
    assert str(caught.value) == (
        f"node 2 does not start: port taken (try another); its log: {tmp_path}/node-2/node.log"
    )
    assert cluster.lives(2) == 1


@pytest.mark.slow
def test_an_error_of_an_earlier_run_is_not_the_cause(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1, arguments=("--mute",))
    (tmp_path / "node-1" / "node.log").write_text("error: of an earlier run\n")
    with pytest.raises(CannotStart, match="node 1 does not start: it ended with exit code 3; its log: "):
        cluster.run(nothing)


@pytest.mark.slow
def test_a_cluster_without_nodes_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Cluster(tmp_path, 1, arguments=("--die",)).run(nothing) == 1
    assert capsys.readouterr().err.endswith("error: all nodes have ended\n")


@pytest.mark.slow
def test_a_stop_before_all_serve_is_a_stop(tmp_path: Path) -> None:
    async def stop(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        asked.set_result(None)

    assert Cluster(tmp_path, 2).run(stop) == 0


@pytest.mark.slow
def test_a_node_that_hangs_does_not_keep_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.process.supervisor._LEAVE_SECONDS", 0.2)
    monkeypatch.setattr("barnabas.process.supervisor._STOP_SECONDS", 0.2)
    so_far: list[str] = []

    async def pause_one(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", so_far)
        processes(supervisor)[2].send(signal.SIGSTOP)
        asked.set_result(None)

    cluster = Cluster(tmp_path, 2)
    assert cluster.run(pause_one) == 0
    assert cluster.ended == ["left-1", "stopped-1"]
    killed = f"error: node 2 does not stop, and is killed (its log: {tmp_path}/node-2/node.log)\n"
    assert capsys.readouterr().err == killed


@pytest.mark.slow
def test_a_node_is_restarted_when_somebody_asks_and_another_stop_in_order_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    so_far: list[str] = []

    async def restart(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", so_far)
        supervisor.restart(2)
        supervisor.restart(2)
        await printed(capsys, r"barnabas ready on .*\n(.*\n)*node 2 ", so_far)
        processes(supervisor)[2].send(signal.SIGTERM)
        await printed(capsys, "error: node 2 was stopped", so_far)
        supervisor.restart(2)
        supervisor.restart(9)
        asked.set_result(None)

    cluster = Cluster(tmp_path, 2)
    assert cluster.run(restart) == 0
    rest = "".join([*so_far, capsys.readouterr().err])
    assert "error: node 2 does not serve, and is not restarted\n" in rest
    assert "error: node 9 does not serve, and is not restarted\n" in rest
    assert (cluster.ended, cluster.lives(2)) == (["terminated-2", "terminated-2", "left-1", "stopped-1"], 2)


@pytest.mark.slow
def test_a_cluster_grows_and_shrinks_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    so_far: list[str] = []

    async def resize(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        with pytest.raises(CannotStart, match="the cluster is starting or stopping"):
            await supervisor.resize(1, 2)
        await printed(capsys, "barnabas ready on", so_far)
        grown = await supervisor.resize(1, 2)
        assert [(each.node_id, each.address, each.serves) for each in grown.nodes] == [
            (1, "h:1", True),
            (2, "h:2", True),
        ]
        assert grown.changes_copies
        # The same words again change nothing, and words that know of another cluster do not either.
        assert await supervisor.resize(1, 2) == grown._replace(changes_copies=False)
        with pytest.raises(CannotStart, match="the cluster has 2 nodes now, not 4 "):
            await supervisor.resize(4, 3)
        # One that has ended is started again.
        processes(supervisor)[2].send(signal.SIGTERM)
        await printed(capsys, "error: node 2 was stopped", so_far)
        assert await supervisor.resize(2, 2) == grown._replace(changes_copies=False)
        shrunk = await supervisor.resize(2, 1)
        assert [each.node_id for each in shrunk.nodes] == [1]
        asked.set_result(None)

    cluster = Cluster(tmp_path, 1, restart=True)
    assert cluster.run(resize) == 0
    assert (size_of(tmp_path), cluster.lives(1), cluster.lives(2)) == ("1", 1, 2)
    assert cluster.ended == ["terminated-2", "terminated-2", "left-1", "stopped-1"]
    out = "".join([*so_far, capsys.readouterr().out])
    assert [line for line in out.splitlines() if "ready" in line] == [
        f"barnabas ready on {addresses}" for addresses in ("h:1", "h:1,h:2", "h:1")
    ]
    assert f"node 2 is retired, its files stay in {tmp_path}/node-2\n" in out


@pytest.mark.slow
def test_a_node_stays_while_the_folder_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def resize(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", [])
        with monkeypatch.context() as patched:
            patched.setattr(cluster.resizable, "shrink", full)
            with pytest.raises(OSError, match="No space left"):
                await supervisor.resize(2, 1)
        assert [each.serves for each in supervisor.described().nodes] == [True, True]
        # One that does not start stays as one that has ended.
        (tmp_path / "node-3").mkdir()
        (tmp_path / "node-3" / "broken").write_text("error: port taken")
        with monkeypatch.context() as patched:
            patched.setattr(cluster.resizable, "shrink", full)
            with pytest.raises(OSError, match="No space left"):
                await supervisor.resize(2, 3)
        assert [each.serves for each in supervisor.described().nodes] == [True, True, False]
        assert size_of(tmp_path) == "3"
        (tmp_path / "node-3" / "broken").unlink()
        assert [each.serves for each in (await supervisor.resize(3, 3)).nodes] == [True, True, True]
        assert len((await supervisor.resize(3, 2)).nodes) == 2
        asked.set_result(None)

    cluster = Cluster(tmp_path, 2)
    assert cluster.run(resize) == 0
    assert size_of(tmp_path) == "2"
    assert sorted(cluster.ended) == ["left-1", "left-2", "stopped-1", "stopped-2", "terminated-3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["error: port taken", '{"time": "t", "level": "CRITICAL", "exception": "E: port taken"}']
)
def test_a_grown_node_that_does_not_start_is_no_part_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    async def grow(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", [])
        (tmp_path / "node-2").mkdir()
        (tmp_path / "node-2" / "broken").write_text(line)
        with pytest.raises(CannotStart, match=r"^node 2 does not start: .*port taken; its log: .*/node-2/node.log$"):
            await supervisor.resize(1, 3)
        assert len(supervisor.described().nodes) == 1
        (tmp_path / "node-2" / "broken").unlink()
        assert len((await supervisor.resize(1, 2)).nodes) == 2
        asked.set_result(None)

    cluster = Cluster(tmp_path, 1)
    assert cluster.run(grow) == 0
    assert (size_of(tmp_path), (tmp_path / "node-3").exists()) == ("2", False)


@pytest.mark.slow
def test_a_stop_while_a_node_starts_is_a_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def grow(supervisor: Supervisor, asked: asyncio.Future[None]) -> None:
        await printed(capsys, "barnabas ready on", [])
        (tmp_path / "node-2").mkdir()
        (tmp_path / "node-2" / "slow").touch()
        growing = asyncio.ensure_future(supervisor.resize(1, 2))
        while not (tmp_path / "node-2" / "lives").exists():
            await asyncio.sleep(0)
        asked.set_result(None)
        with pytest.raises(CannotStart, match=r"^the cluster stops$"):
            await growing

    assert Cluster(tmp_path, 1).run(grow) == 0
