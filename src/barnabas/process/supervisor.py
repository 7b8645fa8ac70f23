"""`barnabas start --nodes N`: a cluster on this machine, one process a node, and this one that starts, watches and stops them.

- A node is `barnabas start --config`; it counts as serving when it has printed its line `barnabas ready on HOST:PORT`. When all
  serve, the supervisor prints one such line with the addresses of all.
- A node that ends before it has served once ends the start: the error that it logged is the supervisor's.
- A node that ends later is one line on standard error. With `--restart` it is started again: at once, and after a short life with a
  delay that doubles. A node that was stopped in order is not: its operator may want to retire it.
- The pipe `.supervisor` (`supervisor_pipe`) asks for the restart of a node, in order, and for more or fewer nodes. The cluster grows by a
  node at a time; one that does not start is no part of it. It shrinks by its last node at a time, which stops in order.
- A signal stops all side by side, in two steps (`stop_signals`). First every broker leaves: the controller takes over what it leads,
  so that the last broker in sync has every record. Only then, when no broker needs a controller any more, do the voters stop.
- Nodes have a session of their own, so that Ctrl-C reaches the supervisor alone. If the supervisor is killed, their standard
  input ends, and they stop by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.client.local_supervisor import LocalNodes, SupervisedNode
from barnabas.config.cannot_start import CannotStart
from barnabas.directory.start_report import warn_of_readers
from barnabas.log.disk import DiskLocked, OsDisk
from barnabas.process.arguments import print_error
from barnabas.process.local_cluster import (
    LocalNode,
    check_folder,
    copies_settings,
    environment,
    is_secured,
    last_error,
    metrics_addresses,
    nodes_to_start,
    open_cluster,
    size_of,
)
from barnabas.process.resizable_folder import ResizableFolder
from barnabas.process.stop_signals import LEAVE, LEFT, StopSignals
from barnabas.process.supervisor_pipe import SupervisorPipe

if TYPE_CHECKING:
    from barnabas.process.secure_dev import SecureDev

__all__ = ["Supervisor", "open_secure_dev", "run_cluster"]

logger = logging.getLogger(__name__)

PROGRAM = (sys.executable, "-m", "barnabas")

_READY = b"barnabas ready on "
_LEAVE_SECONDS = 10
"""How long the others wait for a node that does not leave, because it hangs."""
_STOP_SECONDS = 60
_SHORT_LIFE_SECONDS = 10
_DELAY_SECONDS_MAX = 30
_LOG_TAIL_BYTES = 64 * 1024


def open_secure_dev(folder: Path, *, is_alone: bool) -> SecureDev:
    """Return what secures a folder; make it if it is not there. Arguments and errors as of `SecureDev`."""
    # Only a start with --secure-dev imports this.
    module = importlib.import_module("barnabas.process.secure_dev")
    opened: SecureDev = module.SecureDev(folder, time.time_ns() // 1_000_000, is_alone=is_alone)
    return opened


def run_cluster(
    folder: str,
    nodes: int,
    port: int | None,
    *,
    restart: bool,
    arguments: Sequence[str],
    secure_dev: bool = False,
    metrics_listen: str = "",
) -> int:
    """Run a cluster in a folder until a signal arrives, and return the exit code.

    Args:
        port: the first port; None for the default, or for the ports that the cluster has.
        secure_dev: TLS, a login and ACLs, see `secure_dev`; a cluster that has them keeps them.
        arguments: what every node's command line has besides its file.
        metrics_listen: HOST:PORT of the first node's metrics; empty for none.

    Raises:
        CannotStart: the folder cannot be used, or a node does not start.
    """
    root = Path(folder).absolute()
    try:
        asked, nodes = nodes, nodes_to_start(root, nodes)
        check_folder(root, nodes)
        OsDisk().mkdir(str(root))
        lock = OsDisk().lock(f"{root}/.lock")
        try:
            if nodes != asked:
                logger.warning(
                    "%s holds %d nodes, and all of them start, not %d (`barnabas cluster resize %d --data-dir %s` retires the others)",
                    folder, nodes, asked, asked, folder,
                )  # fmt: skip
            cluster = open_cluster(root, nodes, port)
            hint, secure = "", None
            if secure_dev or is_secured(root):
                opened = open_secure_dev(root, is_alone=False)
                opened.secure(cluster)
                hint, secure = opened.hint, opened.secure_last
            warn_of_readers(OsDisk(), str(root), cluster.written(root), "its nodes' settings and logs")
            metrics = metrics_addresses(cluster, metrics_listen)
            resizable = ResizableFolder(root, cluster, metrics_listen=metrics_listen, secure=secure)
            return _run(root, resizable, restart, arguments, hint, metrics)
        finally:
            lock.release()
    except DiskLocked:
        raise CannotStart(_in_use(folder, root, nodes)) from None
    except OSError as error:
        raise CannotStart(f"cannot use {folder}: {error.strerror or error} (pass another --data-dir)") from None


def _in_use(folder: str, root: Path, nodes: int) -> str:
    """Return the sentence for a start of a cluster that runs."""
    resize = (
        "" if size_of(root) == str(nodes) else f", resize it: `barnabas cluster resize {nodes} --data-dir {folder}`"
    )
    return f"{folder} is in use by another cluster (stop it{resize}, or pass another --data-dir)"


def _run(
    root: Path, folder: ResizableFolder, restart: bool, arguments: Sequence[str], hint: str, metrics: Sequence[str]
) -> int:
    loop = asyncio.new_event_loop()
    try:
        supervisor = Supervisor(folder, loop, restart=restart, arguments=arguments, hint=hint, metrics=metrics)
        signals = StopSignals(loop, supervisor.kill)
        with SupervisorPipe(loop, root, supervisor.restart, supervisor.described, supervisor.resize):
            code = loop.run_until_complete(supervisor.run(signals.asked))
        signals.ignore()
        return code
    finally:
        loop.close()


class NodeProcess:
    """The process of one node, which may end and be started again.

    Attributes:
        metrics: where it serves its metrics; empty for nowhere.
        is_to_return: it was stopped for a restart.
        is_to_leave: it is stopped for good.
    """

    def __init__(self, node: LocalNode, program: Sequence[str], arguments: Sequence[str], metrics: str = "") -> None:
        self.node = node
        self.metrics = metrics
        self.address = ""
        self.is_to_return = False
        self.is_to_leave = False
        self._program = program
        self._arguments = [*arguments, "--metrics-listen", metrics] if metrics else arguments
        self._process: asyncio.subprocess.Process | None = None
        self._serves = False
        self._log_begins = 0

    def __repr__(self) -> str:
        return f"<NodeProcess {self.node.node_id} running={self.is_running} on {self.address or '-'}>"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def is_serving(self) -> bool:
        return self.is_running and self._serves

    async def start(self) -> bool:
        """Start the process; return whether it serves, or has ended before."""
        node, self._serves = self.node, False
        options = ["--config", str(node.properties), "--data-dir", str(node.data), "--stop-at-end-of-input"]
        with node.open_log() as log:
            self._log_begins = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *(*self._program, "start", *options, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment(os.environ),
                start_new_session=True,
            )
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if line.startswith(_READY):
                self.address = line.removeprefix(_READY).decode().strip()
                self._serves = True
                return True
        return False

    async def wait(self) -> int:
        """Return the exit code, negative for the signal that killed the process."""
        assert self._process is not None
        return await self._process.wait()

    async def leave(self) -> None:
        """Let the node's broker leave the cluster, and return when it has; its controller goes on."""
        process = self._process
        if process is None or not self.is_running or not self._serves:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LEAVE)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                while await process.stdout.readline() not in (LEFT, b""):
                    pass

    async def stop(self, *, alone: bool = False) -> None:
        """Stop the process in order; kill it if that takes too long.

        Args:
            alone: the other nodes go on, so this one has not left before.
        """
        if self._process is None or not self.is_running:
            return
        if self._serves and not alone:
            assert self._process.stdin is not None
            self._process.stdin.close()
        else:
            self.send(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        except TimeoutError:
            print_error(f"node {self.node.node_id} does not stop, and is killed (its log: {self.node.log})")
            self.send(signal.SIGKILL)
            await self._process.wait()

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def last_error(self) -> str:
        """Return the last error that this run of the node has logged; empty without one."""
        with open(self.node.log, "rb") as log:
            log.seek(max(self._log_begins, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            return last_error(log.read().decode(errors="replace").splitlines())


class Supervisor:
    """Runs the nodes of a cluster.

    Args:
        folder: the cluster's files.
        arguments: what every node's command line has besides its file.
        program: the command of which `start` is a part.
        hint: a line to print when all nodes serve; empty for none.
        metrics: where each node serves its metrics; empty for nowhere.
    """

    def __init__(
        self,
        folder: ResizableFolder,
        loop: asyncio.AbstractEventLoop,
        *,
        restart: bool,
        arguments: Sequence[str],
        program: Sequence[str] = PROGRAM,
        hint: str = "",
        metrics: Sequence[str] = (),
    ) -> None:
        of_nodes = metrics or [""] * len(folder.cluster.nodes)
        self.nodes = [
            NodeProcess(node, program, arguments, where)
            for node, where in zip(folder.cluster.nodes, of_nodes, strict=True)
        ]
        self._folder = folder
        self._arguments = arguments
        self._program = program
        self._loop = loop
        self._restart = restart
        self._hint = hint
        self._ready: dict[int, asyncio.Future[None]] = {each.node.node_id: loop.create_future() for each in self.nodes}
        self._kept: dict[int, asyncio.Task[None]] = {}
        self._has_started = False
        self._resizing = asyncio.Lock()
        self._stopping = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Supervisor {self.nodes!r}>"

    async def run(self, asked: asyncio.Future[None]) -> int:
        """Start the nodes, wait until somebody asks for a stop, stop them, and return the exit code.

        Raises:
            CannotStart: a node ended before it served.
        """
        for each in self.nodes:
            self._begin(each)
        ended = self._loop.create_task(self._until_all_have_ended())
        started = asyncio.gather(*self._ready.values())
        try:
            await asyncio.wait((asked, started), return_when=asyncio.FIRST_COMPLETED)
            if started.done():
                started.result()
                self._has_started = True
                self._print_ready()
                if self._hint:
                    print(self._hint, flush=True)
                await asyncio.wait((asked, ended), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                print_error("all nodes have ended")
            return 0 if asked.done() else 1
        finally:
            started.cancel()
            await self._stop()
            await ended
            # A resize that goes on notices the stop.
            async with self._resizing:
                pass

    def _begin(self, process: NodeProcess) -> None:
        self._kept[process.node.node_id] = self._loop.create_task(self._keep(process))

    async def _until_all_have_ended(self) -> None:
        # A cluster may grow meanwhile.
        while running := [each for each in self._kept.values() if not each.done()]:
            await asyncio.wait(running)
        for each in self._kept.values():
            each.result()

    def _print_ready(self) -> None:
        print(f"barnabas ready on {','.join(each.address for each in self.nodes)}", flush=True)

    async def _keep(self, process: NodeProcess) -> None:
        """Run one node, again and again with `--restart`, until it leaves or the cluster stops."""
        delay = 0.0
        while not self._stopping.is_set() and not process.is_to_leave:
            began = self._loop.time()
            if await process.start():
                self._serves(process)
            if self._stopping.is_set() or process.is_to_leave:
                # The signal arrived before there was a process to send it to.
                await process.stop(alone=process.is_to_leave)
                return
            code = await process.wait()
            if self._stopping.is_set() or process.is_to_leave or not self._has_served(process, code):
                return
            if process.is_to_return:
                process.is_to_return = False
                continue
            is_short = self._loop.time() - began < _SHORT_LIFE_SECONDS
            starts_again = self._restart and code != 0
            what = "starting it again" if starts_again else f"its log: {process.node.log}"
            print_error(f"node {process.node.node_id} {_how(code)} ({what})")
            if not starts_again:
                return
            if is_short:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), delay)
            delay = min(max(1.0, delay * 2), _DELAY_SECONDS_MAX) if is_short else 0.0

    def described(self) -> LocalNodes:
        """Return the nodes."""
        nodes = [
            SupervisedNode(each.node.node_id, each.address, str(each.node.folder), each.is_serving)
            for each in self.nodes
        ]
        return LocalNodes(self._folder.cluster_id, nodes)

    async def resize(self, had: int, wanted: int) -> LocalNodes:
        """Start brokers, or retire the last nodes, until the cluster has so many; start those that have ended. Return its nodes.

        Raises:
            CannotStart: it has another number of nodes than the two, or starts or stops, or a node does not start.
            OSError: a file cannot be written.
        """
        async with self._resizing:
            if len(self.nodes) not in (had, wanted):
                raise CannotStart(f"the cluster has {len(self.nodes)} nodes now, not {had} (type the command again)")
            if not self._has_started or self._stopping.is_set():
                raise CannotStart("the cluster is starting or stopping (wait, and type the command again)")
            before = len(self.nodes)
            while len(self.nodes) > wanted:
                await self._retire(self.nodes[-1])
            for each in self.nodes:
                if self._kept[each.node.node_id].done():
                    await self._started(each)
            while len(self.nodes) < wanted:
                await self._grow()
            if len(self.nodes) != before:
                self._print_ready()
            return self.described()._replace(changes_copies=copies_settings(before) != copies_settings(wanted))

    async def _grow(self) -> None:
        metrics = await self._loop.run_in_executor(None, self._folder.grow)
        process = NodeProcess(self._folder.cluster.nodes[-1], self._program, self._arguments, metrics)
        self.nodes.append(process)
        try:
            await self._started(process)
        except CannotStart:
            if not self._stopping.is_set():
                # A folder that keeps the node has it here, too, as one that has ended: the next resize starts it again.
                await self._loop.run_in_executor(None, self._folder.shrink)
                self.nodes.remove(process)
            raise

    async def _started(self, process: NodeProcess) -> None:
        """Start a node while others run, and wait until it serves.

        Raises:
            CannotStart: it does not, or the cluster stops.
        """
        ready = self._ready[process.node.node_id] = self._loop.create_future()
        if not self._stopping.is_set():
            self._begin(process)
            stops = self._loop.create_task(self._stopping.wait())
            await asyncio.wait((ready, stops), return_when=asyncio.FIRST_COMPLETED)
            stops.cancel()
        if not ready.done():
            ready.cancel()
            raise CannotStart("the cluster stops")
        ready.result()

    async def _retire(self, process: NodeProcess) -> None:
        # First: a folder that cannot be written keeps the node.
        await self._loop.run_in_executor(None, self._folder.shrink)
        process.is_to_leave = True
        await process.stop(alone=True)
        await self._kept.pop(process.node.node_id)
        self.nodes.remove(process)
        print(f"node {process.node.node_id} is retired, its files stay in {process.node.folder}", flush=True)

    def restart(self, node_id: int) -> None:
        """Stop a node in order, and start it again. What this cannot do is one line on standard error."""
        process = next((each for each in self.nodes if each.node.node_id == node_id), None)
        if process is None or not process.is_serving:
            print_error(f"node {node_id} does not serve, and is not restarted")
        elif not process.is_to_return:
            process.is_to_return = True
            process.send(signal.SIGTERM)

    def _serves(self, process: NodeProcess) -> None:
        node, ready = process.node, self._ready[process.node.node_id]
        metrics = f", metrics on {process.metrics}" if process.metrics else ""
        print(f"node {node.node_id} ({node.roles}) on {process.address}{metrics}, files in {node.folder}", flush=True)
        if not ready.done():
            ready.set_result(None)

    def _has_served(self, process: NodeProcess, code: int) -> bool:
        """Return whether a node that ended had served once; the start fails if not."""
        node, ready = process.node, self._ready[process.node.node_id]
        if not ready.done():
            why = process.last_error() or f"it {_how(code)}"
            ready.set_exception(CannotStart(f"node {node.node_id} does not start: {why}; its log: {node.log}"))
        return not ready.cancelled() and ready.exception() is None

    async def _stop(self) -> None:
        self._stopping.set()
        await asyncio.gather(*(each.leave() for each in self.nodes))
        await asyncio.gather(*(each.stop() for each in self.nodes))

    def kill(self) -> None:
        """End all nodes at once, as a kill does."""
        for each in self.nodes:
            each.send(signal.SIGKILL)


def _how(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}" if code else "was stopped"
