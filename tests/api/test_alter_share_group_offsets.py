"""AlterShareGroupOffsets on a whole node."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.api.share_cluster import (
    ACCEPT,
    Cluster,
    Member,
    acquired,
    alter,
)


def test_offsets_of_an_empty_group_are_altered(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 10)
    member = Member(cluster).join()
    member.fetch()
    member.acknowledge((0, 9, [ACCEPT]), epoch=-1)
    assert alter(cluster, 5).error_code == ErrorCode.NON_EMPTY_GROUP
    member.heartbeat(-1)
    cluster.node.connection.closed()
    assert alter(cluster, 5).responses[0].partitions[0].error_code == 0
    assert cluster.offsets()[0] == (5, 5)
    again = Member(cluster, "again").join()
    assert acquired(again.fetch()) == [(0, 5, 9, 1)]


def test_altering_offsets_creates_a_missing_group(cluster: Cluster) -> None:
    cluster.produce(*[b"x"] * 3)
    assert alter(cluster, 1, group="new").responses[0].partitions[0].error_code == 0
    assert cluster.offsets("new") == {0: (1, 2)}
    assert alter(cluster, 1, index=9).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(cluster, 1, topic="no").responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(cluster, 1, group="").error_code == ErrorCode.INVALID_GROUP_ID
