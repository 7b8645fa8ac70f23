"""The whole command line against a broker, word for word; and the same words against Apache Kafka."""

from pathlib import Path

import pytest

from tests.cli.transcript import play
from tests.conform.brokers import broker

TRANSCRIPT = Path(__file__).with_name("everything.txt")
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["barnabas", pytest.param("apache-kafka", marks=pytest.mark.conform)])
def test_everything(name: str, tmp_path: Path) -> None:
    with broker(name, tmp_path, SETTINGS) as running:
        expected, happened = play(TRANSCRIPT, running.bootstrap_servers, attempts=1 if name == "barnabas" else 50)
    assert happened == expected
