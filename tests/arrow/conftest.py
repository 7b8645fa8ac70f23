"""One broker for the modules of this folder: barnabas, and in `make conform` Apache Kafka too."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

import barnabas
from barnabas.client.admin import Admin, NewTopic, results
from tests.conform.brokers import await_leaders

# Of topic `sales`: 300 records, two of three without a key, in three partitions.
SALES = [(number % 3, None if number % 3 else b"k%d" % number, b'{"n": %d}' % number) for number in range(300)]


FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z; each record is a millisecond later than the one before


@pytest.fixture(scope="module", params=["barnabas", pytest.param("kafka", marks=pytest.mark.conform)])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker with the topic `sales`."""
    if request.param == "barnabas":
        with barnabas.Broker() as running:
            yield _filled(running.bootstrap_servers)
        return
    import apache_kafka

    if not apache_kafka.home().exists():
        pytest.skip("Apache Kafka is not here: python tools/apache_kafka.py install")
    with apache_kafka.ApacheKafka(tmp_path_factory.mktemp("broker")) as running:
        yield _filled(running.bootstrap_servers)


def _filled(servers: str) -> str:
    create(servers, "sales", 3, retention_ms="-1")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number, (partition, key, value) in enumerate(SALES):
        headers: dict[str, str | bytes | None] | None = {"shop": b"1"} if number % 2 else None
        producer.produce("sales", value, key, partition, timestamp=FIRST_MS + number, headers=headers)
    producer.flush()
    return servers


def create(servers: str, topic: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic, and wait until its leaders answer."""
    with Admin(servers) as admin:
        found = admin.create_topics(
            [NewTopic(topic, partitions, 1, configs={k.replace("_", "."): v for k, v in configs.items()})]
        )
        results(found)
    await_leaders(servers, {topic: partitions})
