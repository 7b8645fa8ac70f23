"""Which replicas of a partition are offline: on a broker that does not serve, or in a directory that has failed.

Source: Kafka's `KRaftMetadataCache.getOfflineReplicas`.
"""

from __future__ import annotations

from collections.abc import Container

from barnabas.metadata.directory_ids import MIGRATING, UNASSIGNED
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_leaders import has_directory_online
from barnabas.metadata.partition_registration import PartitionRegistration

__all__ = ["OfflineReplicas"]


class OfflineReplicas:
    """The offline replicas in one image.

    Args:
        live: the brokers that serve.
    """

    def __init__(self, image: MetadataImage, live: Container[int]) -> None:
        self._brokers = image.cluster.brokers
        self._live = live
        offered = (directory for broker in self._brokers.values() for directory in broker.directories)
        self._offered = {MIGRATING, UNASSIGNED, *offered}

    def __repr__(self) -> str:
        return f"<OfflineReplicas directories={len(self._offered)}>"

    def of(self, partition: PartitionRegistration) -> list[int]:
        """Return the offline replicas of a partition."""
        offline = [replica for replica in partition.replicas if replica not in self._live]
        if self._offered.issuperset(partition.directories):
            return offline
        return [each for each in partition.replicas if each in offline or not self._has_directory(partition, each)]

    def _has_directory(self, partition: PartitionRegistration, replica: int) -> bool:
        broker = self._brokers.get(replica)
        return broker is None or has_directory_online(broker, partition, replica)
