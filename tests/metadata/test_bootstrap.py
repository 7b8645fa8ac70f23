"""The first records of a cluster."""

from __future__ import annotations

import pytest

from barnabas.metadata.bootstrap import ELR_FEATURE, activation_records, bootstrap_records
from barnabas.protocol import messages


def feature(name: str, level: int) -> messages.FeatureLevelRecord:
    return messages.FeatureLevelRecord(name=name, feature_level=level)


def test_metadata_version_is_first_and_level_zero_is_not_written() -> None:
    assert bootstrap_records(30, {"b": 1, "zero": 0, "a": 2}) == [
        feature("metadata.version", 30),
        feature("a", 2),
        feature("b", 1),
    ]


def test_a_fresh_cluster_finalizes_what_kafka_does() -> None:
    assert bootstrap_records() == [
        feature("metadata.version", 33),
        feature(ELR_FEATURE, 1),
        feature("group.version", 1),
        feature("share.version", 2),
        feature("streams.version", 1),
        feature("transaction.version", 2),
    ]


def test_with_eligible_leader_replicas_the_cluster_pins_min_insync_replicas() -> None:
    pinned = messages.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    assert activation_records(None, 2) == [*bootstrap_records(), pinned]
    assert activation_records([feature(ELR_FEATURE, 1)], 2)[1:] == [pinned]


@pytest.mark.parametrize("records", [[feature(ELR_FEATURE, 0)], [feature("other", 1)], [messages.NoOpRecord()]])
def test_without_them_it_does_not(records: list[messages.FeatureLevelRecord]) -> None:
    assert activation_records(list(records), 2) == records
