"""What TLS, a login and the authorizer cost: `python -m bench.secured [--runs 3] [--megabytes 300] [--connections 1000]`.

Both brokers are up at once and are measured in turn, with a listener in plain text beside one of TLS with the client's certificate:

    produce, consume          librdkafka over TLS, beside Apache Kafka's TLS; then the ratio to plain text on the same node
    connections               so many over TLS: resident memory of each when idle, and after it has sent and received 200 KB
    authorizer                barnabas alone: CPU of one-record requests with StandardAuthorizer and without it, on plain text
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import ssl
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.conform.brokers import BarnabasProcess
from tests.conform.card.security import WAYS, SecuredBarnabas, SecuredKafka, Security, secured_broker

from barnabas.client.admin import Admin
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from bench.bare_sockets import connect, produce_frame
from bench.librdkafka_load import SETTINGS
from bench.process_cost import Cost, resident_megabytes
from bench.report import OURS, THEIRS, Results, print_table
from bench.scenarios import Figures, Running, librdkafka, pid_of, requests

PLAIN, TLS = "plain text", "TLS"
SIZE, BATCH = 1000, 131_072
VALUE = b"x" * 200_000
REQUESTS_AT_ONCE = 100


def settings_of(security: Security) -> dict[str, str]:
    """Return librdkafka's settings of a client that shows its certificate."""
    names = {"ssl.ca.location": "ca.pem", "ssl.certificate.location": "user.pem", "ssl.key.location": "user.key"}
    return {"security.protocol": "ssl"} | {name: str(security.folder / file) for name, file in names.items()}


@contextmanager
def by(way: str, file: Path) -> Iterator[None]:
    """Have the loads connect that way."""
    if way == TLS:
        os.environ[SETTINGS] = str(file)
    try:
        yield
    finally:
        os.environ.pop(SETTINGS, None)


def round_trip(running: Running, address: str, megabytes: int) -> Figures:
    """Produce with acks=all and read it again."""
    count = megabytes * 1_000_000 // SIZE
    with running.topic() as topic:
        with Cost(running.pid) as produced:
            seconds = librdkafka("produce", address, topic, count, SIZE, BATCH, "all")
        with Cost(running.pid) as consumed:
            read_seconds = librdkafka("consume", address, topic, count)
    sent = count * SIZE / 1e6
    return {
        "produced MB/s": sent / seconds,
        "produce: broker CPU s/GB": produced.cpu / sent * 1000,
        "consumed MB/s": sent / read_seconds,
        "consume: broker CPU s/GB": consumed.cpu / sent * 1000,
    }


def connections(running: Running, security: Security, port: int, count: int) -> Figures:
    """Open so many connections over TLS; look at the node's memory; then each sends 200 KB and reads its answer."""
    context = ssl.create_default_context(cafile=str(security.folder / "ca.pem"))
    context.load_cert_chain(security.folder / "user.pem", security.folder / "user.key")
    frame_of = [b"", b""]
    with running.topic(1) as topic, ExitStack() as opened:
        frame_of = [produce_frame(topic, 0, b"x"), produce_frame(topic, 0, VALUE)]
        first = opened.enter_context(context.wrap_socket(connect(port), server_hostname="127.0.0.1"))
        for frame in frame_of:
            exchange(first, frame)
        settled = rested(running.pid)
        with Cost(running.pid) as cost:
            clients = [
                opened.enter_context(context.wrap_socket(connect(port), server_hostname="127.0.0.1"))
                for _ in range(count)
            ]
            for client in clients:
                exchange(client, frame_of[0])
        idle = rested(running.pid)
        for client in clients:
            exchange(client, frame_of[1])
        used = rested(running.pid)
    return {
        "idle KB each": (idle - settled) * 1000 / count,
        "after 200 KB: KB each": (used - settled) * 1000 / count,
        "handshake and first request: CPU ms": cost.cpu / count * 1000,
    }


def exchange(client: socket.socket, frame: bytes) -> None:
    client.sendall(frame)
    if not client.recv(4096):
        raise RuntimeError("the node closed the connection")


def rested(pid: int) -> float:
    """Return the node's memory in MB after two seconds of rest."""
    time.sleep(2)
    return resident_megabytes(pid)


def authorizer(runs: int, seconds: float) -> Results:
    """One-record requests to two nodes of ours in turn: one asks the authorizer about each, one has none."""
    without, with_one = "no authorizer", "StandardAuthorizer"
    results = Results(THEIRS)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        nodes = {}
        for name, settings in {
            without: {},
            with_one: {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found": "true",
            },
        }.items():
            broker = stack.enter_context(BarnabasProcess(Path(folder) / name.split()[0], settings=settings))
            nodes[name] = Running(OURS, broker, pid_of(broker))
        allow = AclBinding(
            ResourceType.TOPIC, "*", PatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.ALL, Permission.ALLOW
        )
        with Admin(nodes[with_one].broker.bootstrap_servers) as admin:
            assert admin.create_acls([allow]) == [None]
        for _ in range(runs):
            # The first of a pair may have the colder machine.
            for name in (without, with_one, with_one, without):
                results.add("authorizer", name, requests(nodes[name], REQUESTS_AT_ONCE, seconds))
    for figure in ("broker CPU µs", "requests/s"):
        before, after = (statistics.median(results.values["authorizer", figure, name]) for name in (without, with_one))
        print(f"authorizer, {figure}: {before:,.1f} without, {after:,.1f} with it: {after / before - 1:+.1%}")
    return results


def beside_kafka(runs: int, megabytes: int, count: int) -> None:
    results = Results(THEIRS)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        keys = Path(folder) / "keys"
        keys.mkdir()
        security = Security(WAYS["SSL"], keys)
        file = keys / "librdkafka.json"
        file.write_text(json.dumps(settings_of(security)))
        nodes: list[tuple[Running, SecuredBarnabas | SecuredKafka]] = []
        for name in (OURS, THEIRS):
            broker = secured_broker(name, Path(folder) / name, security, {})
            broker.start()
            stack.callback(broker.stop)
            security.admit(broker.bootstrap_servers)
            nodes.append((Running(name, broker, pid_of(broker)), broker))
        for warm in (True, *[False] * runs):
            for way in (PLAIN, TLS):
                for running, broker in nodes:
                    address = f"127.0.0.1:{broker.secured_port}" if way == TLS else broker.bootstrap_servers
                    with by(way, file):
                        figures = round_trip(running, address, megabytes)
                    if not warm:
                        results.add(way, running.name, figures)
        for way in (PLAIN, TLS):
            print_table(results, way)
        name = f"{count} connections over TLS"
        for _ in range(runs):
            for running, broker in nodes:
                results.add(name, running.name, connections(running, security, broker.secured_port, count))
        print_table(results, name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.secured", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", choices=("tls", "authorizer"))
    args = parser.parse_args()
    if args.only != "authorizer":
        beside_kafka(args.runs, args.megabytes, args.connections)
    if args.only != "tls":
        authorizer(args.runs, args.seconds)


if __name__ == "__main__":
    main()
