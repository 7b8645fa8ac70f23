"""One server.properties, one directory, two brokers: formatted here, used by Apache Kafka, by barnabas, and by Apache Kafka again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka, free_port
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conform.brokers import await_leaders
from tests.server.process import ENVIRONMENT, command, run

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]

PATIENCE_SECONDS = 240


class OfOneFile(ApacheKafka):
    """Apache Kafka with a properties file that exists."""

    def format(self) -> None:
        raise AssertionError("the directory is formatted already")


@contextmanager
def barnabas(file: Path) -> Iterator[None]:
    with subprocess.Popen(command("start", str(file)), stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline().startswith("barnabas ready on ")
        yield
        node.terminate()
    assert node.returncode == 0


def produce_and_read(address: str, value: str, expected: list[str]) -> None:
    """Produce a record to a topic that the first one creates, and read all."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    producer.produce("orders", value)
    assert producer.flush(PATIENCE_SECONDS) == 0
    await_leaders(address, {"orders": 1})
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found = []
    while len(found) < len(expected):
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        assert message.error() is None
        found.append(message.value().decode())
    consumer.close()
    assert found == expected


@pytest.mark.parametrize("name", ["kafka-4.properties", "kafka-3-kraft.properties"])
def test_a_file_and_a_directory_serve_both(tmp_path: Path, name: str) -> None:
    kafka = OfOneFile(tmp_path, free_port())
    text = (Path(__file__).parent / "properties" / name).read_text()
    text = text.replace("/tmp/kraft-combined-logs", str(kafka.data_dir))
    file = tmp_path / "server.properties"
    file.write_text(text.replace(":9092", f":{kafka.port}").replace(":9093", f":{kafka.controller_port}"))
    formatted = run("storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-r", "4.3", "-c", str(file))
    assert formatted.returncode == 0, formatted.stderr
    with kafka:
        produce_and_read(kafka.bootstrap_servers, "one", ["one"])
    with barnabas(file):
        produce_and_read(kafka.bootstrap_servers, "two", ["one", "two"])
    with kafka:
        produce_and_read(kafka.bootstrap_servers, "three", ["one", "two", "three"])
