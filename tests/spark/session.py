"""What Spark tests share: one session for all of them, and the brokers they run on.

Starting Spark costs seconds, so there is one session per process, and tests that use it carry the marks of `SPARK`:
they run in the same process. Tests run on barnabas; those of `servers` on Apache Kafka as well, in `make conform`.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHOP = Path(__file__).parents[2] / "pipelines" / "shop"
SPARK = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

SPARK_PROGRAM = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-programs"),
    pytest.mark.timeout(1200),
]
"""For tests that start Spark in processes of their own, and need no session: a second worker runs them, one at a time."""

SHORT_LIVED = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For drivers that live for seconds: Java's second compiler and its parallel collector took 40 % of a test's processor time."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session; small and quiet."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark's workers import what a test's query names, such as the shop's code.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SHOP), os.environ.get("PYTHONPATH"))))
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["barnabas", pytest.param("kafka", marks=pytest.mark.conform)])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker: barnabas, and in `make conform` Apache Kafka."""
    folder = tmp_path_factory.mktemp("broker")
    with running_broker(request.param, folder) as broker:
        yield broker.bootstrap_servers


def running_broker(kind: str, folder: Path) -> Any:
    """Return a broker, as a context manager: "barnabas" or "kafka"."""
    if kind == "barnabas":
        import barnabas

        return barnabas.Broker(data_dir=folder)
    import apache_kafka

    if not apache_kafka.home().exists():
        pytest.skip("Apache Kafka is not here: python tools/apache_kafka.py install")
    return apache_kafka.ApacheKafka(folder)


class Topics:
    """Creates topics and fills them, through an ordinary client."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka.admin import AdminClient

        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        from confluent_kafka.admin import NewTopic

        name = name or f"t-{uuid.uuid4().hex[:12]}"
        # Records of tests may be years old; a broker with Kafka's defaults would delete them at its next look.
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in config.items()}
        for created in self.admin.create_topics([NewTopic(name, partitions, config=settings)]).values():
            created.result(240)
        return name

    def delete(self, name: str) -> None:
        for deleted in self.admin.delete_topics([name]).values():
            deleted.result(240)

    def grow(self, name: str, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        for grown in self.admin.create_partitions([NewPartitions(name, partitions)]).values():
            grown.result(240)

    def delete_before(self, name: str, partition: int, offset: int) -> None:
        from confluent_kafka import TopicPartition

        for deleted in self.admin.delete_records([TopicPartition(name, partition, offset)]).values():
            deleted.result(240)

    def produce(self, name: str, records: list[dict[str, Any]], **config: Any) -> None:
        from confluent_kafka import Producer

        failures: list[Any] = []
        settings = {key.replace("_", "."): value for key, value in config.items()}
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **settings})

        def note(error: Any, _: Any) -> None:
            if error:
                failures.append(error)

        for record in records:
            producer.produce(name, on_delivery=note, **record)
        assert producer.flush(240) == 0
        assert not failures, failures

    def values(self, name: str, values: list[str], partition: int = 0) -> None:
        self.produce(name, [{"value": value, "partition": partition} for value in values])

    def committed(self, group: str, name: str) -> dict[int, int]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        (answer,) = [each.result(240) for each in asked.values()]
        return {p.partition: p.offset for p in answer.topic_partitions if p.topic == name}


@pytest.fixture(scope="session")
def topics(servers: str) -> Topics:
    """Topics on the broker under test."""
    return Topics(servers)
