"""The record that ends a group of the classic protocol: `records` has the other records of it.

Source: Kafka class `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.messages import GroupMetadataKey

__all__ = ["GROUP_METADATA", "group_metadata_tombstone"]

GROUP_METADATA = 2


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the end of a group."""
    return CoordinatorRecord(GROUP_METADATA, GroupMetadataKey(group=group_id), None)
