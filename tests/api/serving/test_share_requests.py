"""What the share APIs have in common."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    UpdateFeaturesRequest,
)
from tests.api.share_cluster import (
    Cluster,
    Member,
)


def test_share_apis_are_not_supported_while_share_version_is_0(cluster: Cluster) -> None:
    Member(cluster, "before").join().fetch()
    partitions = cluster.node.server.services.share.partitions
    assert len(partitions) == 2
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    assert cluster.node.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code == 0
    assert len(partitions) == 0
    member = Member(cluster)
    assert member.heartbeat(0, ["q"]).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert member.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert member.acknowledge().error_code == ErrorCode.UNSUPPORTED_VERSION
