"""Facts about levels, as a fresh Kafka 4.4 has them."""

from __future__ import annotations

import pytest

from barnabas.metadata import metadata_version
from barnabas.metadata.bootstrap import activation_records, bootstrap_records


def test_levels_have_names() -> None:
    assert metadata_version.NAMES[metadata_version.LATEST_PRODUCTION] == "4.4-IV2"
    assert metadata_version.NAMES[30] == "4.3-IV0"
    assert metadata_version.NAMES[metadata_version.MINIMUM] == "3.3-IV3"


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        ("RegisterBrokerRecord", 7, 1),
        ("RegisterBrokerRecord", 33, 4),
        ("PartitionChangeRecord", 16, 0),
        ("PartitionChangeRecord", 33, 2),
        ("BrokerRegistrationChangeRecord", 33, 3),
        ("TopicRecord", 33, 0),
    ],
)
def test_record_versions(record: str, level: int, version: int) -> None:
    assert metadata_version.record_version(record, level) == version


def test_a_fresh_cluster_finalizes_what_kafka_does() -> None:
    levels = {record.name: record.feature_level for record in bootstrap_records()}  # type: ignore[attr-defined]
    assert levels == {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert bootstrap_records()[0].name == "metadata.version"  # type: ignore[attr-defined]


def test_min_insync_replicas_is_pinned_while_eligible_leader_replicas_are_on() -> None:
    record = activation_records(None, 2)[-1]
    assert (record.NAME, record.value) == ("ConfigRecord", "2")  # type: ignore[attr-defined]
    without = bootstrap_records(levels={"eligible.leader.replicas.version": 0})
    assert activation_records(without, 2) == without
