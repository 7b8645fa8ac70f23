"""`barnabas registry`: what it refuses, and its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.topics import NewTopic, create_topics
from barnabas.main import command_group
from barnabas.words.requirements import install_command
from tests.hidden_packages import hide
from tests.registry.asking import Asking


def run(*words: str) -> Result:
    return CliRunner().invoke(command_group(), ["registry", *words], prog_name="barnabas")


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "192.0.2.1:8081", "registry.example:8081", "[::]:0"])
def test_beyond_loopback_it_needs_a_token(listen: str) -> None:
    done = run("--listen", listen)
    assert done.exit_code == 1
    assert "may be reached from other machines" in done.stderr
    assert "--token-file FILE" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "here"), "--listen: 'here' is not HOST:PORT"),
        (("--token-file", "absent"), "absent: no such file"),
        (("-b", "127.0.0.1:1", "--timeout-ms", "500"), "cannot reach 127.0.0.1:1"),
    ],
)
def test_a_wrong_command_line(words: tuple[str, ...], message: str) -> None:
    done = run(*words)
    assert done.exit_code in (1, 2)
    assert message in done.stderr


def test_a_topic_that_it_cannot_use() -> None:
    with barnabas.Broker() as broker, Cluster(broker.bootstrap_servers) as cluster:
        create_topics(cluster, [NewTopic("_schemas", 2, 1)])
        done = run("-b", broker.bootstrap_servers, "--listen", "127.0.0.1:0")
        assert (done.exit_code, done.stderr) == (
            1,
            "error: topic _schemas has 2 partitions, and a registry needs one\n",
        )


def test_the_process() -> None:
    with barnabas.Broker() as broker:
        command = [
            sys.executable,
            "-m",
            "barnabas",
            "registry",
            "-b",
            broker.bootstrap_servers,
            "--listen",
            "127.0.0.1:0",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(f"schema registry of {broker.bootstrap_servers} on http://127.0.0.1:")
            assert Asking(line.split()[-1]).register("s", '"int"') == 1
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            assert process.stdout.read() == ""


def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    hide(tmp_path, "starlette", "uvicorn", "jsonschema")
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "registry", "--listen", "127.0.0.1:0"],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "500"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: barnabas registry needs uvicorn ({install_command('registry')})\n"
