"""Three nodes under load and the page of a Spark driver, which a real Prometheus scrapes: what the dashboards and alarms are tried on."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client import CollectorRegistry, start_http_server

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.client.properties import read_properties
from barnabas.security.client_security import client_security
from barnabas.spark.queries.progress_report import ProgressReport, Reach
from barnabas.spark.queries.query_metrics import QueryMetrics
from barnabas.spark.source.skipped_ranges import SkippedRanges
from tests.metrics.prometheus import Prometheus, Target
from tests.process.process import pid_of
from tests.process.test_nodes_on_one_machine import Cluster

SOON = ("--set", "broker.session.timeout.ms=2000", "--set", "broker.heartbeat.interval.ms=300")
STRIMZI = {
    "namespace": "local",
    "strimzi_io_cluster": "shop",
    "strimzi_io_name": "shop-kafka",
    "container": "kafka",
}


class Load:
    """Clients of a cluster, each in a thread of its own, until the load stops."""

    def __init__(self, connection: dict[str, Any]) -> None:
        self._connection = connection
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        admin = AdminClient(self._connection)
        for name in ("orders", "paid"):
            admin.create_topics([NewTopic(name, 3, 3)], operation_timeout=60)[name].result(60)
        for run in (self._produce, self._pay, self._hold, self._read, self._fail):
            thread = threading.Thread(target=self._guarded, args=(run,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _guarded(self, run: Callable[[], None]) -> None:
        """Run a client; one that loses the killed node begins again."""
        while not self._stopped.is_set():
            try:
                run()
            except KafkaException:
                self._stopped.wait(0.2)

    def _produce(self) -> None:
        producer = Producer(self._connection)
        while not self._stopped.wait(0.02):
            producer.produce("orders", b"x" * 100)
            producer.poll(0)

    def _pay(self) -> None:
        producer = Producer({**self._connection, "transactional.id": "shop/payments/0123456789ab/0"})
        producer.init_transactions(30)
        while not self._stopped.wait(0.1):
            producer.begin_transaction()
            producer.produce("paid", b"y")
            producer.commit_transaction(30)

    def _hold(self) -> None:
        producer = Producer({**self._connection, "transactional.id": "shop/held/0123456789ab/0"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("paid", b"held")
        self._stopped.wait()

    def _read(self) -> None:
        consumer = Consumer(
            {**self._connection, "group.id": "readers", "auto.commit.interval.ms": 500, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders", "paid"])
        while not self._stopped.is_set():
            consumer.poll(0.2)
        consumer.close()

    def _fail(self) -> None:
        """Create a topic that exists, again and again, for an error in the answers."""
        admin = AdminClient(self._connection)
        while not self._stopped.wait(0.3):
            try:
                admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(30)
            except KafkaException:
                continue
            raise AssertionError("a topic that exists was created")

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)


@contextmanager
def shared(addresses: str, configuration: str, folder: Path) -> Iterator[None]:
    """A member of a share group, by the command."""
    words = [sys.executable, "-m", "barnabas", "consume", "orders", "--share", "workers", "-b", addresses]
    with open(folder / "share.log", "wb") as log:
        process = subprocess.Popen([*words, "--command-config", configuration], stdout=subprocess.DEVNULL, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def spark_page() -> Iterator[tuple[str, QueryMetrics]]:
    """The page of a driver, by its own classes; the reports are this test's."""
    registry = CollectorRegistry()
    metrics = QueryMetrics(registry)
    losses = [b'{"topic": "orders", "partition": 0, "from": 1, "to": 3, "query": "id"}']
    registry.register(SkippedRanges(lambda: [losses.pop()] if losses else [], lambda _: "orders-table"))
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        yield f"127.0.0.1:{server.server_port}", metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def report(metrics: QueryMetrics) -> None:
    metrics.progressed(
        "orders-table",
        ProgressReport(
            timestamp_s=time.time(),
            has_batch=True,
            batch_seconds=1.0,
            rows=10,
            rows_per_second=10.0,
            late_rows=1,
            reach={("orders", 0): Reach(5, 9)},
        ),
    )


class WatchedCluster:
    """The cluster, its clients, and the Prometheus that scrapes them, in which node 1 is the instance node-1.

    Args:
        folder: for all files.
        stack: ends everything.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        options = ("--port", "0", "--secure-dev", "--metrics-listen", "127.0.0.1:0", *SOON)
        cluster = stack.enter_context(Cluster(folder / "cluster", 3, *options))
        page, self.reports = stack.enter_context(spark_page())
        self._configuration = cluster.until(r"clients need --command-config (\S+)\n")[1]
        self._addresses = cluster.addresses
        nodes = dict(re.findall(r"^node (\d) .*, metrics on (\S+), files in", "".join(cluster.lines), re.MULTILINE))
        targets: list[Target] = [("spark", page, {"instance": "driver"})]
        for number, where in nodes.items():
            pod = {"kubernetes_pod_name": f"shop-kafka-{number}", "pod": f"shop-kafka-{number}"}
            targets.append(("barnabas", where, STRIMZI | pod | {"instance": f"node-{number}"}))
        (folder / "prometheus").mkdir()
        self.prometheus = stack.enter_context(Prometheus(folder / "prometheus", targets))
        connection = {
            "bootstrap.servers": cluster.addresses,
            **librdkafka_security(client_security(read_properties(self._configuration))),
        }
        load = Load(connection)
        stack.callback(load.stop)
        load.start()
        self.reports.started("orders-table")
        self._ended = threading.Event()
        self._batches = threading.Thread(target=self._report_batches, daemon=True)
        self._batches.start()
        stack.callback(self._no_more_batches)

    def _report_batches(self) -> None:
        """Report a batch again and again: a rate needs some between two scrapes."""
        while not self._ended.wait(0.3):
            report(self.reports)

    def _no_more_batches(self) -> None:
        self._ended.set()
        self._batches.join()

    def end_query(self) -> None:
        """The Spark query fails: as in Spark, no report of a batch comes after the report of the end."""
        self._no_more_batches()
        self.reports.ended("orders-table", failed=True)

    @contextmanager
    def with_a_share_group(self) -> Iterator[None]:
        """A member of a share group reads meanwhile."""
        with shared(self._addresses, self._configuration, self._folder):
            yield

    def pid(self, node: int) -> int:
        return pid_of(self._folder / "cluster" / f"node-{node}")
