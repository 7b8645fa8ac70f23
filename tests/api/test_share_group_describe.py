"""ShareGroupDescribe on a whole node."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ListGroupsRequest,
    ShareGroupDescribeRequest,
)
from tests.api.share_cluster import (
    Cluster,
    Member,
)


def test_a_share_group_is_listed_and_described_with_its_members(cluster: Cluster) -> None:
    Member(cluster).join()
    listed = cluster.node.ask(ListGroupsRequest()).groups
    assert [(g.group_id, g.group_type, g.group_state, g.protocol_type) for g in listed] == [
        ("g", "share", "Stable", "share")
    ]
    described = cluster.node.ask(ShareGroupDescribeRequest(group_ids=["g", "none"])).groups
    assert (described[0].group_state, described[0].assignor_name, len(described[0].members)) == ("Stable", "simple", 1)
    assert described[0].members[0].assignment.topic_partitions[0].topic_name == "q"
    assert (described[1].error_code, described[1].error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group none not found.",
    )
