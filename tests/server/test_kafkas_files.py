"""One server.properties, one directory, two brokers: formatted here, used by Apache Kafka, by barnabas, and by Apache Kafka again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka, free_port
from confluent_kafka import Consumer, Producer, TopicPartition

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


def one_day(address: str, value: str, so_far: list[str]) -> None:
    """Commit a record and abort another, to a topic that the first day creates; a group goes on where it stopped the day before."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "till"})
    producer.init_transactions(PATIENCE_SECONDS)
    for written, is_committed in ((f"not {value}", False), (value, True)):
        producer.begin_transaction()
        producer.produce("orders", written)
        assert producer.flush(PATIENCE_SECONDS) == 0
        end = producer.commit_transaction if is_committed else producer.abort_transaction
        end(PATIENCE_SECONDS)
    settings = {"bootstrap.servers": address, "isolation.level": "read_committed", "enable.auto.commit": False}
    group = Consumer({**settings, "group.id": "billing", "auto.offset.reset": "earliest"})
    group.subscribe(["orders"])
    assert read(group, 1) == [value]
    group.commit(asynchronous=False)
    group.close()
    everything = Consumer({**settings, "group.id": "unused"})
    everything.assign([TopicPartition("orders", 0, 0)])
    assert read(everything, len(so_far)) == so_far
    everything.close()


def read(consumer: Consumer, count: int) -> list[str]:
    found = []
    while len(found) < count:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        # The first poll may come before the topic is known.
        if message.error() is None:
            found.append(message.value().decode())
    return found


def test_a_file_and_a_directory_serve_both(tmp_path: Path) -> None:
    """The file names a voter, as Kafka 3 does, and `--release-version` a release that Apache Kafka can read."""
    kafka = OfOneFile(tmp_path, free_port())
    text = (Path(__file__).parent / "properties" / "kafka-3-kraft.properties").read_text()
    text = text.replace("/tmp/kraft-combined-logs", str(kafka.data_dir))
    file = tmp_path / "server.properties"
    file.write_text(text.replace(":9092", f":{kafka.port}").replace(":9093", f":{kafka.controller_port}"))
    formatted = run("storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-r", "4.3", "-c", str(file))
    assert formatted.returncode == 0, formatted.stderr
    with kafka:
        one_day(kafka.bootstrap_servers, "one", ["one"])
    with barnabas(file):
        one_day(kafka.bootstrap_servers, "two", ["one", "two"])
    with kafka:
        one_day(kafka.bootstrap_servers, "three", ["one", "two", "three"])
