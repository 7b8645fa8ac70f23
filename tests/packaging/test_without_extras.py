"""An environment without confluent-kafka, which the extra `cli` brings: the broker, the fixture and administration work.

Processes of their own, in which the package cannot be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from barnabas.words.requirements import install_command
from tests.hidden_packages import hide

pytestmark = pytest.mark.slow

_TEST = """
from barnabas.client.admin import Admin, NewTopic


def test_the_fixture(barnabas):
    with Admin(barnabas.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 1)])
        assert [each.name for each in admin.list_topics()] == ["orders"]


def test_the_fixture_is_empty_again(barnabas):
    with Admin(barnabas.bootstrap_servers) as admin:
        assert admin.list_topics() == []
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a process that cannot import confluent_kafka."""
    hide(tmp_path, "confluent_kafka")
    return os.environ | {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}


def run(environment: dict[str, str], *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=environment["HOME"], env=environment, input=given, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_confluent_kafka_is_absent_there(environment: dict[str, str]) -> None:
    assert "No module named 'confluent_kafka'" in run(environment, "-c", "import confluent_kafka").stderr


def test_the_broker_and_the_commands_that_administer_it(environment: dict[str, str], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "barnabas", "start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as broker:
        try:
            assert broker.stdout is not None
            address = next(line for line in broker.stdout if "ready on" in line).split()[-1]
            environment["BARNABAS_BOOTSTRAP_SERVERS"] = address
            assert run(environment, "-m", "barnabas", "topic", "create", "orders", "-p", "2").returncode == 0
            listed = run(environment, "-m", "barnabas", "topic", "list")
            assert listed.stdout.splitlines()[1].split() == ["orders", "2", "1"]
            for command in ("group list", "txn list", "cut list", "cluster status", "config describe topic orders"):
                done = run(environment, "-m", "barnabas", *command.split())
                assert done.returncode == 0, done.stderr
        finally:
            broker.terminate()
    assert broker.returncode == 0


def test_the_fixture(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(_TEST)
    done = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py")
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "produce orders",
        "consume orders -e",
        "verify --time 1",
        "dlq list",
        "dlq show orders.dlq",
        "dlq redrive orders.dlq",
        "replay orders --from start --to copy",
        "topic export orders folder",
    ],
)
def test_a_command_that_needs_it_says_what_to_install(environment: dict[str, str], command: str) -> None:
    with barnabas.Broker() as broker:
        broker.create_topic("orders")
        environment |= {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap_servers, "COLUMNS": "500"}
        done = run(environment, "-m", "barnabas", *command.split(), given="a record\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: this command needs confluent-kafka ({install_command('cli')})\n"


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("from barnabas.retries import RetryingConsumer", "barnabas.retries.RetryingConsumer"),
        (
            "from barnabas.spark import serve_metrics\n"
            "serve_metrics(None, 0, bootstrap_servers='h:1', losses_topic='losses')",
            "serve_metrics with a losses topic",
        ),
    ],
    ids=["retries", "serve_metrics"],
)
def test_a_module_that_needs_it_says_what_to_install(environment: dict[str, str], code: str, what: str) -> None:
    done = run(environment, "-c", code)
    assert done.stderr.splitlines()[-1] == (
        f"barnabas.words.requirements.NotInstalled: {what} needs confluent-kafka: {install_command('cli')}"
    )
