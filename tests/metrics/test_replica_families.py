"""What is counted of the replicas: as in Kafka also while they move, and with the rates of throttled replication."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.log.disk import DiskUsage
from barnabas.log.log_config import LogConfig
from barnabas.metrics.replica_families import families
from barnabas.metrics.source import partition_rows
from barnabas.quota.replication_quota_manager import ReplicationQuotaManager
from tests.replication.hosting import NODE, Hosting


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    made = Hosting(tmp_path)
    yield made
    made.close()


def counts(hosting: Hosting) -> dict[str, float]:
    text = "".join(families(hosting.replicas, list(partition_rows(hosting.services))))
    found = [sample for metric in text_string_to_metric_families(text) for sample in metric.samples]
    return {
        sample.name.removeprefix("kafka_server_").removeprefix("replicamanager_"): sample.value
        for sample in found
        if not sample.name.startswith("barnabas_log_directory_")
    }


def test_only_the_leader_counts(hosting: Hosting) -> None:
    hosting.create_topic("led", replicas=(NODE, 2, 3), isr=(NODE,), config=LogConfig(min_insync_replicas=2))
    hosting.create_topic("followed", replicas=(2, NODE), leader=2, isr=(2,))
    assert counts(hosting) == {
        "leadercount": 1,
        "partitioncount": 2,
        "underreplicatedpartitions": 1,
        "underminisrpartitioncount": 1,
        "atminisrpartitioncount": 0,
        "reassigningpartitions": 0,
        "isrshrinks_total": 0,
        "isrexpands_total": 0,
        "isrshrinkspersec_total": 0,
        "isrexpandspersec_total": 0,
        "kafka_log_logmanager_offlinelogdirectorycount": 0,
        "kafka_log_logmanager_cordonedlogdirectorycount": 0,
    }


def test_the_loop_may_have_a_turn_after_each_partition_that_is_counted(hosting: Hosting) -> None:
    hosting.create_topic("t", 5)
    parts = list(families(hosting.replicas, list(partition_rows(hosting.services))))
    assert parts[:5] == [""] * 5
    assert all(parts[5:])
    assert counts(hosting)["leadercount"] == 5


def test_a_copy_that_has_only_begun_is_not_missing(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2), config=LogConfig(min_insync_replicas=2))
    hosting.change(id_, replicas=[NODE, 2, 3], adding_replicas=[3], removing_replicas=[2])
    found = counts(hosting)
    assert (found["underreplicatedpartitions"], found["reassigningpartitions"]) == (0, 1)
    assert (found["underminisrpartitioncount"], found["atminisrpartitioncount"]) == (0, 1)
    hosting.change(id_, isr=[NODE])
    assert counts(hosting)["underreplicatedpartitions"] == 1, "a replica of before is missing"
    hosting.change(id_, isr=[NODE, 3])
    assert counts(hosting)["underreplicatedpartitions"] == 0
    hosting.change(id_, replicas=[NODE, 3], adding_replicas=[], removing_replicas=[])
    found = counts(hosting)
    assert (found["underreplicatedpartitions"], found["reassigningpartitions"]) == (0, 0)


def test_a_disk_that_takes_no_writes(hosting: Hosting) -> None:
    hosting.replicas.log_manager.failure.is_offline = True
    assert counts(hosting)["kafka_log_logmanager_offlinelogdirectorycount"] == 1


def test_the_volume_of_the_data(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> dict[str, float]:
        text = "".join(families(hosting.replicas, []))
        samples = [sample for metric in text_string_to_metric_families(text) for sample in metric.samples]
        directory = hosting.replicas.log_manager.root_dir
        return {each.name: each.value for each in samples if each.labels == {"directory": directory}}

    monkeypatch.setattr(hosting.replicas.log_manager, "disk_usage", lambda: DiskUsage(total=100, free=7))
    assert asked() == {"barnabas_log_directory_total_bytes": 100, "barnabas_log_directory_free_bytes": 7}

    def fails() -> DiskUsage:
        raise OSError("not there")

    monkeypatch.setattr(hosting.replicas.log_manager, "disk_usage", fails)
    assert asked() == {}


def test_the_rates_of_throttled_replication(hosting: Hosting) -> None:
    leader, follower = (ReplicationQuotaManager(11, 1, hosting.now_ms) for _ in range(2))
    hosting.replicas.leader_quota, hosting.replicas.follower_quota = leader, follower
    leader.record(700)
    found = counts(hosting)
    assert (found["leaderreplication_byte_rate"], found["followerreplication_byte_rate"]) == (700, 0)
