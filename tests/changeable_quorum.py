"""Two nodes whose quorum can change: node 1 votes alone, and controller 4 only reads the metadata log."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster import views
from tests.cluster.waiting import wait_for
from tests.process.process import ENVIRONMENT, command, run

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


@contextmanager
def changeable_quorum(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the addresses of the broker and of controller 4."""
    with ExitStack() as stack:
        clients, one, four = (_held_port(stack) for _ in range(3))
        _start(stack, folder, 1, "broker,controller", f"PLAINTEXT://{clients},CONTROLLER://{one}", one)
        _start(stack, folder, 4, "controller", f"CONTROLLER://{four}", one)
        host, _, port = clients.rpartition(":")

        def reads() -> bool:
            found = views.quorum((host, int(port)))
            return found is not None and 4 in [each.replica_id for each in found.observers]

        wait_for("controller 4 reads the metadata log", reads)
        yield clients, four


def _held_port(stack: ExitStack) -> str:
    """Return a free address that no other process gets: a socket that does not listen holds it, and the node may share it."""
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{holder.getsockname()[1]}"


def _start(stack: ExitStack, folder: Path, node: int, roles: str, listeners: str, quorum: str) -> None:
    own = folder / str(node)
    own.mkdir(parents=True)
    config = own / "server.properties"
    config.touch(0o600)
    config.write_text(
        f"node.id={node}\nprocess.roles={roles}\nlisteners={listeners}\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers={quorum}\nlog.dirs={(own / 'data').absolute()}\n"
    )
    votes = "--standalone" if node == 1 else "--no-initial-controllers"
    formatted = run("storage", "format", "-t", CLUSTER_ID, votes, "-c", str(config))
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr
    with open(own / "log", "ab") as log:
        process = subprocess.Popen(command("start", "--config", str(config)), stdout=log, stderr=log, env=ENVIRONMENT)
    stack.callback(process.wait)
    stack.callback(process.kill)
