"""Levels that Apache Kafka does not know keep nodes from going back."""

from __future__ import annotations

import pytest

from barnabas.adopt.observation import Seen
from barnabas.adopt.way_back import obstacles_of_way_back
from barnabas.client.features import METADATA_VERSION, BrokerFeatures
from barnabas.metadata.metadata_version import LATEST_PRODUCTION, release_level
from barnabas.protocol.metadata_versions import NAMES
from tests.adopt.sights import KAFKA, OURS, seen

AT_4_3 = release_level("4.3")
assert AT_4_3 is not None


def with_features(found: Seen, level: int, known: int, **finalized: int) -> Seen:
    features = BrokerFeatures({METADATA_VERSION: (7, known)}, {METADATA_VERSION: level, **finalized}, 90)
    return found._replace(features=dict.fromkeys(found.nodes, features))


ALL_OURS = seen(OURS, OURS, OURS)


def obstacles(found: Seen, release: str | None) -> list[str]:
    return list(obstacles_of_way_back(found, release))


def test_a_cluster_that_nobody_raised() -> None:
    assert obstacles(with_features(ALL_OURS, AT_4_3, LATEST_PRODUCTION, **{"group.version": 1}), "4.3") == []
    assert obstacles(with_features(seen(KAFKA, OURS, OURS), AT_4_3, AT_4_3), None) == []


def test_a_feature_that_was_raised() -> None:
    raised = with_features(ALL_OURS, LATEST_PRODUCTION, LATEST_PRODUCTION)
    (found,) = obstacles(raised, "4.0")
    assert found.startswith(
        f"metadata.version is finalized at {NAMES[LATEST_PRODUCTION]}, which Apache Kafka 4.0 does not know"
    )
    (found,) = obstacles(with_features(seen(KAFKA, OURS, OURS), LATEST_PRODUCTION, AT_4_3), None)
    assert "which the Apache Kafka that runs in this cluster does not know" in found


@pytest.mark.parametrize(
    ("found", "release", "words"),
    [
        (with_features(ALL_OURS, AT_4_3, AT_4_3), None, "name its release, such as --kafka-release 4.3"),
        (
            with_features(ALL_OURS, AT_4_3, AT_4_3),
            "9.9",
            "Apache Kafka 9.9 is not a release that barnabas knows; it knows 4.0, 4.1, 4.2, 4.3, 4.4",
        ),
        (ALL_OURS, "4.3", "the levels of its features could not be read"),
    ],
)
def test_who_does_not_know(found: Seen, release: str | None, words: str) -> None:
    (sentence,) = obstacles(found, release)
    assert sentence.endswith(words)
