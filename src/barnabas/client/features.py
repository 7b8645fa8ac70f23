"""The features of brokers: the levels that each supports, and those that the cluster has finalized.

Sources: ApiVersions (18); KIP-584, KIP-778.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.exchange import Exchange
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

__all__ = ["METADATA_VERSION", "BrokerFeatures", "describe_features"]

METADATA_VERSION = "metadata.version"


class BrokerFeatures(NamedTuple):
    """The levels that one broker names; empty if it is older than features.

    Attributes:
        supported: the lowest and the highest level of each feature.
        finalized: the level of each feature that the cluster has raised; a level of 0 is left out.
        finalized_epoch: the end of the metadata that the broker knows; -1 if it knows no finalized feature.
    """

    supported: dict[str, tuple[int, int]]
    finalized: dict[str, int]
    finalized_epoch: int


def describe_features(cluster: Cluster) -> dict[int, BrokerFeatures | KafkaError]:
    """Return the features of each broker that serves."""

    def ask(connection: BlockingConnection, node_id: int) -> BrokerFeatures | KafkaError:
        version = connection.version_for(messages.ApiVersionsRequest)
        response = connection.request(Exchange.versions_request(version), version=version)
        if response.error_code:
            return error_for(response.error_code, None)
        return BrokerFeatures(
            {each.name: (each.min_version, each.max_version) for each in response.supported_features},
            {each.name: each.max_version_level for each in response.finalized_features},
            response.finalized_features_epoch,
        )

    return cluster.ask_nodes(ask)
