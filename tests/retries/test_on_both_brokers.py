"""From a failure to a redrive, on barnabas and on Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli.dlq import dlq
from barnabas.client.admin import Admin, NewTopic
from barnabas.retries import RetryingConsumer
from tests.conform.brokers import await_leaders, broker
from tests.retries.bank import POLICY, charge
from tests.retries.records import committed, values, write


@pytest.mark.slow
@pytest.mark.conform
@pytest.mark.parametrize("kind", ["barnabas", "apache-kafka"])
def test_from_a_failure_to_a_redrive(kind: str, tmp_path: Path) -> None:
    replicas = dict.fromkeys(("transaction.state.log.replication.factor", "offsets.topic.replication.factor"), "1")
    settings = {**replicas, "transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0"}
    with broker(kind, tmp_path, settings) as running:
        bootstrap = running.bootstrap_servers
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 2, 1), NewTopic("bills", 1, 1)])
        await_leaders(bootstrap, {"orders": 2, "bills": 1})
        write(bootstrap, "orders", [("a", "0:0"), ("a", "1:1"), ("a", "2:3"), ("b", "3:0"), ("a", "4:0")], partition=1)

        def work() -> None:
            with RetryingConsumer(
                {"bootstrap.servers": bootstrap, "group.id": "g"}, ["orders"], POLICY, hold_keys=True
            ) as consumer:
                seen = 0
                for _ in range(600):
                    seen += consumer.step(charge, 0.1)
                    if seen and len(committed(bootstrap, "bills")) + len(committed(bootstrap, "orders.dlq", 2)) >= 5:
                        return

        work()
        bills = values(committed(bootstrap, "bills"))
        assert [each for each in bills if not each.startswith("3")] == ["0:0", "1:1", "4:0"]
        assert values(committed(bootstrap, "orders.dlq", 2)) == ["2:3"]

        def run(*arguments: str) -> list[dict[str, object]]:
            result = CliRunner().invoke(dlq, [*arguments, "-b", bootstrap, "-o", "json"])
            assert result.exit_code == 0, result.output
            found: list[dict[str, object]] = json.loads(result.stdout)
            return found

        assert [each["errors"] for each in run("list")] == [{"ConnectionError": 1}]
        assert [(each["to"], each["records"]) for each in run("redrive", "orders.dlq")] == [("orders", 1)]
        assert run("redrive", "orders.dlq") == []
        assert values(committed(bootstrap, "orders", 2))[-1] == "2:3"
        assert [each["status"] for each in run("purge", "orders.dlq", "--redriven")] == ["deleted"]
