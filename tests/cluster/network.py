"""A network of its own for each node: namespaces of Linux, joined by a bridge, which can be cut.

    this machine's own network: clients        10.a.b.254 on the bridge
    node 1 in namespace NAME-1                 10.a.b.1
    node 2 in namespace NAME-2                 10.a.b.2   …

A cut drops packets, as a broken switch does: neither end gets an error, connections stay open, and TCP sends again. Each end drops the
packets that arrive, so a cut can have one direction: `deafen(1, 2)` keeps node 2's packets from node 1, and node 2 hears node 1.

It needs Linux, root, `ip` and `tc` (iproute2), and `iptables`. What it makes ends with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from types import TracebackType

CLIENTS = 254
"""The last number of the clients' address."""


class NoNetwork(Exception):
    """This machine does not allow it; the message says why, in one line."""


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NoNetwork(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


class Network:
    """A bridge and one namespace a node.

    Args:
        node_ids: of the nodes, from 1 to 253.

    Raises:
        NoNetwork: the machine does not allow it.
    """

    def __init__(self, node_ids: Iterable[int]) -> None:
        self._ids = tuple(node_ids)
        self._slow: set[int] = set()
        # Runs at the same time have other process ids, so other names and addresses.
        number = os.getpid() % 62_500
        self.name = f"bn{number}"
        self._net = f"10.{number // 250 + 2}.{number % 250 + 1}"
        missing = [tool for tool in ("ip", "tc", "iptables") if shutil.which(tool) is None]
        if missing or os.geteuid():
            raise NoNetwork(f"{' and '.join(missing)} not found" if missing else "only root may make namespaces")
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        _run("ip", "link", "add", self.name, "type", "bridge")
        _run("ip", "link", "set", self.name, "up")
        _run("ip", "addr", "add", f"{self._net}.{CLIENTS}/24", "dev", self.name)
        for each in self._ids:
            space, outside = self._space(each), f"{self.name}v{each}"
            _run("ip", "netns", "add", space)
            _run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", space)
            _run("ip", "link", "set", outside, "master", self.name, "up")
            _run("ip", "-n", space, "addr", "add", f"{self.host(each)}/24", "dev", "eth0")
            _run("ip", "-n", space, "link", "set", "eth0", "up")
            _run("ip", "-n", space, "link", "set", "lo", "up")

    def __repr__(self) -> str:
        return f"<Network {self.name} {self._net}.0 {self._ids}>"

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _space(self, node_id: int) -> str:
        return f"{self.name}-{node_id}"

    def host(self, node_id: int) -> str:
        """Return a node's address."""
        return f"{self._net}.{node_id}"

    def prefix(self, node_id: int) -> tuple[str, ...]:
        """Return what a command begins with that runs in a node's namespace; `ip` becomes that command, with its process id."""
        return "ip", "netns", "exec", self._space(node_id)

    # Cuts

    def deafen(self, node_id: int, *others: int) -> None:
        """Drop what these send to a node; `CLIENTS` are this machine's clients."""
        for other in others:
            self._filter(node_id, "-A", "INPUT", "-s", f"{self._net}.{other}", "-j", "DROP")

    def cut(self, node_id: int, *others: int) -> None:
        """Drop what a node and these send to each other, in both directions."""
        self.deafen(node_id, *others)
        for other in others:
            if other == CLIENTS:
                self._filter(node_id, "-A", "OUTPUT", "-d", f"{self._net}.{CLIENTS}", "-j", "DROP")
            else:
                self.deafen(other, node_id)

    def isolate(self, node_id: int) -> None:
        """Drop everything that a node and anybody else send to each other."""
        _run("ip", "link", "set", f"{self.name}v{node_id}", "down")

    def lose(self, node_id: int, share: float) -> None:
        """Drop a share, from 0 to 1, of the packets that a node is sent, by chance."""
        by_chance = ("-m", "statistic", "--mode", "random", "--probability", f"{share:.4f}")
        self._filter(node_id, "-A", "INPUT", "-i", "eth0", *by_chance, "-j", "DROP")

    def slow_down(self, node_id: int) -> None:
        """Delay what a node sends by a tenth of a second, give or take a half; where the kernel cannot, let it send a megabit a second."""
        shape = (*self.prefix(node_id), "tc", "qdisc", "replace", "dev", "eth0", "root")
        try:
            _run(*shape, "netem", "delay", "100ms", "50ms")
        except NoNetwork:
            _run(*shape, "tbf", "rate", "1mbit", "burst", "16kb", "latency", "400ms")
        self._slow.add(node_id)

    def heal(self) -> None:
        """Undo all cuts."""
        for each in self._slow:
            _run(*self.prefix(each), "tc", "qdisc", "del", "dev", "eth0", "root")
        self._slow.clear()
        for each in self._ids:
            self._filter(each, "-F")
            _run("ip", "link", "set", f"{self.name}v{each}", "up")

    def _filter(self, node_id: int, *rule: str) -> None:
        _run(*self.prefix(node_id), "iptables", "-w", *rule)

    def close(self) -> None:
        """Remove the namespaces and the bridge; processes in a namespace must have ended."""
        for command in (
            *(("ip", "link", "del", f"{self.name}v{each}") for each in self._ids),
            *(("ip", "netns", "del", self._space(each)) for each in self._ids),
            ("ip", "link", "del", self.name),
        ):
            with contextlib.suppress(NoNetwork):
                _run(*command)
