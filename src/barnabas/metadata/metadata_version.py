"""The levels of metadata.version and of the other features.

A metadata version is a release's name with an internal number, and a level that the metadata log finalizes. It fixes the
version of each record written, so that every node the cluster admits can read it.

Facts read from Kafka 4.4.0's `MetadataVersion` and `Feature` classes.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.metadata_versions import MINIMUM, NAMES

LATEST_PRODUCTION = 33

# From which level on a record is written in which version; absent records have only version 0.
_RECORD_VERSIONS: dict[str, tuple[tuple[int, int], ...]] = {
    "RegisterBrokerRecord": ((30, 4), (17, 3), (8, 2), (7, 1)),
    "BrokerRegistrationChangeRecord": ((30, 3), (17, 2), (7, 1)),
    "PartitionRecord": ((23, 2), (17, 1)),
    "PartitionChangeRecord": ((23, 2), (17, 1)),
}
# Levels that changed the format of records; lowering metadata.version past one of them would lose metadata.
DID_METADATA_CHANGE = frozenset({8, 11, 13, 14, 15, 17, 23, 30, 32, 33})


class FeatureRange(NamedTuple):
    """The levels of a feature that this node supports, and the level that a fresh cluster finalizes."""

    min: int
    max: int
    default: int


# The features that a 4.4 node knows, without metadata.version; kraft.version lives in control records, not in metadata records.
FEATURES: dict[str, FeatureRange] = {
    "eligible.leader.replicas.version": FeatureRange(0, 1, 1),
    "group.version": FeatureRange(0, 1, 1),
    "share.version": FeatureRange(0, 2, 2),
    "streams.version": FeatureRange(0, 1, 1),
    "transaction.version": FeatureRange(0, 2, 2),
}
KRAFT_VERSION = FeatureRange(0, 1, 1)
DELEGATION_TOKENS_SINCE = 14
"""3.6-IV2, the first metadata.version with delegation tokens."""
CONTROLLER_REGISTRATION_SINCE = 15
"""3.7-IV0, the first metadata.version with which controllers register (KIP-919)."""
DIRECTORY_ASSIGNMENT_SINCE = 17
"""3.7-IV2, the first metadata.version with directories in registrations and partitions (KIP-858)."""
CORDONED_DIRECTORIES_SINCE = 30
"""4.3-IV0, the first metadata.version with cordoned directories (KIP-1066)."""
CIDR_ACLS_SINCE = 32
"""4.4-IV1, the first metadata.version with ranges of addresses as hosts of ACLs."""
CONTROLLER_UNREGISTRATION_SINCE = 33
"""4.4-IV2, the first metadata.version that forgets the registration of a controller (KIP-1312)."""
OLDEST_FORMAT = 21
"""The lowest metadata.version that a fresh directory may have: 3.9-IV0, the first with kraft.version 1."""

# From which metadata.version on a fresh cluster finalizes a level of a feature.
_DEFAULT_SINCE: dict[str, tuple[tuple[int, int], ...]] = {
    "eligible.leader.replicas.version": ((26, 1),),
    "group.version": ((22, 1),),
    "share.version": ((31, 2), (28, 1)),
    "streams.version": ((29, 1),),
    "transaction.version": ((24, 2),),
}


def record_version(record_name: str, metadata_version: int) -> int:
    """Return the version in which a record is written while this metadata.version is finalized."""
    for level, version in _RECORD_VERSIONS.get(record_name, ()):
        if metadata_version >= level:
            return version
    return 0


def default_level(feature: str, metadata_version: int) -> int:
    """Return the level of a feature that a fresh cluster of this metadata.version finalizes."""
    return next((level for since, level in _DEFAULT_SINCE[feature] if metadata_version >= since), 0)


def release_level(release: str) -> int | None:
    """Return the metadata.version of a release such as `4.3`, or of a version such as `4.3-IV0`; None if Kafka has no such version."""
    return next((level for level in reversed(NAMES) if release in (NAMES[level], NAMES[level].partition("-")[0])), None)


def supported_features() -> dict[str, FeatureRange]:
    """Return every feature this node supports, as its registration lists them, in name order."""
    ranges = {
        **FEATURES,
        "kraft.version": KRAFT_VERSION,
        "metadata.version": FeatureRange(MINIMUM, LATEST_PRODUCTION, LATEST_PRODUCTION),
    }
    return dict(sorted(ranges.items()))
