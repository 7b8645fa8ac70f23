"""The sink on three nodes: the node that a request goes to dies, and every row is there once.

It dies before it has carried the request out, or after. So a transaction's coordinator dies between the rows of a batch
and its decision, and while its transactions end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.client.wire import BlockingConnection
from tests.cluster.cluster import Cluster
from tests.cluster.node_process import KINDS, NodeProcess
from tests.cluster.topics import create_safe_topic
from tests.spark.sink.sink_run import Fault, Query, committed, random_split

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TOPIC = "written"
STRIKES = [
    (name, fault)
    for name in ("InitProducerId", "Produce", "ListTransactions", "EndTxn", "EndTxn")
    for fault in (Fault.LOST_BEFORE, Fault.LOST_AFTER)
]
"""One for each batch: at its first request with this name, its node dies."""

ROWS = 30
BATCHES = [[f"{batch}-{row}" for row in range(ROWS)] for batch in range(len(STRIKES))]
SETTINGS = {"apache-kafka": {}, "barnabas": {"transaction.two.phase.commit.enable": "true"}}


class Striking:
    """Makes connections; one request kills the node that it goes to.

    Attributes:
        struck: the node that is dead, if one is.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._armed: tuple[str, Fault] | None = None
        self.struck: NodeProcess | None = None

    def arm(self, name: str, fault: Fault) -> None:
        self._armed = name, fault

    def connect(self, host: str, port: int, **arguments: Any) -> BlockingConnection:
        return _StrikingConnection(self, host, port, **arguments)

    def take(self, name: str) -> Fault | None:
        """Return what is to happen at a request with this name."""
        if self._armed is None or self._armed[0] != name:
            return None
        (_, fault), self._armed = self._armed, None
        return fault

    def kill(self, port: int) -> None:
        (self.struck,) = [node for node in self._cluster.brokers if node.port == port]
        self.struck.kill()

    def heal(self) -> None:
        assert self.struck is not None, f"no request struck: {self._armed}"
        self._cluster.start_again(self.struck)
        self._cluster.repair()
        self.struck = None


class _StrikingConnection(BlockingConnection):
    def __init__(self, striking: Striking, host: str, port: int, **arguments: Any) -> None:
        self._striking, self._port = striking, port
        super().__init__(host, port, **arguments)

    def send(self, message: Any, version: int | None = None, *, highest: int | None = None) -> int:
        fault = self._striking.take(type(message).__name__.removesuffix("Request"))
        if fault is Fault.LOST_BEFORE:
            self._striking.kill(self._port)
        sent = super().send(message, version, highest=highest)
        if fault is Fault.LOST_AFTER:
            self.receive()
            self._striking.kill(self._port)
            self.close()
            raise ConnectionLost("its node is dead")
        return sent


@pytest.fixture(params=list(KINDS))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(request.param, tmp_path / "nodes", settings=SETTINGS[request.param]) as found:
        create_safe_topic(found, TOPIC)
        yield found


def test_the_node_of_a_request_dies(cluster: Cluster) -> None:
    patience = {"kafka.delivery.timeout.ms": "120000", "kafka.request.timeout.ms": "10000"}
    ran = Query(cluster.bootstrap_servers, TOPIC, BATCHES, random_split(1), "query", **patience)
    striking = Striking(cluster)
    ran.begin(striking.connect)
    for number, (name, fault) in enumerate(STRIKES):
        striking.arm(name, fault)
        ran.run_batch(number, striking.connect)
        striking.heal()
    found = committed(cluster.bootstrap_servers, TOPIC)
    assert found == Counter(value for batch in BATCHES for value in batch)
