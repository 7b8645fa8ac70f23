"""The ends of single replicas, asked of their own brokers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code, every_version, only

R = messages.ListOffsetsResponse


@pytest.mark.parametrize("version", every_version(messages.ListOffsetsRequest))
def test_each_broker_is_asked_for_the_end_of_its_own_replica(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ListOffsetsRequest, version)
    brokers = memory.broker_ids[:2]

    def respond(broker: int, request: Any, *_: Any) -> R:
        found = [
            R.ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=100 + broker)
            for each in request.topics[0].partitions
        ]
        return R(topics=[R.ListOffsetsTopicResponse(name="t", partitions=found)])

    memory.handlers["ListOffsetsRequest"] = respond
    first, second = brokers
    assert admin.replica_ends({T0: [first, second], T1: [first]}) == {
        T0: {first: 100 + first, second: 100 + second},
        T1: {first: 100 + first},
    }
    asked = [request for _, request, _ in memory.requests if isinstance(request, messages.ListOffsetsRequest)]
    assert {request.replica_id for request in asked} == {-2}
    assert {each.timestamp for request in asked for each in request.topics[0].partitions} == {-1}


def test_an_error_is_that_of_the_replica(memory: MemoryCluster, admin: Admin) -> None:
    broker = memory.broker_ids[0]
    found = R.ListOffsetsPartitionResponse(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    memory.handlers["ListOffsetsRequest"] = lambda *_: R(
        topics=[R.ListOffsetsTopicResponse(name="t", partitions=[found])]
    )
    ends = admin.replica_ends({T0: [broker]})
    assert error_code(ends[T0][broker]) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
