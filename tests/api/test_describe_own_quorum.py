"""DescribeQuorum at a controller's listener."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.envelope import wrapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeQuorumRequest
from barnabas.security.principal import ANONYMOUS
from tests.api.controlling import Controlling

TOPIC = "__cluster_metadata"


def asked() -> DescribeQuorumRequest:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    return DescribeQuorumRequest(topics=[DescribeQuorumRequest.TopicData(topic_name=TOPIC, partitions=[partition])])


def describe_quorum(controlling: Controlling) -> Any:
    return controlling.ask(asked()).topics[0].partitions[0]


def test_the_leader_describes_the_quorum_and_nobody_else(controlling: Controlling) -> None:
    described = describe_quorum(controlling)
    assert (described.error_code, described.leader_id) == (0, 1)
    controlling.services.controller.close()
    described = describe_quorum(controlling)
    assert described.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert described.error_message == "This controller does not lead the quorum."


def test_a_broker_that_forwards_to_the_wrong_controller_is_sent_on(controlling: Controlling) -> None:
    envelope = wrapped(asked(), 2, correlation_id=7, client_id="app", principal=ANONYMOUS, host="10.1.2.3")
    assert controlling.ask(envelope).error_code == 0
    controlling.services.controller.close()
    assert controlling.ask(envelope).error_code == ErrorCode.NOT_CONTROLLER
