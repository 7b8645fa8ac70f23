"""`cluster restart` over three processes, while an idempotent producer writes to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import rolling
from barnabas.main import command_group
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.records import read_partition
from tests.cluster.restarted_nodes import restarted_nodes
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PARTITIONS = 6
TOPIC = "kept"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster("barnabas", tmp_path)
    for node in made.nodes.values():
        node.release_version = "4.2-IV1"
    with made:
        yield made


def test_nothing_is_lost_and_every_preferred_leader_leads_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(cluster, TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3), {"min.insync.replicas": "2"})
    restarted = restarted_nodes(cluster, monkeypatch)

    def command(verb: str, *arguments: str) -> Result:
        words = ["cluster", verb, *arguments, "-b", cluster.bootstrap_servers]
        return CliRunner().invoke(command_group(), words, prog_name="barnabas")

    active = cluster.active_controller().node_id
    with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
        wait_for("1,000 records are acknowledged", lambda: len(load.acknowledged) >= 1000)
        result = command("restart", "--rolling", "--command", "restart {node} {host}")
        assert result.exit_code == 0, result.stderr
        before = len(load.acknowledged)
        wait_for("it goes on", lambda: len(load.acknowledged) >= before + 1000)
    assert (sorted(restarted), restarted[-1]) == ([1, 2, 3], active)
    assert load.failures == []
    read = sum(len(read_partition(cluster.bootstrap_servers, TOPIC, index)) for index in range(PARTITIONS))
    assert read == len(load.acknowledged) == load.sent
    assert command("status").exit_code == 0
    assert [each.leader for each in cluster.partitions(TOPIC)] == [1, 2, 3] * (PARTITIONS // 3)

    # The directories were formatted by an older release; every node runs a newer one now.
    assert re.search(r"metadata.version .* would be raised", command("upgrade", "--finalize", "--dry-run").stdout)
    result = command("upgrade", "--finalize")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"metadata.version .* as high as can be", command("upgrade", "--finalize").stdout)

    # A node that is down stops it before it begins.
    cluster[3].stop()
    wait_for("node 3 is fenced", lambda: "FENCED                1" in command("status").stdout)
    result = command("restart", "--command", "restart {node} {host}")
    assert (result.exit_code, len(restarted)) == (1, 3)
    assert "error: broker 3 does not serve (not restarted or not well yet: " in result.stderr

    # And one whose command does not restart it is noticed.
    cluster[3].start()
    cluster.await_in_sync([TOPIC])
    monkeypatch.setattr(rolling, "run_command", lambda words, node, within_s: None)
    wait_for("all is well", lambda: command("restart", "--dry-run").exit_code == 0)
    result = command("restart", "--within", "1s", "--command", "restart {node} {host}")
    assert (result.exit_code, "still runs in the process that it had before" in result.stderr) == (1, True)
