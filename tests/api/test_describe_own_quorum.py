"""DescribeQuorum at a controller's listener."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeQuorumRequest,
)
from tests.api.controlling import Controlling

TOPIC = "__cluster_metadata"


def describe_quorum(controlling: Controlling) -> Any:
    asked = DescribeQuorumRequest.PartitionData(partition_index=0)
    topics = [DescribeQuorumRequest.TopicData(topic_name=TOPIC, partitions=[asked])]
    return controlling.ask(DescribeQuorumRequest(topics=topics)).topics[0].partitions[0]


def test_the_leader_describes_the_quorum_and_nobody_else(controlling: Controlling) -> None:
    described = describe_quorum(controlling)
    assert (described.error_code, described.leader_id) == (0, 1)
    controlling.services.controller.close()
    described = describe_quorum(controlling)
    assert described.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert described.error_message == "This controller does not lead the quorum."
