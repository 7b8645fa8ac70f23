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
    write.limit(loop, 1000)
    loop.advance(1000)
    assert code(future) is ErrorCode.REQUEST_TIMED_OUT
    assert outcomes == []
    write.finish(None)
    assert outcomes == [None]


def test_a_limit_is_for_the_clients_that_wait_since_then() -> None:
    loop = VirtualLoop()
    write = PendingWrite()
    early, late, later = (loop.create_future() for _ in range(3))
    write.waiters.append((CoordinatorResult(1), early))
    write.limit(loop, 1000)
    loop.advance(600)
    write.waiters.append((CoordinatorResult(2), late))
    write.limit(loop, 1000, 1)
    loop.advance(400)
    assert code(early) is ErrorCode.REQUEST_TIMED_OUT
    assert not late.done()
    loop.advance(600)
    assert code(late) is ErrorCode.REQUEST_TIMED_OUT
    write.waiters.append((CoordinatorResult(3), later))
    write.limit(loop, 1000, 2)
    write.finish(None)
    loop.advance(1000)
    assert later.result() == 3


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
