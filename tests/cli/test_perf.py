"""`barnabas perf` against a broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.perf import perf
from barnabas.cli.session import Session
from barnabas.client.admin import LATEST, Admin, TopicPartition, results
from barnabas.embedded.broker import Broker
from tests.cli.made_up_cluster import MadeUpAdmin

pytestmark = pytest.mark.slow


def run(broker: Broker, *arguments: str) -> Result:
    return CliRunner().invoke(perf, [*arguments, "-b", broker.bootstrap_servers])


def data(broker: Broker, *arguments: str) -> Any:
    result = run(broker, *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("word", ["consume", "latency"])
def test_a_topic_with_a_partition_that_is_no_number_is_a_fault_of_usage(word: str) -> None:
    admin = MadeUpAdmin()
    with mock.patch.object(Session, "admin", return_value=admin):
        found = CliRunner().invoke(perf, [word, "orders:x"])
    assert found.exit_code == 2
    assert "Error: 'orders:x' is not TOPIC or TOPIC:0,1" in found.stderr


def test_a_reader_finds_what_a_producer_sent(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=3)
    sent = data(barnabas, "produce", "load", "-n", "2000", "--record-size", "1048", "-z", "lz4")
    assert sent["records_sent"] == 2000
    assert sent["mb_per_sec"] == pytest.approx(sent["records_per_sec"] * 1048 / (1 << 20), rel=0.02)
    assert sent["p50_ms"] <= sent["p95_ms"] <= sent["p99_ms"] <= sent["p999_ms"] <= sent["max_latency_ms"]
    read = data(barnabas, "consume", "load")
    assert (read["data_consumed_in_nmsg"], round(read["data_consumed_in_mb"], 2)) == (2000, 2.0)
    assert data(barnabas, "consume", "load", "-n", "7")["data_consumed_in_nmsg"] == 7


def test_latency_end_to_end(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=2)
    found = data(barnabas, "latency", "load", "-n", "20")
    assert found["records"] == 20
    assert 0 < found["p50_ms"] <= found["p999_ms"] == found["max_latency_ms"]


def test_tables_have_the_names_of_kafkas_tools(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    sent = run(barnabas, "produce", "load", "-n", "10").output
    assert [line.split()[0] for line in sent.splitlines()] == [
        "RECORDS-SENT", "RECORDS/SEC", "MB/SEC", "AVG-LATENCY-MS", "MAX-LATENCY-MS", "P50-MS", "P95-MS", "P99-MS", "P999-MS",
    ]  # fmt: skip
    assert run(barnabas, "consume", "load").output.startswith("DATA-CONSUMED-IN-MB")


def test_a_load_leaves_no_group(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    data(barnabas, "produce", "load", "-n", "10")
    data(barnabas, "consume", "load")
    data(barnabas, "latency", "load", "-n", "1")
    with Admin(barnabas.bootstrap_servers) as admin:
        assert admin.list_groups() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("produce", "lod"), "error: topic lod does not exist; did you mean load?"),
        (("consume", "load"), "error: topic load has no record to read (`barnabas perf produce load` sends some)\n"),
        (("latency", "lod"), "error: topic lod does not exist; did you mean load?"),
        (("produce", "load", "-X", "linger.mss=1"), "linger.mss is not a setting that librdkafka knows"),
    ],
)
def test_errors_say_what_to_do(barnabas: Broker, arguments: tuple[str, ...], message: str) -> None:
    barnabas.create_topic("load", partitions=1)
    result = run(barnabas, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_ctrl_c_ends_a_load_with_its_figures(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    command = [sys.executable, "-m", "barnabas.main", "perf", "produce", "load", "-n", "1000000000", "-o", "json"]
    with subprocess.Popen([*command, "-b", barnabas.bootstrap_servers], stdout=subprocess.PIPE) as process:
        while not log_end(barnabas):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    # Ctrl-C may fall into the callback that counts an acknowledgement; then this one record is not counted.
    assert log_end(barnabas) - json.loads(output)["records_sent"] in (0, 1)


def log_end(broker: Broker) -> int:
    where = TopicPartition("load", 0)
    with Admin(broker.bootstrap_servers) as admin:
        return results(admin.list_offsets({where: LATEST}))[where].offset
