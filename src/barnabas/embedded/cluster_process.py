"""The process of one node of a `barnabas.Cluster`, as the cluster sees it: signals, and commands over a pair of sockets.

- The process is in a process group of its own, so that Ctrl-C reaches only the tests. It is in the session of the tests: if they end
  while it is paused, its group is orphaned, the kernel sends it SIGHUP and SIGCONT (POSIX, `_exit`), and it ends.
- A command is one line of JSON and has one answer, in order; `cluster_control` lists them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from barnabas.config.cannot_start import CannotStart
from barnabas.process.local_cluster import LocalNode, environment, last_error
from barnabas.protocol.errors import error_for
from barnabas.words.printable import printable

__all__ = ["ClusterProcess"]

_STOP_S = 60.0
_SHOWN_LINES = 20
_LOG_TAIL_BYTES = 64 * 1024


class ClusterProcess:
    """One node; its process may end and be started again.

    Attributes:
        is_paused: its process is stopped by SIGSTOP.
        address: `host:port` of its listener for clients, once it has served.
        cluster_id: once it has served.
    """

    def __init__(self, node: LocalNode) -> None:
        self.node = node
        self.is_paused = False
        self.address = ""
        self.cluster_id = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._received = b""

    def __repr__(self) -> str:
        state = "down" if not self.is_up else "paused" if self.is_paused else "up"
        return f"<ClusterProcess {self.node.node_id} {state} on {self.address or '-'}>"

    @property
    def is_up(self) -> bool:
        """Whether the process runs or is paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def answers(self) -> bool:
        return self.is_up and not self.is_paused

    # The process

    def launch(self, first: Mapping[str, Any]) -> None:
        """Begin the process, with the first line that it reads."""
        assert not self.is_up, f"node {self.node.node_id} is up"
        self._close()
        ours, theirs = socket.socketpair()
        with theirs, self.node.open_log() as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "barnabas.embedded.cluster_node", str(self.node.properties)],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env=environment(os.environ),
                process_group=0,
            )
        self._channel, self.is_paused = ours, False
        self.send(first)

    def await_ready(self, deadline: float, explanation: str = "") -> None:
        """Wait until the node serves.

        Args:
            explanation: what to add to why it does not.

        Raises:
            CannotStart: it has ended, or the time is over; the text has the last lines of its log.
        """
        try:
            answer = self.receive(deadline)
        except (OSError, TimeoutError) as error:
            self.kill()
            why = "it takes too long" if isinstance(error, TimeoutError) else "it ended"
            lines = self.last_lines()
            found = last_error(lines)
            shown = "".join(f"\n    {printable(line)}" for line in lines[-_SHOWN_LINES:])
            raise CannotStart(
                f"node {self.node.node_id} does not start: {found or why}{explanation}; its log ends with{shown}"
            ) from None
        self.address, self.cluster_id = answer["address"], answer["cluster_id"]

    def terminate(self) -> None:
        """Ask the node to stop cleanly, as an operator would."""
        self._signal(signal.SIGTERM)

    def end(self) -> None:
        """Ask the node to stop together with all others."""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)

    def wait_for_end(self) -> None:
        """Wait until the process has ended; kill it if that takes too long."""
        if self._process is not None:
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        self._close()

    def kill(self) -> None:
        """Kill the process, even if it is paused."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._close()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_paused = False

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _close(self) -> None:
        self.is_paused = False
        self._received = b""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def last_lines(self) -> list[str]:
        """Return the end of the node's log."""
        with open(self.node.log, "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").splitlines()

    # Commands

    def ask(self, command: str, argument: object, seconds: float) -> dict[str, Any]:
        """Have a command carried out.

        Raises:
            KafkaError: the node answers with an error.
            OSError: the node has ended.
            TimeoutError: it does not answer in time; later answers would be those to other commands, so it is killed.
        """
        self.send({command: argument})
        try:
            answer = self.receive(time.monotonic() + seconds)
        except TimeoutError:
            node_id = self.node.node_id
            self.kill()
            raise TimeoutError(f"node {node_id} did not answer within {seconds:.0f} s, and was killed") from None
        if "error" in answer:
            raise error_for(answer["error"], answer["message"])
        return answer

    def send(self, command: Mapping[str, Any]) -> None:
        if self._channel is None:
            raise ConnectionError(f"node {self.node.node_id} is down")
        self._channel.settimeout(_STOP_S)
        self._channel.sendall(json.dumps(command).encode() + b"\n")

    def receive(self, deadline: float) -> dict[str, Any]:
        assert self._channel is not None, "a command was sent"
        while b"\n" not in self._received:
            self._channel.settimeout(max(deadline - time.monotonic(), 0.001))
            received = self._channel.recv(65536)
            if not received:
                raise ConnectionError(f"node {self.node.node_id} has ended")
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer
