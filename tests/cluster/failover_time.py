"""How long a cluster takes from a fault to the next acknowledged write, measured on Apache Kafka and on barnabas in the same run.

    python -m tests.cluster.failover_time [--kinds apache-kafka barnabas] [--roles leader] [--rounds 3] [--pause | --cut] [--secured]
        [--output FILE]

The cluster has three nodes that are broker and controller, with default settings but for the copies of internal topics; the topic has
one partition, three replicas and min.insync.replicas=2. A producer of librdkafka sends one record after the other with acks=all. The
clock starts with the fault. It stops when a broker acknowledges the first record that the producer sent after the fault.

The fault hits a leader, a leader that is the active controller, or a follower. It kills the node; `--pause` stops its process, and
`--cut` drops all its packets, which needs what `network` needs. Before each round every replica is in sync, and the partition's leader
and the active controller are where the round wants them. With `--secured` every listener, the controllers' too, has TLS and a login, and an
authorizer decides.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.cluster.cluster import Cluster
from tests.cluster.load import QUICK
from tests.cluster.network import Network
from tests.cluster.node_process import KINDS, NodeProcess
from tests.cluster.secured_nodes import SecuredNodes
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker

# Scenarios make these shorter; here they are Kafka's defaults.
DEFAULTS = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "replica.lag.time.max.ms": "30000",
}
ROLES = ("leader", "leader and controller", "follower")
ROUND_SECONDS = 120.0
# A request to a node that is silent is sent to the next leader soon; librdkafka would wait for 60 s.
IMPATIENT = {"request.timeout.ms": 2000, "socket.timeout.ms": 2500}


class Writer(Worker):
    """Sends one record after the other and keeps when each was sent and acknowledged, on the monotonic clock."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._producer = Producer({
            "bootstrap.servers": bootstrap_servers, "acks": "all", "enable.idempotence": True, "linger.ms": 0,
            "message.timeout.ms": 300_000, **QUICK, **IMPATIENT, **way_in.library,
        })  # fmt: skip
        self.written: list[tuple[float, float]] = []

    def _run(self) -> None:
        while not self._stopping.is_set():
            # A record every five milliseconds, whatever became of those before: waiting in line would hide when the first one gets through.
            sent = time.monotonic()
            self._producer.produce(
                self._topic, b"x" * 100, partition=0, on_delivery=lambda *told, sent=sent: self._told(sent, *told)
            )
            self._producer.poll(0.005)

    def _told(self, sent: float, error: Any, _: Any) -> None:
        if error is None:
            self.written.append((sent, time.monotonic()))

    def __exit__(self, kind: object, *_: object) -> None:
        super().__exit__(kind)
        self._producer.flush(ROUND_SECONDS)

    def first_after(self, moment: float) -> float:
        """Wait until a record that was sent after a moment is acknowledged, and return when that was."""

        def find() -> float | None:
            return next((told for sent, told in list(self.written) if sent > moment), None)

        return wait_for("a record is written after the fault", find, ROUND_SECONDS)


def place(cluster: Cluster, role: str, topic: str) -> NodeProcess:
    """Create a topic whose leader is where a round wants it, and return the node that the fault hits."""
    controller = cluster.active_controller().node_id
    others = [node.node_id for node in cluster.brokers if node.node_id != controller]
    # The follower is not the active controller, so that its death has no other effect.
    leader = controller if role == "leader and controller" else others[0]
    rest = [node.node_id for node in cluster.brokers if node.node_id != leader]
    create_topic(cluster, topic, [[leader, *rest]], {"min.insync.replicas": "2"})
    return cluster[others[1] if role == "follower" else leader]


def measure(cluster: Cluster, role: str, fault: str, network: Network | None) -> float:
    """Return the seconds from the fault to the next write."""
    cluster.repair()
    topic = f"failover-{len(cluster.all_topics())}"
    node = place(cluster, role, topic)
    with Writer(cluster.bootstrap_servers, topic) as writer:
        writer.first_after(time.monotonic())
        began = time.monotonic()
        if fault == "paused":
            node.pause()
        elif network is not None:
            network.isolate(node.node_id)
            began = time.monotonic()
        else:
            node.kill()
        seconds = writer.first_after(began) - began
        if fault == "paused":
            node.go_on()
        elif network is not None:
            network.heal()
        else:
            cluster.start_again(node)
        cluster.await_in_sync([topic])
    return seconds


def measured(
    kind: str, rounds: int, fault: str, roles: Sequence[str], *, is_secured: bool = False
) -> dict[str, list[float]]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="failover-"))
        network = stack.enter_context(Network([1, 2, 3])) if fault == "cut" else None
        secured = SecuredNodes(Path(folder) / "keys") if is_secured else None
        stack.enter_context(nullcontext() if secured is None else way_in.by(secured.client))
        cluster = stack.enter_context(Cluster(kind, Path(folder), settings=DEFAULTS, network=network, secured=secured))
        found: dict[str, list[float]] = {role: [] for role in roles}
        for _ in range(rounds):
            for role in roles:
                found[role].append(round(measure(cluster, role, fault, network), 3))
                print(f"{kind}: {role} {fault}: {found[role][-1]:.2f} s", file=sys.stderr, flush=True)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.failover_time", description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=sorted(KINDS))
    parser.add_argument("--roles", nargs="+", choices=ROLES, default=ROLES)
    parser.add_argument("--rounds", type=int, default=3)
    faults = parser.add_mutually_exclusive_group()
    faults.add_argument("--pause", dest="fault", action="store_const", const="paused", help="let the node stand still")
    faults.add_argument("--cut", dest="fault", action="store_const", const="cut", help="let nobody reach the node")
    parser.set_defaults(fault="killed")
    parser.add_argument("--secured", action="store_true", help="TLS, logins and an authorizer everywhere")
    parser.add_argument("--output", type=Path, help="write the seconds of each round there, as JSON")
    args = parser.parse_args()
    found = {kind: measured(kind, args.rounds, args.fault, args.roles, is_secured=args.secured) for kind in args.kinds}
    if args.output:
        args.output.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{args.fault:<24}" + "".join(f"{kind:>16}" for kind in found))
    for role in args.roles:
        print(f"{role:<24}" + "".join(f"{statistics.median(each[role]):>14.2f} s" for each in found.values()))


if __name__ == "__main__":
    main()
