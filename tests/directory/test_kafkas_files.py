"""One server.properties, one directory, two brokers: formatted here, used by Apache Kafka, by barnabas, and by Apache Kafka again.

And `barnabas storage format` beside Apache Kafka's `kafka-storage`, for nodes of every role.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka, free_port, run_tool
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.protocol.primitives import uuid_from_str
from barnabas.records.control import parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.process.process import ENVIRONMENT, command, run

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]

PATIENCE_SECONDS = 240


class OfOneFile(ApacheKafka):
    """Apache Kafka with a properties file that exists."""

    def format(self) -> None:
        raise AssertionError("the directory is formatted already")


@contextmanager
def barnabas(file: Path) -> Iterator[None]:
    with subprocess.Popen(
        command("start", str(file), "--insecure"), stdout=subprocess.PIPE, env=ENVIRONMENT, text=True
    ) as node:
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
    text = (Path(__file__).parents[1] / "config" / "properties" / "kafka-3-kraft.properties").read_text()
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


CLUSTER = "4L6g3nShT-eMCtK--X86sw"
PAIR = "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@localhost:9094:MvDxzVmcRsaTz33bUuRU6A"
PROPERTIES = Path(__file__).parents[1] / "config" / "properties"
SERVER, BROKER = (PROPERTIES / "kafka-4.properties").read_text(), (PROPERTIES / "kafka-4-broker.properties").read_text()
CONTROLLER = (PROPERTIES / "kafka-4-controller.properties").read_text()
STATIC = SERVER.replace("bootstrap.servers=localhost:9093", "voters=1@localhost:9093,2@localhost:9094")
USERS = (
    "--add-scram", 'SCRAM-SHA-256=[name=alice,iterations=5000,salt="N3E=",password="alice-secret"]',
    "-S", "SCRAM-SHA-512=[name=bob,salt=N3E=,saltedpassword=YCE=]",
)  # fmt: skip
JOINING = SERVER.replace("servers=localhost:9093", "servers=localhost:9093,localhost:9094")


def directory_id(folder: Path) -> str:
    lines = (folder / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("directory.id="))


def contents(folder: Path) -> dict[str, object]:
    """Return what the files of a formatted directory say; ids that were drawn, and times, are replaced."""
    found: dict[str, object] = {}
    drawn = directory_id(folder)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(file.relative_to(folder))
        if file.suffix != ".checkpoint":
            lines = [line.replace(drawn, "DRAWN") for line in file.read_text().splitlines() if line[0] != "#"]
            found[name] = sorted(lines)
            continue
        data = memoryview(file.read_bytes())
        said: list[object] = []
        for position, header in iter_batches(data):
            said.append((header.base_offset, header.partition_leader_epoch, header.attributes))
            for record in iter_records(data[position : position + header.size]):
                if header.is_control:
                    value = parse_control_record(record).value
                    text = repr(value).replace(repr(uuid_from_str(drawn)), "DRAWN")
                    said.append(re.sub(r"last_contained_log_timestamp=\d+", "TIME", text))
                else:
                    said.append(record.value)
        found[name] = said
    return found


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (STATIC, []),
        (SERVER, ["--standalone", *USERS]),
        (JOINING, ["--initial-controllers", PAIR]),
        (JOINING, ["--no-initial-controllers"]),
        (BROKER, []),
        (CONTROLLER, ["--standalone"]),
    ],
)
def test_both_programs_write_the_same_directory(tmp_path: Path, text: str, options: list[str]) -> None:
    written = []
    for name in ("kafka", "barnabas"):
        file = tmp_path / f"{name}.properties"
        file.write_text(re.sub(r"log\.dirs=.*", f"log.dirs={tmp_path}/{name}", text))
        words = ["format", "-t", CLUSTER, "-r", "4.3", "-c", str(file), *options]
        result = run("storage", *words) if name == "barnabas" else run_tool("storage", *words)
        assert result.returncode == 0, result.stderr
        written.append(contents(tmp_path / name))
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (STATIC, ["--standalone"]),
        (JOINING, []),
        (BROKER, ["--standalone"]),
        (BROKER.replace("node.id=2", ""), []),
        (CONTROLLER.replace("bootstrap.servers=", "voters=7@"), []),
    ],
)
def test_both_programs_reject_the_same(tmp_path: Path, text: str, options: list[str]) -> None:
    file = tmp_path / "server.properties"
    file.write_text(re.sub(r"log\.dirs=.*", f"log.dirs={tmp_path}/data", text))
    words = ["format", "-t", CLUSTER, "-r", "4.3", "-c", str(file), *options]
    assert run_tool("storage", *words).returncode == 1
    assert run("storage", *words).returncode == 1
    assert not (tmp_path / "data").exists()
