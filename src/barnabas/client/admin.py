"""Administration of a cluster: one method per question or change. Shell plane.

    with Admin("localhost:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=6)])
        admin.list_offsets({TopicPartition("orders", 0): LATEST})

Methods about several things return a dictionary with a result *or a KafkaError* for each: one missing topic does not
hide the answers about the others. :func:`result` turns such a value into a result or an exception. Failures of a whole
request are raised. Retriable failures are asked again until the cluster's ``timeout_ms``.

The methods live with their nouns: :mod:`~barnabas.client.topics`, :mod:`~barnabas.client.configs`,
:mod:`~barnabas.client.offsets`, :mod:`~barnabas.client.groups`, :mod:`~barnabas.client.newer_groups`,
:mod:`~barnabas.client.transactions`, :mod:`~barnabas.client.brokers`.

Source: org.apache.kafka.clients.admin.Admin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.client.brokers import BrokerAdmin, ClusterDescription, LogDir, ProducerState, ReplicaSize
from barnabas.client.closeable import Closeable
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import Node, PartitionMetadata, TopicMetadata, TopicPartition
from barnabas.client.configs import ConfigAdmin, ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from barnabas.client.groups import (
    CommittedOffset,
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupRebalance,
)
from barnabas.client.newer_groups import NewerGroupAdmin
from barnabas.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAdmin, OffsetAndTimestamp
from barnabas.client.outcome import result
from barnabas.client.topics import CreatedTopic, NewTopic, TopicAdmin
from barnabas.client.transactions import TransactionAdmin, TransactionDescription, TransactionListing

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "CreatedTopic",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupRebalance",
    "LogDir",
    "NewTopic",
    "Node",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "ProducerState",
    "ReplicaSize",
    "ResourceType",
    "TopicMetadata",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "result",
]


class Admin(TopicAdmin, ConfigAdmin, OffsetAdmin, NewerGroupAdmin, TransactionAdmin, BrokerAdmin, Closeable):
    """Administers the cluster behind some bootstrap addresses.

    Args:
        bootstrap: ``host:port,host:port``, a sequence of addresses, or a :class:`Cluster` to share.
        options: what :class:`Cluster` takes (``client_id``, ``timeout_ms``, …).
    """

    def __init__(self, bootstrap: str | Sequence[str] | Cluster, **options: Any) -> None:
        super().__init__(bootstrap if isinstance(bootstrap, Cluster) else Cluster(bootstrap, **options))

    def __repr__(self) -> str:
        return f"<Admin of {self.cluster!r}>"

    def close(self) -> None:
        """Closes the cluster's connections."""
        self.cluster.close()
