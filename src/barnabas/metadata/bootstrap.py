"""The first records of a cluster: which features a fresh log finalizes.

The same list is written to `bootstrap.checkpoint` when a directory is formatted and, from there, into the log by the
first controller; a directory without that file gets the default list.

Sources: KIP-778; Kafka's `BootstrapMetadata`, `ActivationRecordsGenerator`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.log.disk import Disk
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.features_image import ELR_FEATURE, METADATA_VERSION
from barnabas.metadata.metadata_batch_loader import load_snapshot
from barnabas.metadata.metadata_version import FEATURES, LATEST_PRODUCTION, default_level
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


def default_levels(metadata_version: int = LATEST_PRODUCTION) -> dict[str, int]:
    """Return the other features that a fresh cluster of this metadata.version finalizes."""
    return {name: default_level(name, metadata_version) for name in FEATURES}


def bootstrap_records(
    metadata_version: int = LATEST_PRODUCTION, levels: Mapping[str, int] | None = None
) -> list[MetadataRecord]:
    """metadata.version first, then the other features by name; level 0 is not written."""
    chosen = dict(sorted((default_levels(metadata_version) if levels is None else levels).items()))
    records: list[MetadataRecord] = [messages.FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata_version)]
    records += [messages.FeatureLevelRecord(name=n, feature_level=level) for n, level in chosen.items() if level > 0]
    return records


def activation_records(bootstrap: list[MetadataRecord] | None, min_insync_replicas: int) -> list[MetadataRecord]:
    """Return what the first controller writes into an empty log.

    While eligible leader replicas are on, min.insync.replicas must be the same for the whole cluster, so the controller
    pins its own as the cluster-wide setting (KIP-966).
    """
    records = list(bootstrap or bootstrap_records())
    if any(getattr(r, "name", "") == ELR_FEATURE and getattr(r, "feature_level", 0) > 0 for r in records):
        records.append(
            messages.ConfigRecord(
                resource_type=ConfigResourceType.BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(min_insync_replicas),
            )
        )
    return records


def read_bootstrap(disk: Disk, root: str) -> list[MetadataRecord] | None:
    """Return the first records of a new metadata log, as written when the directory was formatted; None without the file."""
    try:
        return list(load_snapshot(disk.read_file(f"{root}/{BOOTSTRAP_CHECKPOINT}")))
    except FileNotFoundError:
        return None
