"""A broker without console and registry imports nothing of them, nor what they need: it starts as fast as before they were there."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.process import Node, run

NOT_A_BROKERS = (
    "barnabas.cli", "barnabas.console", "barnabas.registry",
    "starlette", "uvicorn", "jinja2", "python_multipart", "multipart", "textual", "rich.console", "playwright",
    "common_expression_language", "cel", "msgpack", "fastavro", "google.protobuf", "grpc_tools", "jsonschema", "confluent_kafka",
)  # fmt: skip


def not_a_brokers(imported: list[str]) -> list[str]:
    return [name for name in imported if any(f"{name}.".startswith(f"{each}.") for each in NOT_A_BROKERS)]


@pytest.mark.slow
def test_a_started_broker_that_served_a_client(tmp_path: Path) -> None:
    """Python writes the name of each module that the broker's processes import, those that it starts later too."""
    with Node(tmp_path / "data", launcher=("env", "PYTHONPROFILEIMPORTTIME=1")) as node:
        assert run("topic", "create", "orders", "-b", node.bootstrap_servers).returncode == 0
        assert node.signal(signal.SIGTERM) == 0
        imported = re.findall(r"^import time:.*\| +([\w.]+)$", node.log_path.read_text(), re.MULTILINE)
    assert "barnabas.node.node" in imported
    assert not_a_brokers(imported) == []


@pytest.mark.slow
def test_a_broker_in_a_program() -> None:
    program = (
        "import sys, barnabas\n"
        "with barnabas.Broker() as broker:\n"
        "    broker.create_topic('orders')\n"
        "    broker.reset()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert "barnabas.node.node" in done.stdout.split()
    assert not_a_brokers(done.stdout.split()) == []
