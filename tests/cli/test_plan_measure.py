"""`barnabas plan --measure`: real figures, and no topic left behind, however the command ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from barnabas.client.admin import Admin
from barnabas.embedded.broker import Broker
from tests.cli.test_commands import run

pytestmark = pytest.mark.slow


def topics(broker: Broker) -> list[str]:
    with Admin(broker.bootstrap_servers) as admin:
        return [each.name for each in admin.list_topics()]


def test_what_is_measured_replaces_the_assumptions(barnabas: Broker) -> None:
    arguments = (
        "plan",
        "--rate",
        "50MB/s",
        "--measure",
        "--measure-time",
        "0.2",
        "-b",
        barnabas.bootstrap_servers,
        "-o",
        "json",
    )
    data = json.loads(run(*arguments).stdout)
    measured = data["measured"]
    rules = {each["name"]: each for each in data["rules"]["partitions"]}
    assert (measured["replicas"], measured["records"] > 0) == (1, True)
    assert rules["target throughput"]["low"] == -(-50e6 // measured["partition_rate"])
    assert rules["consumers' speed"]["low"] == -(-50_000 // measured["consumer_rate"])
    assert topics(barnabas) == []
    given = json.loads(run(*arguments, "--partition-rate", "5MB/s").stdout)
    assert {each["name"]: each for each in given["rules"]["partitions"]}["target throughput"]["low"] == 10


def test_an_error_leaves_no_topic(barnabas: Broker) -> None:
    result = run("plan", "--rate", "50MB/s", "--measure", "--record-size", "2MB", "-b", barnabas.bootstrap_servers)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: topic barnabas-plan-")
    assert topics(barnabas) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_leaves_no_topic_but_for_a_kill(barnabas: Broker, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "barnabas.main", "plan", "--rate", "1MB/s", "--measure", "--measure-time", "600"]
    with subprocess.Popen([*command, "-b", barnabas.bootstrap_servers], stderr=subprocess.DEVNULL) as process:
        while not topics(barnabas):
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == code
    assert len(topics(barnabas)) == (number == signal.SIGKILL)


def test_a_topic_that_a_kill_left_is_deleted_an_hour_later(barnabas: Broker) -> None:
    young = f"barnabas-plan-{int(time.time()) - 600}-00c0ffee"
    for name in ("barnabas-plan-1700000000-00c0ffee", young, "barnabas-plan-1700000000-orders"):
        barnabas.create_topic(name, partitions=1)
    run("plan", "--rate", "1MB/s", "--measure", "--measure-time", "0.1", "-b", barnabas.bootstrap_servers)
    assert topics(barnabas) == sorted(["barnabas-plan-1700000000-orders", young])
