"""ShareGroupHeartbeat on a whole node: joining, assignments, epochs, leaving, and a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    FindCoordinatorRequest,
    ListGroupsRequest,
    ShareGroupHeartbeatRequest,
)
from tests.api.served_node import Serving
from tests.api.share_cluster import (
    HEARTBEAT_MS,
    SETTINGS,
    Cluster,
    Member,
)


def test_a_member_is_assigned_partitions_with_the_heartbeat_after_their_initialization(cluster: Cluster) -> None:
    member = Member(cluster)
    first = member.heartbeat(0, ["q"])
    assert (first.error_code, first.heartbeat_interval_ms, first.assignment.topic_partitions) == (0, HEARTBEAT_MS, [])
    cluster.until(cluster.begun)
    cluster.node.now_ms += HEARTBEAT_MS
    assert member.heartbeat().assignment.topic_partitions[0].partitions == [0, 1]
    cluster.node.now_ms += HEARTBEAT_MS
    assert member.heartbeat().assignment is None, "nothing has changed"
    assert member.heartbeat(topics=["q"]).assignment is not None, "a full request gets a full answer"


def test_members_share_partitions_when_there_are_more_of_them(cluster: Cluster) -> None:
    members = [Member(cluster, f"m{number}").join() for number in range(4)]
    for _ in range(3):
        cluster.node.now_ms += HEARTBEAT_MS
        for member in members:
            member.heartbeat()
    given = sorted(index for member in members for index in member.assigned[cluster.topic_id])
    assert given == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "x" * 37}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 7}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_an_invalid_heartbeat_is_rejected(cluster: Cluster, fields: dict[str, Any], code: ErrorCode) -> None:
    good: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["q"]}
    assert cluster.node.ask(ShareGroupHeartbeatRequest(**(good | fields))).error_code == code


def test_a_member_with_a_wrong_epoch_is_fenced(cluster: Cluster) -> None:
    member = Member(cluster).join()
    for epoch in (member.epoch + 1, member.epoch - 2):
        assert member.heartbeat(epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert Member(cluster, "stranger").heartbeat(3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat(0, ["q"]).error_code == 0, "joining again is always allowed"


def test_a_member_that_leaves_empties_the_group(cluster: Cluster) -> None:
    member = Member(cluster).join()
    answer = member.heartbeat(-1)
    assert (answer.error_code, answer.member_epoch) == (0, -1)
    assert cluster.node.ask(ListGroupsRequest()).groups[0].group_state == "Empty"


def test_a_group_outlives_its_coordinator(cluster: Cluster) -> None:
    member = Member(cluster).join()
    cluster.crash()
    assert member.heartbeat().error_code == 0
    assert cluster.node.ask(ListGroupsRequest()).groups[0].group_state == "Stable"


def test_a_full_group_rejects_another_member(tmp_path: Path) -> None:
    node = Serving(tmp_path, group_share_max_size="1", **SETTINGS)
    try:
        node.create_topic("q")
        node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        request: dict[str, Any] = {"group_id": "g", "member_epoch": 0, "subscribed_topic_names": ["q"]}
        assert node.ask(ShareGroupHeartbeatRequest(member_id="a", **request)).error_code == 0
        second = node.ask(ShareGroupHeartbeatRequest(member_id="b", **request))
        assert second.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert node.ask(ShareGroupHeartbeatRequest(member_id="a", **request)).error_code == 0
    finally:
        node.close()
