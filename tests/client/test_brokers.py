"""Brokers: the cluster, log directories and producers."""

from typing import Any

import pytest

from barnabas.client.admin import Admin, Node, result
from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, every_version, only


@pytest.mark.parametrize("served", [True, False])
def test_describe_cluster_with_and_without_the_api(memory: MemoryCluster, admin: Admin, served: bool) -> None:
    response = messages.DescribeClusterResponse
    memory.handlers["DescribeClusterRequest"] = lambda broker_id, request, version: response(
        cluster_id="memory",
        controller_id=2,
        brokers=[response.DescribeClusterBroker(broker_id=each, host="127.0.0.1", port=each) for each in (2, 1)],
    )
    if not served:
        del memory.versions[messages.DescribeClusterRequest.API_KEY]
    found = admin.describe_cluster()
    assert (found.cluster_id, found.controller_id, [node.id for node in found.brokers]) == ("memory", 2, [1, 2])


def test_fenced_brokers_are_apart(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DescribeClusterResponse
    memory.handlers["DescribeClusterRequest"] = lambda broker_id, request, version: response(
        brokers=[
            response.DescribeClusterBroker(broker_id=each, host="h", port=each, rack="r", is_fenced=each == 2)
            for each in (3, 2, 1)
            if each != 2 or request.include_fenced_brokers
        ],
    )
    found = admin.describe_cluster()
    assert ([node.id for node in found.brokers], found.fenced) == ([1, 3], [Node(2, "h", 2, "r")])


def test_an_old_broker_is_not_asked_for_fenced_ones(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.DescribeClusterRequest, 1)
    memory.handlers["DescribeClusterRequest"] = lambda *_: messages.DescribeClusterResponse()
    assert admin.describe_cluster().fenced == []
    assert [each.include_fenced_brokers for each in memory.asked("DescribeClusterRequest")] == [False]


@pytest.mark.parametrize(
    ("codes", "error", "asked"),
    [
        ([ErrorCode.NONE], None, 1),
        ([ErrorCode.NOT_CONTROLLER, ErrorCode.NONE], None, 2),
        ([ErrorCode.BROKER_ID_NOT_REGISTERED], ErrorCode.BROKER_ID_NOT_REGISTERED, 1),
        # It may have been forgotten: to ask again would say that it is unknown.
        ([ConnectionLost("gone")], ErrorCode.NETWORK_EXCEPTION, 1),
    ],
)
def test_a_broker_is_unregistered_by_the_controller(
    memory: MemoryCluster, admin: Admin, codes: list[Any], error: ErrorCode | None, asked: int
) -> None:
    answers = iter(codes)

    def answer(broker_id: int, request: Any, version: int) -> Any:
        code = next(answers)
        return code if isinstance(code, Exception) else messages.UnregisterBrokerResponse(error_code=code)

    memory.handlers["UnregisterBrokerRequest"] = answer
    described = messages.DescribeClusterResponse
    # A broker learns of it a moment after the controller's answer.
    fenced = [described.DescribeClusterBroker(broker_id=5, host="h", port=5, is_fenced=True)]
    shown = iter([fenced, fenced, []])
    memory.handlers["DescribeClusterRequest"] = lambda *_: described(brokers=next(shown))
    found = admin.unregister_broker(5)
    assert (None if found is None else found.code) == error
    assert [each.broker_id for each in memory.asked("UnregisterBrokerRequest")] == [5] * asked
    assert len(memory.asked("DescribeClusterRequest")) == (3 if error is None else 0)


@pytest.mark.parametrize("version", every_version(messages.DescribeLogDirsRequest))
def test_describe_log_dirs(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeLogDirsRequest, version)
    response = messages.DescribeLogDirsResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        replica = response.DescribeLogDirsPartition(partition_index=0, partition_size=10 * broker_id)
        topic = response.DescribeLogDirsTopic(name="t", partitions=[replica])
        return response(results=[response.DescribeLogDirsResult(log_dir="/data", topics=[topic])])

    memory.handlers["DescribeLogDirsRequest"] = describe
    found = admin.describe_log_dirs(partitions=[T0])
    assert {broker: result(dirs)[0].replicas[0].size_in_bytes for broker, dirs in found.items()} == {1: 10, 2: 20}


def test_describe_producers(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DescribeProducersResponse
    producer = response.ProducerState(producer_id=7, producer_epoch=1, last_sequence=3)
    memory.handlers["DescribeProducersRequest"] = lambda broker_id, request, version: response(
        topics=[
            response.TopicResponse(
                name="t", partitions=[response.PartitionResponse(partition_index=0, active_producers=[producer])]
            )
        ]
    )
    (state,) = result(admin.describe_producers([T0])[T0])
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 1, 3)
