"""Elections of preferred leaders."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code, every_version, only

R = messages.ElectLeadersResponse


def respond(memory: MemoryCluster, *codes: ErrorCode) -> None:
    results = [R.PartitionResult(partition_id=index, error_code=code) for index, code in enumerate(codes)]
    topic = R.ReplicaElectionResult(topic="t", partition_result=results)
    memory.handlers["ElectLeadersRequest"] = lambda *_: R(replica_election_results=[topic])


@pytest.mark.parametrize("version", every_version(messages.ElectLeadersRequest))
def test_each_partition_has_its_outcome(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ElectLeadersRequest, version)
    respond(memory, ErrorCode.NONE, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    found = admin.elect_preferred_leaders([T0, T1])
    assert found[T0] is None
    assert error_code(found[T1]) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    ((broker, request, _),) = [each for each in memory.requests if isinstance(each[1], messages.ElectLeadersRequest)]
    assert broker == memory.controller_id
    assert [(each.topic, each.partitions) for each in request.topic_partitions] == [("t", [0, 1])]
    assert request.election_type == 0


def test_a_leader_that_is_the_preferred_one_is_no_error(memory: MemoryCluster, admin: Admin) -> None:
    respond(memory, ErrorCode.ELECTION_NOT_NEEDED)
    assert admin.elect_preferred_leaders([T0]) == {T0: None}


def test_an_error_of_the_request_is_that_of_each_partition(memory: MemoryCluster, admin: Admin) -> None:
    def refuse(*_: Any) -> R:
        return R(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    memory.handlers["ElectLeadersRequest"] = refuse
    assert all(isinstance(each, KafkaError) for each in admin.elect_preferred_leaders([T0, T1]).values())


def test_an_unclean_election_says_so(memory: MemoryCluster, admin: Admin) -> None:
    respond(memory, ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    found = admin.elect_unclean_leaders([T0, T1])
    assert found[T0] is None
    assert error_code(found[T1]) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    ((_, request, _),) = [each for each in memory.requests if isinstance(each[1], messages.ElectLeadersRequest)]
    assert request.election_type == 1
