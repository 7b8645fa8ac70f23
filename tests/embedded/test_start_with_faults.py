"""`barnabas start --faults` as a process; the API itself is tested in `test_fault_api`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.config.sources import UsageMistake
from barnabas.embedded.start_with_faults import listen_address
from tests.process.process import ENVIRONMENT, command, run


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9900", ("127.0.0.1", 9900)), ("localhost:0", ("127.0.0.1", 0)), ("[::1]:9900", ("::1", 9900))],
)
def test_an_address_of_this_machine(text: str, address: tuple[str, int]) -> None:
    assert listen_address(text) == address


@pytest.mark.parametrize("text", ["0.0.0.0:9900", "10.0.0.1:9900", "[::]:9900", "example.org:9900"])
def test_no_other_machine_reaches_it(text: str) -> None:
    with pytest.raises(UsageMistake, match=r": other machines could kill the nodes; pass 127\.0\.0\.1:9900$"):
        listen_address(text)


@pytest.mark.parametrize("text", ["9900", ":9900", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x"])
def test_what_is_not_an_address(text: str) -> None:
    with pytest.raises(UsageMistake, match=r": must be HOST:PORT, such as 127\.0\.0\.1:9900 \(port 0: a free one\)$"):
        listen_address(text)


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process when a test fails."""
    try:
        yield
    finally:
        process.kill()


@pytest.mark.slow
def test_a_cluster_with_faults_by_http() -> None:
    with (
        subprocess.Popen(
            command("start", "--nodes", "1", "--port", "0", "--faults", "127.0.0.1:0", "--set", "num.partitions=3"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            text=True,
        ) as process,
        ended(process),
    ):
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        node = re.fullmatch(r"node 1 on (\S+), files in (\S+)/node-1\n", lines[0])
        faults = re.fullmatch(r"faults on (http://127\.0\.0\.1:\d+) \(GET / says what there is\)\n", lines[1])
        assert node is not None
        assert faults is not None
        assert lines[2] == f"barnabas ready on {node[1]}\n"
        with urllib.request.urlopen(f"{faults[1]}/nodes/1") as answer:
            assert json.load(answer) == {"node": 1, "state": "running", "address": node[1]}
        taken = run("start", "--nodes", "1", "--port", "0", "--faults", faults[1].removeprefix("http://"))
        assert taken.returncode == 1
        assert re.fullmatch(
            r"error: cannot listen on \S+: Address already in use \(pass another .*\)\n", taken.stderr
        ), taken.stderr
        assert os.path.exists(node[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not Path(node[2]).exists()
