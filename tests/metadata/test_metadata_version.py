"""Facts about levels, as a fresh Kafka 4.4 has them."""

from __future__ import annotations

import pytest

from barnabas.metadata import metadata_version


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        *(("RegisterBrokerRecord", *at) for at in [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4), (33, 4)]),
        *(("BrokerRegistrationChangeRecord", *at) for at in [(7, 1), (16, 1), (17, 2), (29, 2), (30, 3), (33, 3)]),
        *(("PartitionRecord", *at) for at in [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (33, 2)]),
        *(("PartitionChangeRecord", *at) for at in [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (33, 2)]),
        ("TopicRecord", 33, 0),
    ],
)
def test_record_versions(record: str, level: int, version: int) -> None:
    assert metadata_version.record_version(record, level) == version


def test_supported_features_are_listed_by_name() -> None:
    supported = {name: (levels.min, levels.max) for name, levels in metadata_version.supported_features().items()}
    assert list(supported) == sorted(supported)
    assert supported == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }


@pytest.mark.parametrize(
    ("release", "level"),
    [("4.4", 33), ("4.3", 30), ("4.0", 25), ("3.9", 21), ("4.3-IV0", 30), ("4.0-IV1", 23), ("4.9", None), ("", None)],
)
def test_releases_have_levels(release: str, level: int | None) -> None:
    assert metadata_version.release_level(release) == level


@pytest.mark.parametrize(
    ("level", "levels"),
    [
        (21, (0, 0, 0, 0, 0)),
        (22, (0, 1, 0, 0, 0)),
        (25, (0, 1, 0, 0, 2)),
        (26, (1, 1, 0, 0, 2)),
        (28, (1, 1, 1, 0, 2)),
        (30, (1, 1, 1, 1, 2)),
        (33, (1, 1, 2, 1, 2)),
    ],
)
def test_a_fresh_cluster_of_an_older_version(level: int, levels: tuple[int, ...]) -> None:
    assert tuple(metadata_version.default_level(name, level) for name in sorted(metadata_version.FEATURES)) == levels


def test_the_newest_defaults_are_those_of_the_features() -> None:
    newest = metadata_version.LATEST_PRODUCTION
    for name, feature in metadata_version.FEATURES.items():
        assert metadata_version.default_level(name, newest) == feature.default
