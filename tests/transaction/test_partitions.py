"""What a broker asks the transaction coordinator before an append, and what the client learns of a refusal."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.steps import start
from barnabas.transaction.partitions import Errors, TransactionSupportedOperation, add_or_verify
from barnabas.transaction.transaction_state import TransactionState
from tests.transaction.one_coordinator import Subject

T0, T1 = ("t", 0), ("t", 1)
DEFAULT, GENERIC, ADD = TransactionSupportedOperation


@pytest.mark.parametrize(("version", "operation"), [(10, DEFAULT), (11, GENERIC), (12, ADD), (13, ADD)])
def test_of_produce(version: int, operation: TransactionSupportedOperation) -> None:
    assert TransactionSupportedOperation.of_produce(version) is operation


@pytest.mark.parametrize(("version", "operation"), [(3, DEFAULT), (4, GENERIC), (5, ADD), (6, ADD)])
def test_of_txn_offset_commit(version: int, operation: TransactionSupportedOperation) -> None:
    assert TransactionSupportedOperation.of_txn_offset_commit(version) is operation


def test_only_clients_whose_partitions_are_added_know_epoch_bumps() -> None:
    assert [operation.supports_epoch_bump for operation in (DEFAULT, GENERIC, ADD)] == [False, False, True]


def errors(
    subject: Subject, producer: tuple[int, int], operation: TransactionSupportedOperation, name: str = "tx"
) -> Errors:
    asked = add_or_verify(subject.coordinator, name, *producer, [T0, T1], operation)
    answered: Errors = start(asked, subject.loop).result()
    return answered


def test_partitions_are_added_for_a_client_that_relies_on_it() -> None:
    subject = Subject()
    begun = subject.init().result()
    assert errors(subject, (begun.producer_id, 0), ADD) == {}
    assert subject.state() is TransactionState.ONGOING
    tx = start(subject.coordinator.describe("tx"), subject.loop).result()
    assert (tx.partitions, tx.client_transaction_version) == ({T0, T1}, 2)


@pytest.mark.parametrize(
    ("operation", "code"), [(DEFAULT, ErrorCode.INVALID_TXN_STATE), (GENERIC, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_partitions_are_verified_for_other_clients(operation: TransactionSupportedOperation, code: ErrorCode) -> None:
    subject = Subject()
    assert errors(subject, subject.begin(), operation) == {T1: code}, "t-0 is in the transaction"


@pytest.mark.parametrize("operation", list(TransactionSupportedOperation))
def test_a_refusal_is_the_error_of_all_partitions(operation: TransactionSupportedOperation) -> None:
    subject = Subject()
    producer_id, epoch = subject.begin()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH
    assert errors(subject, (producer_id, epoch + 1), operation) == {T0: fenced, T1: fenced}
    other = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert errors(subject, (producer_id + 1, epoch), operation) == {T0: other, T1: other}
    assert errors(subject, (producer_id, epoch), operation, name="") == {
        T0: ErrorCode.INVALID_REQUEST,
        T1: ErrorCode.INVALID_REQUEST,
    }
