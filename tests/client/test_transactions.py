"""Transactions: listed from every broker, described, fenced, and a hanging one aborted."""

from typing import Any

import pytest

from barnabas.client.admin import Admin, ProducerState, result
from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, error_code

PRODUCER = ProducerState(7, 1, 3, 0, coordinator_epoch=-1, transaction_start_offset=0)


def test_list_transactions_asks_every_broker(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.ListTransactionsResponse
    memory.handlers["ListTransactionsRequest"] = lambda broker_id, request, version: response(
        transaction_states=[
            response.TransactionState(
                transactional_id=f"x{broker_id}", producer_id=broker_id, transaction_state="Ongoing"
            )
        ]
    )
    assert admin.list_transactions(states=["Ongoing"], producer_ids=[1]) == [
        ("x1", 1, "Ongoing", 1),
        ("x2", 2, "Ongoing", 2),
    ]
    request, _ = memory.asked("ListTransactionsRequest")
    assert (request.state_filters, request.producer_id_filters, request.duration_filter) == (["Ongoing"], [1], -1)


def test_describe_transactions(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DescribeTransactionsResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        return response(
            transaction_states=[
                response.TransactionState(
                    transactional_id=each, transaction_state="Ongoing", transaction_start_time_ms=5 if each == "g" else -1,
                    topics=[response.TopicData(topic="t", partitions=[0])] if each == "g" else [],
                    error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if each == "nope" else 0,
                )
                for each in request.transactional_ids
            ]
        )  # fmt: skip

    memory.handlers["DescribeTransactionsRequest"] = describe
    found = admin.describe_transactions(["g", "idle", "nope"])
    assert (result(found["g"]).start_ms, result(found["g"]).partitions, result(found["g"]).coordinator) == (5, [T0], 2)
    assert (result(found["idle"]).start_ms, result(found["idle"]).coordinator) == (None, 1)
    assert error_code(found["nope"]) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert {request.key_type for request in memory.asked("FindCoordinatorRequest")} == {1}


def test_fence_producers(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.InitProducerIdResponse
    memory.handlers["InitProducerIdRequest"] = lambda broker_id, request, version: (
        response(producer_id=7, producer_epoch=2)
        if request.transactional_id == "g"
        else response(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    )
    found = admin.fence_producers(["g", "foreign"])
    assert found["g"] == (7, 2)
    assert error_code(found["foreign"]) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def marked(code: int) -> Any:
    response = messages.WriteTxnMarkersResponse
    partition = response.WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)
    topic = response.WritableTxnMarkerTopicResult(name="t", partitions=[partition])
    return response(markers=[response.WritableTxnMarkerResult(producer_id=7, topics=[topic])])


@pytest.mark.parametrize("code", [0, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_abort_a_hanging_transaction(memory: MemoryCluster, admin: Admin, code: int) -> None:
    memory.handlers["WriteTxnMarkersRequest"] = lambda broker_id, request, version: marked(code)
    error = admin.abort_transaction(T0, PRODUCER)
    assert (error.code if error else 0) == code
    ((request,),) = [memory.asked("WriteTxnMarkersRequest")]
    marker = request.markers[0]
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (7, 1, False)
    # -1 is not a valid epoch of a coordinator.
    assert marker.coordinator_epoch == 0


def test_a_marker_without_an_answer_is_not_written_again(memory: MemoryCluster, admin: Admin) -> None:
    memory.handlers["WriteTxnMarkersRequest"] = lambda broker_id, request, version: ConnectionLost("gone")
    error = admin.abort_transaction(T0, PRODUCER)
    assert isinstance(error, ConnectionLost)
    assert len(memory.asked("WriteTxnMarkersRequest")) == 1
