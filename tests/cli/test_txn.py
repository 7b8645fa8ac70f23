"""`barnabas txn` against a broker with transactions that are open, decided, fenced and hanging."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from barnabas.cli.txn import duration_text, txn
from barnabas.client.admin import Admin, NewTopic
from barnabas.protocol.messages import InitProducerIdRequest, ProduceRequest
from barnabas.records.builder import build_batch
from tests.conform.brokers import await_leaders, broker

PATIENCE_SECONDS = 100
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # A batch in a transaction that no coordinator knows can only be written while nobody verifies.
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(params=["barnabas", pytest.param("apache-kafka", marks=pytest.mark.conform)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with broker(request.param, tmp_path, SETTINGS) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 2, 1)])
        await_leaders(running.bootstrap_servers, {"t": 2})
        yield running.bootstrap_servers


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(txn, [*arguments, "-b", address])


def data(address: str, *arguments: str) -> Any:
    result = run(address, *arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def open_transaction(address: str, transactional_id: str, partition: int = 0) -> Producer:
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": transactional_id, "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", b"v", partition=partition)
    producer.flush()
    return producer


def hang(address: str) -> int:
    """Leave a transaction in t-1 that no coordinator knows; returns its producer id."""
    with Admin(address) as admin:
        connection = admin.cluster.connection(admin.cluster.leader("t", 1))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            # Apache Kafka asks its controller for ids when the first one is wanted, and says "later" meanwhile.
            given = connection.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
            if not given.error_code:
                break
            assert time.monotonic() < deadline, given
            time.sleep(0.02)
        producer_id = given.producer_id
        batch = build_batch(
            [(round(time.time() * 1000), b"k", b"lost", [])],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        partition = ProduceRequest.PartitionProduceData(index=1, records=bytes(batch))
        request = ProduceRequest(
            transactional_id="nobody",
            acks=-1,
            timeout_ms=1000,
            topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])],
        )
        answer = connection.request(request, version=9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        return int(producer_id)


@pytest.mark.slow
def test_an_open_transaction_is_found_described_and_aborted(address: str) -> None:
    producer = open_transaction(address, "orders")
    other = open_transaction(address, "payments", partition=1)
    other.commit_transaction()
    assert [each["transactional_id"] for each in data(address, "list")] == ["orders", "payments"]
    (listed,) = data(address, "list", "--state", "Ongoing")
    assert listed["transactional_id"] == "orders"
    assert data(address, "list", "--running-longer-than", "1d", "--state", "Ongoing") == []
    assert data(address, "list", "--producer-id", str(listed["producer_id"])) == [listed]
    (described,) = data(address, "describe", "orders")
    assert (described["state"], described["partitions"], described["timeout"]) == ("Ongoing", ["t-0"], "10m00s")

    (held,) = data(address, "doctor", "t")
    assert (held["topic"], held["partition"], held["held_back"]) == ("t", 0, 1)
    assert (held["transactional_id"], held["state"], held["stable_offset"]) == ("orders", "Ongoing", 0)
    assert held["advice"].endswith("barnabas txn abort orders")
    assert data(address, "doctor", "--longer-than", "1h") == []

    assert [each["status"] for each in data(address, "abort", "orders", "--dry-run")] == ["would be aborted"]
    assert len(data(address, "doctor")) == 1
    assert [each["status"] for each in data(address, "abort", "orders", "payments")] == ["aborted", "fenced"]
    assert run(address, "doctor").stdout == "no transaction holds readers back\n"
    with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
        producer.commit_transaction()


@pytest.mark.slow
def test_a_hanging_transaction_is_named_and_ended(address: str) -> None:
    producer_id = hang(address)
    (held,) = data(address, "doctor")
    assert (held["topic"], held["partition"], held["state"]) == ("t", 1, "hanging")
    assert (held["producer"], held["transactional_id"]) == (f"{producer_id}/0", None)
    assert held["advice"] == "barnabas txn abort --topic t:1 --start-offset 0"
    arguments = held["advice"].split()[2:]
    assert [each["status"] for each in data(address, *arguments, "--dry-run")] == ["would be aborted"]
    assert [each["status"] for each in data(address, *arguments)] == ["aborted"]
    assert data(address, "doctor") == []
    again = run(address, *arguments)
    assert again.exit_code == 1
    assert "no transaction begins at offset 0 of t-1 (the partition has no open transaction)" in again.stderr


@pytest.mark.slow
def test_what_does_not_exist(address: str) -> None:
    for arguments in (("describe", "nobody"), ("abort", "nobody")):
        result = run(address, *arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("error: transactional id nobody does not exist")
    assert "error: topic nowhere does not exist" in run(address, "doctor", "nowhere").stderr


@pytest.mark.parametrize(
    "arguments",
    [("abort",), ("abort", "a", "--topic", "t:0", "--start-offset", "1"), ("abort", "--topic", "t:0"), ("describe",)],
)
def test_what_must_be_said(arguments: tuple[str, ...]) -> None:
    assert run("127.0.0.1:1", *arguments).exit_code == 2


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(-5, "0ms"), (999, "999ms"), (1000, "1s"), (61_000, "1m01s"), (7_500_000, "2h05m"), (90_000_000, "1d01h")],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text
