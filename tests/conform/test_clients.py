"""One scenario, four client libraries, two brokers: what the clients see must be the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import apache_kafka
import pytest

from tests.conform.brokers import broker
from tests.conform.scenario import Scenario

DRIVERS = Path(__file__).parent / "drivers"
PYTHON_DRIVERS = {
    "confluent-kafka": "confluent.py",
    "kafka-python": "kafka_python.py",
    "aiokafka": "aiokafka_driver.py",
}
CLIENTS = (*PYTHON_DRIVERS, "java")

pytestmark = [pytest.mark.conform, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None:
        pytest.skip("no javac: install a JDK to run the Java clients' scenario")
    target = tmp_path_factory.mktemp("java")
    libraries = apache_kafka.classpath()
    subprocess.run(["javac", "-cp", libraries, "-d", str(target), str(DRIVERS / "JavaDriver.java")], check=True)
    return target


def command(client: str, request: pytest.FixtureRequest, bootstrap: str) -> list[str]:
    if client == "java":
        classes = request.getfixturevalue("java_classes")
        return ["java", "-Xmx256m", "-cp", f"{classes}:{apache_kafka.classpath()}", "JavaDriver", bootstrap]
    return [sys.executable, str(DRIVERS / PYTHON_DRIVERS[client]), bootstrap]


def run(client: str, name: str, folder: Path, request: pytest.FixtureRequest) -> list[Any]:
    with broker(name, folder / name) as under_test:
        return Scenario(under_test, partial(command, client, request)).run()


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_see_the_same_on_both_brokers(client: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ours = run(client, "barnabas", tmp_path, request)
    theirs = run(client, "apache-kafka", tmp_path, request)
    assert ours == theirs
