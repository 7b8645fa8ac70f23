"""A batch on its way, and who waits for it."""

from __future__ import annotations

from typing import Any

from barnabas.coordinator.shard_context import PendingWrite, ShardContext
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.sums import Sum
from tests.coordinator.virtual_loop import VirtualLoop


def test_everyone_is_told_once() -> None:
    loop, told = VirtualLoop(), list[Any]()
    write = PendingWrite()
    write.waiters += [told.append, told.append]
    write.timeout = loop.call_later(1, write.finish, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    write.finish(None)
    write.finish(KafkaError(ErrorCode.NOT_COORDINATOR))
    loop.advance(2000)
    assert told == [None, None]


def test_repr() -> None:
    timer = CoordinatorTimer(VirtualLoop().call_later, lambda key, operation: None)
    context = ShardContext(3, 7, Sum(3, timer), timer)
    assert repr(context) == "ShardContext(3 loading epoch=7 next=0)"
