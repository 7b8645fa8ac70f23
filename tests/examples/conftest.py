from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conform.brokers import KafkaProcess
from tests.examples.stage import Stage


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    kafka = KafkaProcess(tmp_path_factory.mktemp("kafka"))
    with kafka:
        yield kafka


@pytest.fixture(params=["barnabas_broker", pytest.param("apache_kafka", marks=pytest.mark.conform)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(request.getfixturevalue(request.param).bootstrap_servers, tmp_path)
