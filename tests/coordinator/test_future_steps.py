"""Steps on futures that are done, and on futures that are not."""

from __future__ import annotations

import pytest

from barnabas.coordinator.future_steps import answered, gathered, mapped
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.virtual_loop import VirtualLoop

ERROR = KafkaError(ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize("early", [True, False])
def test_answered(early: bool) -> None:
    loop = VirtualLoop()
    good, bad, bug = (loop.create_future() for _ in range(3))

    def settle() -> None:
        good.set_result(1)
        bad.set_exception(ERROR)
        bug.set_exception(ValueError())

    if early:
        settle()
    answers = [answered(loop, future, str, lambda error: error.code.name) for future in (good, bad, bug)]
    if not early:
        settle()
        loop.run_ready()
    assert [answer.result() for answer in answers[:2]] == ["1", "NOT_COORDINATOR"]
    assert isinstance(answers[2].exception(), ValueError)


def test_answered_may_refuse_an_error() -> None:
    loop = VirtualLoop()
    future = loop.create_future()
    future.set_exception(ERROR)

    def refuse(error: KafkaError) -> str:
        raise error

    assert answered(loop, future, str, refuse).exception() is ERROR


def test_a_cancelled_answer_is_left_alone() -> None:
    loop = VirtualLoop()
    future = loop.create_future()
    steps = [answered(loop, future, str, str), mapped(loop, future, str), gathered(loop, [future], str)]
    for step in steps:
        step.cancel()
    future.set_result(1)
    loop.run_ready()
    assert all(step.cancelled() for step in steps)


@pytest.mark.parametrize("answers_first", [True, False])
def test_what_is_cancelled_cancels_the_answer(answers_first: bool) -> None:
    loop = VirtualLoop()
    future, other = loop.create_future(), loop.create_future()
    steps = [
        answered(loop, future, str, str),
        mapped(loop, future, str),
        gathered(loop, [future, other], str),
        gathered(loop, [other, future], str),
    ]
    for step in steps if answers_first else ():
        step.cancel()  # as when a connection goes away, which cancels what the answer waited for
    future.cancel()
    loop.run_ready()
    other.set_exception(ERROR)
    loop.run_ready()
    assert all(step.cancelled() for step in steps)


def test_mapped() -> None:
    loop = VirtualLoop()
    future = loop.create_future()
    step = mapped(loop, future, str)
    future.set_result(1)
    loop.run_ready()
    assert step.result() == "1"
    failed = loop.create_future()
    failed.set_exception(ERROR)
    assert mapped(loop, failed, str).exception() is ERROR


def test_gathered() -> None:
    loop = VirtualLoop()
    assert gathered(loop, [], list).result() == []
    futures = [loop.create_future() for _ in range(3)]
    step = gathered(loop, futures, list)
    for index in (2, 0, 1):
        futures[index].set_result(index)
    loop.run_ready()
    assert step.result() == [0, 1, 2]
    futures = [loop.create_future() for _ in range(2)]
    step = gathered(loop, futures, list)
    futures[1].set_exception(ERROR)
    futures[0].set_result(0)
    loop.run_ready()
    assert step.exception() is ERROR
