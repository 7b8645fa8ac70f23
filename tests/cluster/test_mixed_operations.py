"""An operator's days with two nodes of Apache Kafka and one of barnabas, each broker and controller, under load.

`cluster restart` and `upgrade` restart every node, `replace` says how one of Apache Kafka comes back with an empty disk, and
`support bundle` finds everything that it looks for.
"""

from __future__ import annotations

import json
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.main import command_group
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.records import check_exactly_once
from tests.cluster.replicas import check_bytes_identical
from tests.cluster.restarted_nodes import restarted_nodes
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(900)]

TOPIC = "kept"
GUEST = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster("apache-kafka", tmp_path, others={GUEST: "barnabas"}) as made:
        yield made


def command(cluster: Cluster, *words: str) -> Result:
    return CliRunner().invoke(command_group(), [*words, "-b", cluster.bootstrap_servers], prog_name="barnabas")


def done(cluster: Cluster, *words: str) -> str:
    result = command(cluster, *words)
    assert result.exit_code == 0, f"{result.stdout}{result.stderr}{result.exception!r}"
    print(result.stderr, result.stdout)
    return result.stdout


def test_restart_upgrade_replace_and_bundle(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    restarted = restarted_nodes(cluster, monkeypatch)
    create_safe_topic(cluster, TOPIC)
    active = cluster.active_controller().node_id
    with Load(cluster.bootstrap_servers, TOPIC, 3, per_second=500) as load:
        load.await_more(100)
        done(cluster, "cluster", "restart", "--rolling", "--command", "restart {node} {host}")
        assert (sorted(restarted), restarted[-1]) == ([1, 2, 3], active)
        load.await_more(100)
        assert "metadata.version" in done(cluster, "cluster", "upgrade", "--finalize")

        dead = next(node.node_id for node in cluster.brokers if node.kind == "apache-kafka")
        assert command(cluster, "cluster", "replace", str(dead)).exit_code == 1
        cluster[dead].kill()
        cluster[dead].wipe()
        wait_for("the node is missed", lambda: command(cluster, "cluster", "replace", str(dead)).exit_code == 0)
        steps = json.loads(done(cluster, "cluster", "replace", str(dead), "-o", "json"))
        words = shlex.split(steps[0]["command"])
        assert words[:3] == ["barnabas", "storage", "format"]
        cluster[dead].format_options = tuple(words[words.index("server.properties") + 1 :])
        assert words[words.index("-t") + 1] == cluster.cluster_id
        cluster.start_again(cluster[dead])
        cluster.await_in_sync([TOPIC])
        load.await_more(100)
    wait_for("the cluster is well", lambda: command(cluster, "cluster", "status").exit_code == 0)
    check_exactly_once(cluster.bootstrap_servers, load)
    check_bytes_identical(cluster, TOPIC)

    bundle = tmp_path / "bundle.tar.gz"
    done(cluster, "support", "bundle", str(bundle))
    with tarfile.open(bundle) as archive:
        found = {each.name.rpartition("/")[2]: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]
    # No node of this cluster serves metrics.
    missing = [line.partition(":")[0] for line in found["missing.txt"].splitlines()]
    assert (missing, json.loads(found["status.json"])["healthy"]) == (
        [f"metrics-{node}.txt" for node in (1, 2, 3)],
        True,
    )
    assert set(json.loads(found["features.json"])) == set(json.loads(found["log-dirs.json"])) == {"1", "2", "3"}
