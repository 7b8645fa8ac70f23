"""The persister of a node that coordinates share partitions itself: it makes the topic, and asks again while it must."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.server.share_persister import ATTEMPTS, LocalPersister
from barnabas.share.settings import PersistedState
from barnabas.share.share_coordinator_shard import StateOutcome, StateSummary, StateWrite
from barnabas.share.state_batches import StateBatch
from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey
from tests.coordinator.virtual_loop import VirtualLoop

TOPIC = b"t" * 16
KEY = SharePartitionKey("g", TOPIC, 3)


class Coordinator:
    """Answers with errors as often as it is told, and then well."""

    def __init__(self, loop: VirtualLoop, *errors: ErrorCode) -> None:
        self.loop = loop
        self.errors = list(errors)
        self.asked: list[Any] = []

    def _answer(self, value: Any, *asked: Any) -> asyncio.Future[Any]:
        self.asked.append(asked)
        future: asyncio.Future[Any] = self.loop.create_future()
        future.set_result(StateOutcome.refused(self.errors.pop(0), "no") if self.errors else StateOutcome(value))
        return future

    def initialize(self, *asked: Any) -> asyncio.Future[Any]:
        return self._answer(None, *asked)

    def read(self, *asked: Any) -> asyncio.Future[Any]:
        return self._answer(ShareGroupOffset(0, 4, 2, 7, 0, (StateBatch(8, 9, 2, 1),)), *asked)

    def write(self, *asked: Any) -> asyncio.Future[Any]:
        return self._answer(None, *asked)

    def summary(self, *asked: Any) -> asyncio.Future[Any]:
        return self._answer(StateSummary(4, 2, 7, 0), *asked)

    def delete(self, *asked: Any) -> asyncio.Future[Any]:
        return self._answer(None, *asked)


class Host:
    def __init__(self, *errors: ErrorCode, has_topic: bool = True) -> None:
        self.loop = VirtualLoop()
        self.coordinator = Coordinator(self.loop, *errors)
        self.has_topic = has_topic
        self.created = 0
        self.persister = LocalPersister(
            self.coordinator,  # type: ignore[arg-type]
            self.loop,  # type: ignore[arg-type]
            has_topic=lambda: self.has_topic,
            create_topic=self.create,
        )

    def create(self) -> asyncio.Future[Any]:
        self.created += 1
        self.has_topic = True
        future: asyncio.Future[Any] = self.loop.create_future()
        future.set_result(None)
        return future


def test_every_call_reaches_the_coordinator() -> None:
    host = Host()
    persister = host.persister
    assert persister.read_state("g", TOPIC, 3, 2).result() == PersistedState(4, 7, (StateBatch(8, 9, 2, 1),))
    write = {"state_epoch": 4, "leader_epoch": 2, "start_offset": 7, "delivery_complete_count": 1}
    assert persister.write_state("g", TOPIC, 3, **write, batches=[(8, 9, 2, 1)]).result() is None
    assert persister.initialize_state("g", TOPIC, 3, 5, -1).result() is None
    assert persister.read_summary("g", TOPIC, 3).result() == StateSummary(4, 2, 7, 0)
    assert persister.delete_state("g", TOPIC, 3).result() is None
    assert host.coordinator.asked == [
        (KEY, 2),
        (KEY, StateWrite(4, 2, 7, 1, (StateBatch(8, 9, 2, 1),))),
        (KEY, 5, -1),
        (KEY,),
        (KEY,),
    ]


def test_the_topic_is_made_first() -> None:
    host = Host(has_topic=False)
    future = host.persister.delete_state("g", TOPIC, 3)
    host.loop.run_ready()
    assert future.done()
    assert host.created == 1


@pytest.mark.parametrize(
    "error",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE],
)
def test_it_asks_again(error: ErrorCode) -> None:
    host = Host(error, error)
    future = host.persister.delete_state("g", TOPIC, 3)
    host.loop.run_ready()
    assert not future.done()
    host.loop.advance(100)
    assert future.result() is None
    assert len(host.coordinator.asked) == 3


def test_it_gives_up_in_the_end() -> None:
    host = Host(*[ErrorCode.NOT_COORDINATOR] * (ATTEMPTS + 5))
    future = host.persister.delete_state("g", TOPIC, 3)
    host.loop.advance(60_000)
    assert len(host.coordinator.asked) == ATTEMPTS
    _fails(future.result, ErrorCode.NOT_COORDINATOR)


def test_a_refusal_is_final() -> None:
    host = Host(ErrorCode.FENCED_STATE_EPOCH)
    _fails(host.persister.delete_state("g", TOPIC, 3).result, ErrorCode.FENCED_STATE_EPOCH)
    assert len(host.coordinator.asked) == 1


def _fails(call: Callable[[], Any], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        call()
    assert raised.value.code is code
