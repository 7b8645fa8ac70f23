"""Partitions that a transaction coordinator on another broker adds or verifies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AddPartitionsToTxnResponse
from barnabas.steps import start
from barnabas.transaction.partitions import Errors, TransactionSupportedOperation, add_or_verify
from barnabas.transaction.remote_partitions import RemotePartitions
from tests.coordinator.other_brokers import OtherBrokers, Sent
from tests.coordinator.virtual_loop import VirtualLoop

NODE = 1
T0, T1 = ("t", 0), ("t", 1)
DEFAULT, GENERIC, ADD = TransactionSupportedOperation

_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Partition = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


class Subject:
    """A broker whose transactional ids have their coordinators on brokers 2 and 3."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.brokers = OtherBrokers(self.loop)
        self.leaders: dict[str, int] = {"mine": NODE}
        self.remote_partitions = RemotePartitions(
            NODE, lambda name: self.leaders.get(name, 2), self.brokers.send, self.loop
        )
        self.local: list[Any] = []

    async def add_partitions(self, *asked: Any) -> None:
        self.local.append(asked)

    def ask(
        self, operation: TransactionSupportedOperation = ADD, name: str = "tx", epoch: int = 3
    ) -> asyncio.Future[Errors]:
        asked = add_or_verify(self, name, 9, epoch, [T1, T0], operation)  # type: ignore[arg-type]
        return start(asked, self.loop)

    def answer(self, sent: Sent, *codes: ErrorCode, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer with one code for all partitions, or one for each."""
        results = [
            _Result(
                transactional_id=transaction.transactional_id,
                topic_results=[
                    _Topic(
                        name=topic.name,
                        results_by_partition=[
                            _Partition(partition_index=index, partition_error_code=codes[index % len(codes)])
                            for index in topic.partitions
                        ],
                    )
                    for topic in transaction.topics
                ],
            )
            for transaction in (sent.message.transactions if codes else ())
        ]
        response = AddPartitionsToTxnResponse(error_code=error, results_by_transaction=results)
        self.brokers.answer(sent, response)


@pytest.mark.parametrize(("operation", "verify_only"), [(ADD, False), (GENERIC, True), (DEFAULT, True)])
def test_the_coordinators_broker_is_asked(operation: TransactionSupportedOperation, verify_only: bool) -> None:
    subject = Subject()
    asked = subject.ask(operation)
    sent = subject.brokers.take()
    (transaction,) = sent.message.transactions
    assert (sent.broker_id, transaction.verify_only) == (2, verify_only)
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("tx", 9, 3)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0, 1])]
    subject.answer(sent, ErrorCode.NONE)
    assert asked.result() == {}


def test_this_brokers_own_coordinator_needs_no_request() -> None:
    subject = Subject()
    assert subject.ask(name="mine").result() == {}
    assert len(subject.local) == 1
    assert subject.brokers.sent == []
    assert not subject.remote_partitions.is_for(""), "this broker rejects it"


def test_transactions_share_a_request_and_one_producer_waits_for_its_turn() -> None:
    subject = Subject()
    subject.leaders["other"] = 3
    first, again = subject.ask(name="a"), subject.ask(name="a", epoch=4)
    second, elsewhere = subject.ask(name="b"), subject.ask(name="other")
    to_2, to_3 = subject.brokers.take(), subject.brokers.take()
    assert [transaction.transactional_id for transaction in to_2.message.transactions] == ["a", "b"]
    assert to_3.broker_id == 3
    subject.answer(to_2, ErrorCode.NONE)
    assert (first.result(), second.result()) == ({}, {})
    subject.answer(subject.brokers.take(), ErrorCode.PRODUCER_FENCED)
    assert set(again.result().values()) == {ErrorCode.INVALID_PRODUCER_EPOCH}
    subject.answer(to_3, ErrorCode.NONE)
    assert elsewhere.result() == {}


@pytest.mark.parametrize(
    ("operation", "theirs", "ours"),
    [
        (DEFAULT, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (GENERIC, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ADD, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ADD, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ADD, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ADD, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_its_errors_are_those_of_an_append(
    operation: TransactionSupportedOperation, theirs: ErrorCode, ours: ErrorCode
) -> None:
    subject = Subject()
    asked = subject.ask(operation)
    subject.answer(subject.brokers.take(), ErrorCode.NONE, theirs)
    assert asked.result() == {T1: ours}, "one partition failed"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_error_of_the_request_is_that_of_all_partitions(theirs: ErrorCode, ours: ErrorCode) -> None:
    subject = Subject()
    asked = subject.ask()
    subject.answer(subject.brokers.take(), error=theirs)
    assert asked.result() == {T0: ours, T1: ours}


def test_a_partition_that_the_answer_leaves_out_is_not_verified() -> None:
    subject = Subject()
    asked = subject.ask()
    subject.answer(subject.brokers.take())
    assert set(asked.result().values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_lost_answer_is_a_network_exception() -> None:
    subject = Subject()
    asked = subject.ask()
    subject.brokers.lose(subject.brokers.take())
    assert asked.result() == dict.fromkeys((T0, T1), ErrorCode.NETWORK_EXCEPTION)


def test_without_a_coordinator_and_when_it_moves_the_coordinator_is_not_available() -> None:
    subject = Subject()
    subject.leaders["tx"] = -1
    nobody = dict.fromkeys((T0, T1), ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert subject.ask().result() == nobody
    subject.leaders["tx"] = 2
    moved = subject.ask()
    held = subject.brokers.take()
    subject.leaders["tx"] = 3
    subject.remote_partitions.reroute()
    subject.loop.run_ready()
    assert moved.result() == nobody
    closed = subject.ask()
    subject.remote_partitions.close()
    subject.loop.run_ready()
    assert closed.result() == nobody
    subject.brokers.lose(held)
    assert "RemotePartitions" in repr(subject.remote_partitions)
