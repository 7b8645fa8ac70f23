"""Producer ids from the controller's blocks."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AllocateProducerIdsResponse
from barnabas.steps import start
from barnabas.transaction.producer_id_manager import ProducerIdManager
from tests.coordinator.virtual_loop import VirtualLoop


class Controller:
    """Hands out blocks of ten when told to."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.next_id = 1000
        self.asked: list[asyncio.Future[Any]] = []
        self.manager = ProducerIdManager(self.loop, self._allocate)

    def generate(self) -> asyncio.Future[int]:
        return start(self.manager.generate(), self.loop)

    def _allocate(self) -> asyncio.Future[Any]:
        self.asked.append(self.loop.create_future())
        return self.asked[-1]

    def give(self, error: ErrorCode = ErrorCode.NONE) -> None:
        response = AllocateProducerIdsResponse(error_code=error, producer_id_start=self.next_id, producer_id_len=10)
        self.next_id += 10
        self.asked[-1].set_result(response)
        self.loop.run_ready()


def test_ids_ascend_across_blocks() -> None:
    controller = Controller()
    assert controller.asked == [], "nothing is asked for before it is needed"
    first = controller.generate()
    assert not first.done()
    controller.give()
    ids = [first.result()] + [controller.generate().result() for _ in range(7)]
    assert len(controller.asked) == 1
    ids += [controller.generate().result()]
    assert len(controller.asked) == 2, "the next block is asked for while a tenth is left"
    ids += [controller.generate().result()]
    waiting = controller.generate()
    assert not waiting.done()
    controller.give()
    ids += [waiting.result()]
    assert ids == list(range(1000, 1011))
    assert len(controller.asked) == 2


def test_waiting_requests_share_one_allocation() -> None:
    controller = Controller()
    waiting = [controller.generate() for _ in range(12)]
    assert len(controller.asked) == 1
    controller.give()
    assert [future.done() for future in waiting] == [True] * 10 + [False] * 2
    controller.give()
    assert [future.result() for future in waiting] == list(range(1000, 1012))


def test_a_rejected_allocation_fails_waiting_requests_and_the_next_request_retries() -> None:
    controller = Controller()
    waiting = controller.generate()
    controller.give(ErrorCode.STALE_BROKER_EPOCH)
    error = waiting.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    waiting = controller.generate()
    controller.asked[-1].set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
    controller.loop.run_ready()
    assert waiting.exception() is not None
    waiting = controller.generate()
    controller.give()
    assert waiting.result() == 1010


def test_a_client_that_closed_its_connection_uses_no_id() -> None:
    controller = Controller()
    controller.generate().cancel()
    stays = controller.generate()
    controller.give()
    assert stays.result() == 1000


def test_a_request_waits_for_a_moment_and_the_allocation_goes_on() -> None:
    controller = Controller()
    waiting = controller.generate()
    controller.loop.advance(999)
    assert not waiting.done()
    controller.loop.advance(1)
    error = waiting.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "clients try again after it"
    again = controller.generate()
    assert len(controller.asked) == 1, "the allocation of before is under way"
    controller.give()
    assert again.result() == 1000
