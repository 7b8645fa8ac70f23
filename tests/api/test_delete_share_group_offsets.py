"""DeleteShareGroupOffsets on a whole node, and what DeleteGroups leaves of a share group."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    ListGroupsRequest,
)
from tests.api.share_cluster import (
    ACCEPT,
    Cluster,
    Member,
    acquired,
)


def test_offsets_of_topics_are_deleted(cluster: Cluster) -> None:
    def delete(*topics: str) -> Any:
        asked = [DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        return cluster.node.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=asked))

    assert delete("q").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member = Member(cluster).join()
    assert delete("q").error_code == ErrorCode.NON_EMPTY_GROUP
    member.heartbeat(-1)
    cluster.node.create_topic("other")
    answer = delete("q", "other", "missing")
    assert [(t.topic_name, t.error_code) for t in answer.responses] == [
        ("q", 0),
        ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert cluster.offsets() == {}


def test_deleting_a_group_deletes_its_states(cluster: Cluster) -> None:
    cluster.produce(b"x")
    member = Member(cluster).join()
    assert cluster.node.ask(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    member.fetch()
    member.acknowledge((0, 0, [ACCEPT]), epoch=-1)
    member.heartbeat(-1)
    cluster.node.connection.closed()
    assert cluster.node.ask(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == 0
    assert cluster.node.ask(ListGroupsRequest()).groups == []
    again = Member(cluster, "again").join()
    assert acquired(again.fetch()) == [(0, 0, 0, 1)], "the group begins at its beginning"
