"""One node of a cluster and its process, of either kind. The kinds differ only in two command lines."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import apache_kafka

from tests.cluster import views
from tests.cluster.waiting import NeverCame, wait_for

START_SECONDS = 300.0
STOP_SECONDS = 120.0
HEAP = "384m"


class NodeProcess:
    """A node in a folder of its own, which holds its `server.properties`, its data and what its process prints.

    Args:
        folder: of this node.
        node_id: its `node.id`.
        roles: of `process.roles`.

    Attributes:
        port: of its listener for clients; None for a node that is only a controller.
        controller_port: of its listener for controllers; None for a node that is only a broker.
        host: the address at which it listens.
        prefix: the beginning of the command of its process, which places it in a network.
        is_paused: its process is stopped by SIGSTOP.
        format_options: more arguments of the command that formats the directory.
        release_version: with which the directory is formatted; None for the newest that the node knows.
    """

    kind: ClassVar[str]

    def __init__(self, folder: Path, node_id: int, roles: tuple[str, ...]) -> None:
        self.folder, self.node_id, self.roles = folder, node_id, roles
        self.config = folder / "server.properties"
        self.data_dir = folder / "data"
        self.log = folder / "server.log"
        self.host = "127.0.0.1"
        self.prefix: tuple[str, ...] = ()
        self.port = apache_kafka.free_port() if "broker" in roles else None
        self.controller_port = apache_kafka.free_port() if "controller" in roles else None
        self.process: subprocess.Popen[bytes] | None = None
        self.is_paused = False
        self.release_version: str | None = None
        self.format_options: tuple[str, ...] = ()

    def __repr__(self) -> str:
        state = "down" if not self.is_up else "paused" if self.is_paused else "up"
        return f"<{type(self).__name__} {self.node_id} {','.join(self.roles)} {state}>"

    def format_command(self, cluster_id: str) -> list[str]:
        """Return the command that formats the data directory."""
        raise NotImplementedError

    def start_command(self) -> list[str]:
        """Return the command whose process is the node."""
        raise NotImplementedError

    @property
    def is_broker(self) -> bool:
        return self.port is not None

    @property
    def is_controller(self) -> bool:
        return self.controller_port is not None

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def address(self) -> views.Address:
        """Where clients reach it."""
        assert self.port is not None, f"node {self.node_id} is no broker"
        return self.host, self.port

    @property
    def is_up(self) -> bool:
        """Whether its process runs or is paused."""
        return self.process is not None and self.process.poll() is None

    @property
    def answers(self) -> bool:
        """Whether it can be asked."""
        return self.is_up and not self.is_paused

    def write_config(self, properties: dict[str, str]) -> None:
        """Write its `server.properties`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.touch(0o600)
        self.config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    def format(self, cluster_id: str) -> None:
        """Format its data directory unless it is formatted."""
        if not (self.data_dir / "meta.properties").exists():
            self._format(cluster_id)

    def format_new_directories(self, cluster_id: str) -> None:
        """Format those of its directories that have no owner yet, beside the others."""
        self._format(cluster_id, "--ignore-formatted")

    def _format(self, cluster_id: str, *more: str) -> None:
        version = [] if self.release_version is None else ["--release-version", self.release_version]
        command = [*self.format_command(cluster_id), *version, *self.format_options, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f"node {self.node_id} is not formatted: {done.stdout}{done.stderr}")

    # Its process

    def launch(self) -> None:
        """Begin its process; the caller waits."""
        assert not self.is_up, f"node {self.node_id} is up"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *self.start_command()], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        self.is_paused = False

    def await_ready(self) -> None:
        """Wait until a broker names itself among the brokers that it knows; a controller alone, until it takes connections."""

        def is_ready() -> bool:
            if not self.is_up:
                raise RuntimeError(f"node {self.node_id} has ended:\n{self.last_lines()}")
            if self.port is not None:
                return self.node_id in views.metadata(self.address).brokers
            assert self.controller_port is not None
            return views.takes_connections((self.host, self.controller_port))

        try:
            wait_for(f"node {self.node_id} is ready", is_ready, START_SECONDS)
        except NeverCame as error:
            raise RuntimeError(f"{error}\n{self.last_lines()}") from None

    def start(self) -> None:
        """Begin its process and wait until it is ready."""
        self.launch()
        self.await_ready()

    def stop(self) -> None:
        """Ask it to end (SIGTERM), and wait for that."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"node {self.node_id} did not stop:\n{self.last_lines()}") from None
            self.process = None

    def kill(self) -> None:
        """End it at once (SIGKILL), paused or not."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.is_paused = False

    def pause(self) -> None:
        """Pause its process (SIGSTOP)."""
        assert self.process is not None, f"node {self.node_id} is down"
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def go_on(self) -> None:
        """Let its process run again (SIGCONT)."""
        assert self.process is not None, f"node {self.node_id} is down"
        self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def wipe(self) -> None:
        """Lose its disk; it must be down, and be formatted before it starts again."""
        assert not self.is_up, f"node {self.node_id} is up"
        shutil.rmtree(self.data_dir)

    def last_lines(self, count: int = 25) -> str:
        """Return what its process printed last."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-count:])


class BarnabasNode(NodeProcess):
    """`barnabas storage format` and `barnabas start`."""

    kind = "barnabas"

    def format_command(self, cluster_id: str) -> list[str]:
        return [sys.executable, "-m", "barnabas.main", "storage", "format", "-t", cluster_id, "-c", str(self.config)]

    def start_command(self) -> list[str]:
        return [sys.executable, "-m", "barnabas.main", "start", "--config", str(self.config)]


class ApacheKafkaNode(NodeProcess):
    """`kafka-storage format` and `kafka-server-start`, from the published jars."""

    kind = "apache-kafka"
    heap = HEAP

    def format_command(self, cluster_id: str) -> list[str]:
        return apache_kafka.tool_command("storage", "format", "-t", cluster_id, "-c", str(self.config))

    def start_command(self) -> list[str]:
        return apache_kafka.java_command(
            "kafka.Kafka", str(self.config), heap=self.heap, log4j="server-log4j2.properties"
        )


KINDS: dict[str, type[NodeProcess]] = {each.kind: each for each in (ApacheKafkaNode, BarnabasNode)}
