"""StatePersister: creates the topic and retries while the coordinator is not available."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.state_batches import StateBatch
from barnabas.share.persister import ATTEMPTS, StatePersister
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey
from barnabas.steps import start, step
from tests.coordinator.virtual_loop import VirtualLoop

TOPIC = b"t" * 16
KEY = SharePartitionKey("g", TOPIC, 3)
STATE = ShareGroupOffset(0, 4, 2, 7, 0, (StateBatch(8, 9, 2, 1),))
SUMMARY = StateSummary(4, 2, 7, 0)


class Coordinator:
    """Fails with each of the given errors in turn, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls: list[Any] = []

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        if self.errors:
            raise self.errors.pop(0)

    async def initialize(self, *call: Any) -> None:
        self._call(*call)

    async def read(self, *call: Any) -> ShareGroupOffset:
        self._call(*call)
        return STATE

    async def write(self, *call: Any) -> None:
        self._call(*call)

    async def summary(self, *call: Any) -> StateSummary:
        self._call(*call)
        return SUMMARY

    async def delete(self, *call: Any) -> None:
        self._call(*call)


class Host:
    def __init__(self, *errors: ErrorCode | Exception, has_topic: bool = True) -> None:
        self.loop = VirtualLoop()
        self.coordinator = Coordinator(
            *(KafkaError(error) if isinstance(error, ErrorCode) else error for error in errors)
        )
        self.has_topic = has_topic
        self.creations: list[asyncio.Future[None]] = []
        self.persister = StatePersister(
            self.coordinator,  # type: ignore[arg-type]
            self.loop,
            has_topic=lambda: self.has_topic,
            create_topic=self.create,
        )

    async def create(self) -> None:
        creation: asyncio.Future[None] = self.loop.create_future()
        self.creations.append(creation)
        await creation

    def delete(self) -> asyncio.Future[None]:
        return start(self.persister.delete(KEY), self.loop)


def test_every_call_reaches_the_coordinator() -> None:
    host = Host()
    persister = host.persister
    write = StateWrite(4, 2, 7, 1, (StateBatch(8, 9, 2, 1),))
    assert step(persister.read(KEY, 2), host.loop) == STATE
    assert step(persister.write(KEY, write), host.loop) is None
    assert step(persister.initialize(KEY, 5, -1), host.loop) is None
    assert step(persister.summary(KEY), host.loop) == SUMMARY
    assert step(persister.delete(KEY), host.loop) is None
    assert host.coordinator.calls == [(KEY, 2), (KEY, write), (KEY, 5, -1), (KEY,), (KEY,)]


def test_the_persister_creates_the_topic_before_its_first_call() -> None:
    host = Host(has_topic=False)
    future = host.delete()
    assert host.coordinator.calls == []
    host.creations[0].set_result(None)
    host.loop.run_ready()
    assert future.result() is None
    assert host.coordinator.calls == [(KEY,)]


@pytest.mark.parametrize(
    "error",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE],
)
def test_the_persister_retries_while_the_coordinator_is_not_available(error: ErrorCode) -> None:
    host = Host(error, error)
    future = host.delete()
    host.loop.advance(20)
    assert len(host.coordinator.calls) == 2
    assert not future.done()
    host.loop.advance(79)
    assert not future.done(), "the second wait is four times the first"
    host.loop.advance(1)
    assert future.result() is None
    assert len(host.coordinator.calls) == 3


def test_the_persister_gives_up_after_ten_seconds() -> None:
    host = Host(*[ErrorCode.NOT_COORDINATOR] * (ATTEMPTS + 5))
    future = host.delete()
    host.loop.advance(20 + 80 + 320 + 1_280 + 5_000 + 5_000)
    assert len(host.coordinator.calls) == ATTEMPTS
    assert code_of(future) is ErrorCode.NOT_COORDINATOR


def test_a_client_that_leaves_ends_the_retries() -> None:
    host = Host(*[ErrorCode.NOT_COORDINATOR] * ATTEMPTS)
    future = host.delete()
    future.cancel()
    host.loop.advance(60_000)
    assert future.cancelled()
    assert len(host.coordinator.calls) == 1


def test_a_rejection_is_not_retried() -> None:
    host = Host(ErrorCode.FENCED_STATE_EPOCH)
    assert code_of(host.delete()) is ErrorCode.FENCED_STATE_EPOCH
    assert len(host.coordinator.calls) == 1


def test_a_bug_reaches_the_caller() -> None:
    host = Host(ErrorCode.NOT_COORDINATOR, ValueError("a bug"))
    future = host.delete()
    host.loop.advance(100)
    assert isinstance(future.exception(), ValueError)


def code_of(future: asyncio.Future[Any]) -> ErrorCode:
    error = future.exception()
    assert isinstance(error, KafkaError)
    return error.code
