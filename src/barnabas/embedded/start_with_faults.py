"""`barnabas start --nodes N --faults HOST:PORT`: a `barnabas.Cluster`, and the HTTP API of its faults in this process.

    this process:  Cluster ◄── FaultApi ◄── FaultServer ◄── a test in any language
                      │ a pair of sockets for each node
    nodes:         `embedded.cluster_node`, each with the faults of its requests, links, disk and clock

- Without a data directory the cluster has a temporary one, which is deleted at the end.
- A node that a fault has ended stays down until the test restarts it.
- The nodes have the settings of a cluster for tests: short timeouts, see `cluster_arguments`. `--set` overrides them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

from barnabas.config.cannot_start import CannotStart
from barnabas.config.endpoints import parse_port
from barnabas.config.sources import UsageMistake
from barnabas.directory.data_directory import CLUSTER_PROPERTIES
from barnabas.embedded.cluster import Cluster
from barnabas.embedded.fault_api import FaultApi
from barnabas.embedded.fault_server import FaultServer
from barnabas.process.local_cluster import HOST
from barnabas.process.stop_signals import StopSignals
from barnabas.words.printable import printable

__all__ = ["listen_address", "run"]

FIRST_PORT = 9092


def run(address: str, nodes: int, folder: str | None, port: int | None, settings: Mapping[str, str]) -> int:
    """Run a cluster until a signal arrives, and return the exit code.

    Args:
        address: HOST:PORT of the HTTP API.
        folder: the data directory; None for a temporary one.
        port: the first port of the cluster; None for 9092, or for those that the folder's cluster has.

    Raises:
        CannotStart: an address or the folder cannot be used, or a node does not start.
        UsageMistake: the address is not one of this machine alone.
    """
    try:
        server = FaultServer(*listen_address(address))
    except OSError as error:
        why = error.strerror or error
        raise CannotStart(f"cannot listen on {address}: {why} (pass another --faults HOST:PORT)") from None
    try:
        is_old = folder is not None and (Path(folder) / CLUSTER_PROPERTIES).exists()
        chosen = (0 if is_old else FIRST_PORT) if port is None else port
        cluster = Cluster(nodes, folder, config=settings, port=chosen)
        return asyncio.run(_serve(cluster, server))
    finally:
        server.close()


def listen_address(text: str) -> tuple[str, int]:
    """Return host and port of a loopback address.

    Raises:
        UsageMistake: it is another address, or none.
    """
    host, _, number = text.rpartition(":")
    host, port = host.strip("[]"), parse_port(number)
    if not host or port is None:
        raise UsageMistake(
            f"--faults {printable(text)}: must be HOST:PORT, such as 127.0.0.1:9900 (port 0: a free one)"
        )
    if host == "localhost":
        return HOST, port
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise UsageMistake(f"--faults {printable(text)}: other machines could kill the nodes; pass {HOST}:{port}")
    return host, port


async def _serve(cluster: Cluster, server: FaultServer) -> int:
    signals = StopSignals(asyncio.get_running_loop(), lambda: _kill(cluster))
    # A signal during the start is heeded after it: nothing can be stopped half-way.
    await asyncio.to_thread(cluster.start)
    try:
        server.serve(FaultApi(cluster, server.address))
        for node in cluster.nodes:
            print(f"node {node} on {cluster.address(node)}, files in {cluster.data_dir}/node-{node}", flush=True)
        print(f"faults on http://{server.address} (GET / says what there is)", flush=True)
        print(f"barnabas ready on {cluster.bootstrap_servers}", flush=True)
        await signals.asked
    finally:
        await asyncio.to_thread(cluster.stop)
    signals.ignore()
    return 0


def _kill(cluster: Cluster) -> None:
    for node in cluster.nodes if cluster.is_running else ():
        cluster.kill(node)
