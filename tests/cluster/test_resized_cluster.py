"""`cluster resize` over real processes, while an idempotent producer writes: three nodes, four, three. The command is killed on its way."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster.judged_load import judged_load
from tests.cluster.load import Load
from tests.cluster.waiting import wait_for
from tests.process.process import ENVIRONMENT, command, run
from tests.process.test_nodes_on_one_machine import Cluster

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PARTITIONS = 6


def typed(addresses: str, *words: str) -> str:
    """Type a command of `barnabas cluster`; return what it prints."""
    done = run("cluster", *words, "-b", addresses)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def killed(addresses: str, *words: str, when: str) -> None:
    """Type a command, and kill it once it has printed something on standard error, or has ended."""
    with subprocess.Popen(
        command("cluster", *words, "-b", addresses), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if when in line:
                break
        process.kill()


def test_nothing_is_lost_while_a_cluster_grows_and_shrinks(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, 3, "--port", "0") as cluster:
        addresses = cluster.addresses
        run("topic", "create", "kept", "-p", str(PARTITIONS), "-b", addresses)
        with Load(addresses, "kept", PARTITIONS) as load:
            load.await_more(20)
            resize = ("resize", "4", "--data-dir", str(folder))
            with subprocess.Popen(
                command("cluster", *resize, "-b", addresses), stdout=subprocess.DEVNULL, env=ENVIRONMENT
            ) as growing:
                wait_for("node 4 is being made", (folder / "node-4").exists)
                growing.kill()
            # The supervisor may have added it before.
            assert re.search(r"^4 .* (added|serves) ", typed(addresses, *resize), re.MULTILINE)
            assert "moved" in typed(addresses, "rebalance")
            load.await_more(20)

            resize = ("resize", "3", "--data-dir", str(folder))
            killed(addresses, *resize, when="move away from node 4")
            assert "retired" in typed(addresses, *resize)
            load.await_more(20)
        assert load.failures == []
        assert judged_load(addresses, load, folder).problems == {}
        typed(addresses, "status")
        assert not list(folder.glob(".answer-*"))

        # A supervisor that is killed leaves what the folder says.
        typed(addresses, "resize", "4", "--data-dir", str(folder))
        assert cluster.stop(signal.SIGKILL) == -signal.SIGKILL
    wait_for("all nodes have stopped", lambda: all(is_stopped(folder / f"node-{n}") for n in range(1, 5)))
    with Cluster(folder, 3) as cluster:
        assert len(cluster.addresses.split(",")) == 4
        typed(cluster.addresses, "status")
        assert cluster.stop() == 0
        assert cluster.process.stderr is not None
        assert f"{folder} holds 4 nodes, and all of them start, not 3" in cluster.process.stderr.read()
    assert all(is_stopped(folder / f"node-{n}") for n in range(1, 5))


def is_stopped(node: Path) -> bool:
    return (node / "data" / ".kafka_cleanshutdown").exists()
