"""`barnabas perf` and `plan --measure` load Apache Kafka as they load barnabas; another client counts what they wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.test_commands import run
from tests.conform.brokers import BarnabasProcess, KafkaProcess
from tests.conform.card.results import OURS, THEIRS

pytestmark = pytest.mark.conform


@pytest.mark.parametrize("name", [OURS, THEIRS])
def test_a_load_on_both_brokers(both_brokers: dict[str, BarnabasProcess | KafkaProcess], name: str) -> None:
    if name not in both_brokers:
        pytest.skip("only the other broker runs")
    bootstrap = both_brokers[name].bootstrap_servers
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("perf-load", 2, 1)])["perf-load"].result(30)

    def data(*arguments: str) -> Any:
        result = run(*arguments, "-b", bootstrap, "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    assert data("perf", "produce", "perf-load", "-n", "3000")["records_sent"] == 3000
    assert data("perf", "consume", "perf-load")["data_consumed_in_nmsg"] == 3000
    assert data("perf", "latency", "perf-load", "-n", "10")["records"] == 10
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "perf-count"})
    ends = [reader.get_watermark_offsets(TopicPartition("perf-load", each), 30)[1] for each in (0, 1)]
    reader.close()
    # The latency's first record of each partition is not counted.
    assert sum(ends) == 3000 + 10 + 2
    found = data("plan", "--topic", "perf-load", "--measure", "--measure-time", "0.5")
    assert found["measured"]["partition_rate"] > 0
    # The short records of the latency weigh little.
    assert found["topic"]["record_size"] == pytest.approx(1010, rel=0.05)
    assert [each for each in admin.list_topics(timeout=30).topics if each.startswith("barnabas-plan-")] == []
    admin.delete_topics(["perf-load"])["perf-load"].result(30)
