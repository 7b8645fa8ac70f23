"""Small steps on futures: what to do with an answer, or with an error, that may already be there (both planes).

On one replica nearly every future is done when it is made; then these work at once, without a turn of the loop. A future that is cancelled
cancels what was made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.protocol.errors import KafkaError

R = TypeVar("R")
T = TypeVar("T")


class FutureMaker(Protocol):
    """A loop."""

    def create_future(self) -> asyncio.Future[Any]: ...


def when_done(future: asyncio.Future[T], callback: Callable[[asyncio.Future[T]], object]) -> None:
    """Call back with the future now if it is done, else when it is."""
    if future.done():
        callback(future)
    else:
        future.add_done_callback(callback)


def answered(
    loop: FutureMaker,
    future: asyncio.Future[T],
    on_result: Callable[[T], R],
    on_error: Callable[[KafkaError], R],
) -> asyncio.Future[R]:
    """A future of a response that never fails with a KafkaError: both outcomes become responses."""
    response: asyncio.Future[R] = loop.create_future()

    def step(done: asyncio.Future[T]) -> None:
        if response.done():
            return
        if done.cancelled():
            response.cancel()
            return
        try:
            try:
                result = on_result(done.result())
            except KafkaError as error:
                result = on_error(error)
        except Exception as error:
            response.set_exception(error)
        else:
            response.set_result(result)

    when_done(future, step)
    return response


def gathered(
    loop: FutureMaker, futures: Sequence[asyncio.Future[T]], combine: Callable[[list[T]], R]
) -> asyncio.Future[R]:
    """A future of all results, in the order of the futures; the first failure is its failure."""
    response: asyncio.Future[R] = loop.create_future()
    left = len(futures)

    def step(done: asyncio.Future[T]) -> None:
        nonlocal left
        left -= 1
        error = None if done.cancelled() else done.exception()  # a failure counts as seen, even a late one
        if response.done():
            return
        if done.cancelled():
            response.cancel()
        elif error is not None:
            response.set_exception(error)
        elif left == 0:
            response.set_result(combine([future.result() for future in futures]))

    if not futures:
        response.set_result(combine([]))
    for future in futures:
        when_done(future, step)
    return response


def mapped(loop: FutureMaker, future: asyncio.Future[T], on_result: Callable[[T], R]) -> asyncio.Future[R]:
    """A future of the result, changed by a function; errors stay errors."""
    response: asyncio.Future[R] = loop.create_future()

    def step(done: asyncio.Future[T]) -> None:
        error = None if done.cancelled() else done.exception()
        if response.done():
            return
        if done.cancelled():
            response.cancel()
        elif error is not None:
            response.set_exception(error)
        else:
            response.set_result(on_result(done.result()))

    when_done(future, step)
    return response


def after_all(futures: Iterable[asyncio.Future[Any]], then: Callable[[], None]) -> None:
    """Go on when all are done, however they ended; their exceptions count as seen."""
    waited = list(futures)
    left = len(waited)

    def one(done: asyncio.Future[Any]) -> None:
        nonlocal left
        if not done.cancelled():
            done.exception()
        left -= 1
        if not left:
            then()

    if not waited:
        then()
    for future in waited:
        when_done(future, one)
