"""Delayed operations: notified, expired, cancelled, failed."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.replication.purgatory import DelayedOperation, Purgatory
from tests.replication.hosting import Hosting


class Counting(DelayedOperation):
    """Finishes when enough was notified."""

    __slots__ = ("missing",)

    def __init__(self, loop: asyncio.AbstractEventLoop, missing: int) -> None:
        super().__init__(loop.create_future())
        self.missing = missing

    def notified(self, amount: int) -> None:
        self.missing -= amount
        if self.missing <= 0:
            self.finish("enough")

    def expired(self) -> None:
        self.finish("late")


def waiting(hosting: Hosting, purgatory: Purgatory, keys: str, *, missing: int = 1, timeout_ms: int = 100) -> Counting:
    operation = Counting(hosting.loop, missing)
    purgatory.watch(operation, keys, timeout_ms)
    return operation


def test_a_notification_finishes_and_leaves_nothing_behind(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)
    operation = waiting(hosting, purgatory, "abc", missing=3)
    purgatory.notify("a", 1)
    purgatory.notify("x", 9)
    assert not operation.future.done()
    assert repr(purgatory) == "<Purgatory name=test watched=1 keys=3>"
    purgatory.notify("c", 2)
    assert operation.future.result() == "enough"
    assert repr(purgatory) == "<Purgatory name=test watched=0 keys=0>"
    hosting.advance(1000)
    assert operation.future.result() == "enough"


def test_an_operation_expires_after_its_timeout(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)
    operation = waiting(hosting, purgatory, "a")
    hosting.advance(99)
    assert not operation.future.done()
    hosting.advance(1)
    assert operation.future.result() == "late"
    assert purgatory.watched == 0
    assert not purgatory.watchers
    long = waiting(hosting, purgatory, "a", timeout_ms=60_000)
    hosting.advance(59_999)
    assert not long.future.done()
    hosting.advance(1)
    assert long.future.result() == "late"


def test_a_failure_when_the_time_runs_out_reaches_the_answer(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)

    class Failing(Counting):
        def expired(self) -> None:
            raise RuntimeError("a bug")

    operation = Failing(hosting.loop, 1)
    purgatory.watch(operation, "b", 100)
    hosting.advance(100)
    assert str(operation.future.exception()) == "a bug"
    assert not purgatory.watchers


def test_a_cancelled_future_removes_its_operation(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)
    operation = waiting(hosting, purgatory, "ab")
    operation.future.cancel()
    hosting.spin()
    assert operation.is_finished
    assert repr(purgatory) == "<Purgatory name=test watched=0 keys=0>"
    purgatory.notify("a", 1)


def test_a_key_named_twice_is_watched_once(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)
    operation = waiting(hosting, purgatory, "aa", missing=2)
    purgatory.notify("a", 1)
    assert not operation.future.done()
    purgatory.notify("a", 1)
    assert not purgatory.watchers


def test_operations_are_notified_in_their_order_even_while_others_finish(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)
    order: list[str] = []

    class Naming(Counting):
        __slots__ = ("name", "others")

        def notified(self, amount: int) -> None:
            order.append(self.name)
            for other in self.others:
                other.finish(None)
            self.finish(None)

    operations: list[Any] = [Naming(hosting.loop, 1) for _ in range(4)]
    for name, operation in zip("abcd", operations, strict=True):
        operation.name, operation.others = name, []
        purgatory.watch(operation, ["k"], 100)
    operations[1].others = [operations[2]]
    purgatory.notify("k", 1)
    assert order == ["a", "b", "d"]


def test_ten_thousand_waits_leave_nothing_behind(hosting: Hosting) -> None:
    purgatory = Purgatory("test", hosting.loop)
    operations = [waiting(hosting, purgatory, f"{n % 100}", timeout_ms=1 + n % 50) for n in range(10_000)]
    for n, operation in enumerate(operations):
        if n % 3 == 0:
            operation.future.cancel()
    for key in range(0, 100, 2):
        purgatory.notify(str(key), 1)
    hosting.advance(60)
    assert all(operation.is_finished and operation.future.done() for operation in operations)
    assert purgatory.watched == 0
    assert not purgatory.watchers
    assert {operation.future.result() for operation in operations if not operation.future.cancelled()} == {
        "enough",
        "late",
    }


def test_an_exception_in_a_notification_fails_only_its_operation(hosting: Hosting) -> None:
    class Breaking(Counting):
        def notified(self, amount: int) -> None:
            raise ValueError("a bug")

    purgatory = Purgatory("test", hosting.loop)
    broken = Breaking(hosting.loop, 1)
    purgatory.watch(broken, "a", 100)
    behind = waiting(hosting, purgatory, "a")
    purgatory.notify("a", 1)
    assert isinstance(broken.future.exception(), ValueError)
    assert behind.future.result() == "enough"
