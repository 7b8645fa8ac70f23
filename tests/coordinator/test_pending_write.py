"""A pending write, and the operations that wait for it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordinator.pending_write import PendingWrite, settle
from barnabas.coordinator.result import CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.sums import code
from tests.coordinator.virtual_loop import VirtualLoop


def test_each_operation_is_settled_once() -> None:
    loop, outcomes = VirtualLoop(), list[Any]()
    write = PendingWrite()
    future = loop.create_future()
    write.waiters += [(CoordinatorResult(5, on_append=outcomes.append), future), (CoordinatorResult(6), None)]
    write.finish(None)
    write.finish(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert outcomes == [None]
    assert future.result() == 5
    assert repr(write) == "<PendingWrite committed=False waiters=0>"


def test_a_client_times_out_and_its_operation_learns_the_outcome_later() -> None:
    loop, outcomes = VirtualLoop(), list[Any]()
    write = PendingWrite()
    future = loop.create_future()
    write.waiters += [(CoordinatorResult(5, on_append=outcomes.append), future), (CoordinatorResult(6), None)]
    write.timeout = loop.call_later(1, write.expire)  # type: ignore[assignment]
    loop.advance(1000)
    assert code(future) is ErrorCode.REQUEST_TIMED_OUT
    assert outcomes == []
    write.finish(None)
    assert outcomes == [None]


@pytest.mark.parametrize("error", [None, KafkaError(ErrorCode.NOT_COORDINATOR)])
def test_a_bug_in_on_append_reaches_the_answer_and_the_operations_behind_it(error: KafkaError | None) -> None:
    loop = VirtualLoop()
    write = PendingWrite()
    broken, other = loop.create_future(), loop.create_future()
    write.waiters += [(CoordinatorResult(5, on_append=lambda _: 1 // 0), broken), (CoordinatorResult(6), other)]  # type: ignore[arg-type,list-item,return-value]
    write.finish(error)
    assert isinstance(broken.exception(), ZeroDivisionError)
    assert other.exception() is error


def test_a_cancelled_answer_is_left_alone() -> None:
    future = VirtualLoop().create_future()
    future.cancel()
    settle(CoordinatorResult(5), future, None)
    assert future.cancelled()
