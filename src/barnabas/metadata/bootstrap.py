"""The first records of a cluster: which features a fresh log finalizes. Control plane, pure.

The same list is written to `bootstrap.checkpoint` when a directory is formatted and, from there, into the log by the
first controller; a directory without that file gets the default list.

Sources: KIP-778; Kafka's `BootstrapMetadata`, `ActivationRecordsGenerator`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.features_image import METADATA_VERSION
from barnabas.metadata.metadata_version import FEATURES, LATEST_PRODUCTION
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages


def default_levels(metadata_version: int = LATEST_PRODUCTION) -> dict[str, int]:
    """What a fresh Kafka 4.4 cluster finalizes besides metadata.version."""
    assert metadata_version == LATEST_PRODUCTION, "a fresh cluster starts at the latest version"
    return {name: feature.default for name, feature in FEATURES.items()}


def bootstrap_records(
    metadata_version: int = LATEST_PRODUCTION, levels: Mapping[str, int] | None = None
) -> list[MetadataRecord]:
    """metadata.version first, then the other features by name; level 0 is not written."""
    chosen = dict(sorted((default_levels() if levels is None else levels).items()))
    records: list[MetadataRecord] = [messages.FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata_version)]
    records += [messages.FeatureLevelRecord(name=n, feature_level=level) for n, level in chosen.items() if level > 0]
    return records
