"""The commands of `barnabas dlq`, and a topic of dead letters: timeouts at even offsets, missing cards at odd ones."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result
from confluent_kafka import Producer

from barnabas.cli.dlq import dlq
from barnabas.embedded.broker import Broker
from barnabas.retries.headers import FailureHeaders, write_failure


class Commands:
    """The commands, and a topic of dead letters."""

    def __init__(self, broker: Broker) -> None:
        self.bootstrap = broker.bootstrap_servers
        broker.create_topic("orders", partitions=2)
        broker.create_topic("orders.dlq", partitions=1)
        for number in range(4):
            error = ("TimeoutError", "shop.NoCard")[number % 2]
            self.bury(f"order {number}", topic="orders", partition=1, offset=number, error=error, attempts=4)

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(dlq, [*arguments, "-b", self.bootstrap])

    def data(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--output", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def bury(self, value: str, **failure: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        producer.produce("orders.dlq", value, "k", partition=0, headers=list(write_failure(FailureHeaders(**failure))))
        assert producer.flush(30) == 0
