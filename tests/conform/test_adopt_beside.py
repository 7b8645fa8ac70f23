"""A directory that `adopt back --beside` has formatted, and the oldest Apache Kafka that the window has: the node joins its cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apache_kafka
import pytest

from barnabas.adopt.beside_hand import format_command, release_of
from barnabas.client.admin import Admin
from tests.cluster import views
from tests.cluster.exchanged_cluster import ExchangedCluster
from tests.cluster.node_process import ApacheKafkaNode
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(900)]

OLDEST = "4.0.0"


@pytest.fixture
def old_release() -> Iterator[None]:
    """Apache Kafka is the oldest while the test runs."""
    usual = apache_kafka.VERSION
    apache_kafka.use(OLDEST)
    yield
    apache_kafka.use(usual)


@pytest.mark.usefixtures("old_release")
def test_an_old_apache_kafka_starts_on_a_directory_that_barnabas_has_formatted(tmp_path: Path) -> None:
    with ExchangedCluster(tmp_path, "dynamic") as cluster:
        coming = ApacheKafkaNode(tmp_path / "node-11", 11, ("broker", "controller"))
        coming.write_config(cluster.properties(coming))
        with Admin(cluster.bootstrap_servers) as admin:
            release = release_of(admin.describe_features().values())
        words = format_command(cluster.cluster_id, str(coming.config), joins_voters=True, release=release)
        subprocess.run([sys.executable, "-m", "barnabas", *words], check=True)
        try:
            coming.start()
            wait_for("the brokers know the node", lambda: 11 in views.metadata(cluster[1].address).brokers)
        finally:
            coming.kill()
