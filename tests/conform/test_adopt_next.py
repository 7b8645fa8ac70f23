"""Three nodes of Apache Kafka under an idempotent producer become barnabas by `adopt next`, and go back by `adopt back`; nothing is lost.

One run of `adopt next` is killed right after it has asked a node to stop, and the same command is typed again.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.adopt.directory_lock import holder_of
from barnabas.main import command_group
from tests.cluster.exchange_judge import Written, judge_records
from tests.cluster.exchanged_cluster import ExchangedCluster
from tests.cluster.node_process import KINDS
from tests.cluster.probe import Probe
from tests.cluster.records import read_partition
from tests.cluster.topics import create_safe_topics
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.timeout(600)]

TOPIC, PARTITIONS = "adopted", 3


@contextmanager
def cluster_of_apache_kafka(folder: Path) -> Iterator[ExchangedCluster]:
    """Run the nodes; those that were started by commands end with the block, too."""
    with ExchangedCluster(folder, "static") as cluster:
        try:
            yield cluster
        finally:
            for node in cluster.nodes.values():
                holder = holder_of(str(node.data_dir))
                if holder is not None and node.process is not None and holder != node.process.pid:
                    with suppress(ProcessLookupError):
                        os.kill(holder, signal.SIGKILL)


def words_of(cluster: ExchangedCluster, verb: str, node_id: int, kind: str) -> list[str]:
    """Return the command line that changes a node, with the commands of its operator."""
    node = cluster[node_id]
    changed = KINDS[kind].__new__(KINDS[kind])
    vars(changed).update(vars(node))
    start = f"exec {shlex.join(changed.start_command())} >>{shlex.quote(str(node.log))} 2>&1"
    return [
        sys.executable, "-m", "barnabas.main", "adopt", verb, "-b", cluster.bootstrap_servers, "--config", str(node.config),
        "--stop-command", f"kill -TERM {holder_of(str(node.data_dir))}", "--start-command", start, "--limit", "240", "-o", "json",
    ]  # fmt: skip


def changed(words: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run the command to its end, and return its row."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    found: dict[str, Any] = row
    return found


def killed_after_the_stop(words: list[str], environment: dict[str, str]) -> None:
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as command:
        assert command.stderr is not None
        for line in command.stderr:
            if "stop node" in line:
                break
        command.kill()
    assert command.returncode == -signal.SIGKILL


def status(cluster: ExchangedCluster) -> dict[str, Any]:
    words = ["adopt", "status", "-b", cluster.bootstrap_servers, "-o", "json"]
    found: dict[str, Any] = json.loads(CliRunner().invoke(command_group(), words, prog_name="barnabas").stdout)
    return found


def has_gone_on(probe: Probe, before: int) -> bool:
    return len(probe.acknowledged) > before + 30


def test_there_and_back_under_load(tmp_path: Path) -> None:
    # What the operator's commands print goes into files there.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with cluster_of_apache_kafka(tmp_path) as cluster:
        create_safe_topics(cluster, [TOPIC])
        assert status(cluster)["apache_kafka"] == 3
        with Probe(cluster.bootstrap_servers, TOPIC, PARTITIONS) as probe:
            for turn in range(3):
                node_id = status(cluster)["next"][0]
                words = words_of(cluster, "next", node_id, "barnabas")
                if turn == 1:
                    killed_after_the_stop(words, environment)
                assert changed(words, environment)["program"] == "barnabas"
                before = len(probe.acknowledged)
                wait_for("the producer goes on", partial(has_gone_on, probe, before))
            found = status(cluster)
            assert (found["barnabas"], found["next"]) == (3, [])
            for node_id in (1, 2, 3):
                words = words_of(cluster, "back", node_id, "apache-kafka")
                assert changed([*words, "--kafka-release", "4.3"], environment)["program"] == "Apache Kafka"
            assert status(cluster)["apache_kafka"] == 3
        probe.flush()
        told: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
        for each in probe.acknowledged:
            told[each.partition].append(each.number)
        servers = cluster.bootstrap_servers
        # All count as one epoch of one producer: so a record that the client sent again fails the test, too.
        there = {
            index: [Written(int(value), (0, 0)) for _, value in read_partition(servers, TOPIC, index)]
            for index in range(PARTITIONS)
        }
        verdict = judge_records(told, there)
        verdict.found("given up", probe.failures)
        assert not verdict.problems, str(verdict)
        assert verdict.counted["acknowledged"] > 1000
        print(verdict)
