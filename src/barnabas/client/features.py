"""The features of brokers: the levels that each supports, and those that the cluster has finalized.

Sources: ApiVersions (18), UpdateFeatures (57); KIP-584, KIP-778.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.exchange import Exchange
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

__all__ = ["METADATA_VERSION", "BrokerFeatures", "describe_features", "features_at", "raise_features"]

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
    return cluster.ask_nodes(lambda connection, node_id: features_at(connection))


def features_at(connection: BlockingConnection) -> BrokerFeatures | KafkaError:
    """Return the features of the node behind a connection."""
    version = connection.version_for(messages.ApiVersionsRequest)
    response = connection.request(Exchange.versions_request(version), version=version)
    if response.error_code:
        return error_for(response.error_code, None)
    return BrokerFeatures(
        {each.name: (each.min_version, each.max_version) for each in response.supported_features},
        {each.name: each.max_version_level for each in response.finalized_features},
        response.finalized_features_epoch,
    )


def raise_features(cluster: Cluster, levels: Mapping[str, int], *, validate_only: bool = False) -> KafkaError | None:
    """Raise the finalized level of features, all or none; return when a broker shows it, or the error.

    Args:
        levels: by name.
        validate_only: the controller only checks.
    """
    request_class = messages.UpdateFeaturesRequest
    updates = [request_class.FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels.items()]

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, KafkaError | None]:
        request = request_class(
            timeout_ms=cluster.broker_timeout_ms, feature_updates=updates, validate_only=validate_only
        )
        answer = connection.request(request)
        error = outcome_of(answer.error_code, answer.error_message)
        # Before version 2 each feature has its own outcome, although none is raised if one is not.
        own = (outcome_of(each.error_code, each.error_message) for each in answer.results)
        return dict.fromkeys(batch, error or next((each for each in own if each is not None), None))

    error = cluster.ask_each(["features"], cluster.to_controller, ask)["features"]
    if error is None and not validate_only:
        cluster.await_change(lambda: _show(describe_features(cluster), levels))
    return error


def _show(found: Mapping[int, BrokerFeatures | KafkaError], levels: Mapping[str, int]) -> bool:
    return all(
        isinstance(each, KafkaError) or each.finalized.get(name, 0) >= level
        for each in found.values()
        for name, level in levels.items()
    )
