"""DescribeShareGroupOffsets on a whole node."""

from __future__ import annotations

from barnabas.protocol.messages import (
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
)
from barnabas.protocol.primitives import uuid_to_str
from tests.api.share_cluster import (
    Cluster,
)


def test_unknown_offsets_are_minus_one(cluster: Cluster) -> None:
    topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    cluster.node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{uuid_to_str(cluster.topic_id)}:0"]), 6)
    asked = group(group_id="g", topics=[topic(topic_name="q", partitions=[0]), topic(topic_name="no", partitions=[3])])
    (answer,) = cluster.node.ask(DescribeShareGroupOffsetsRequest(groups=[asked])).groups
    assert [(t.topic_name, p.start_offset, p.lag, p.error_code) for t in answer.topics for p in t.partitions] == [
        ("q", -1, -1, 0),
        ("no", -1, -1, 0),
    ]
    (nothing,) = cluster.node.ask(DescribeShareGroupOffsetsRequest(groups=[group(group_id="g", topics=[])])).groups
    assert (nothing.error_code, nothing.topics) == (0, [])
