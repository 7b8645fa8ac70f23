"""Steps: a coroutine runs on the spot and becomes a future only if it must wait.

Handlers and coordinators are coroutines, but most of their answers need no wait: on one replica an append is committed when
it returns. A task for each request would put every answer off to a later turn of the loop. So a coroutine is stepped instead:

    step(coroutine, loop)   ── runs to its first wait ──►  finished: its result, in this turn of the loop
                                                           waits:    a `Waiting`, a future that steps on when the wait is over

- Awaiting a done future does not suspend. Awaiting any other suspends every coroutine up to the `Waiting`.
- An exception leaves by the same way as a result: `step` raises it, or the `Waiting` fails with it. None is lost.
- Cancelling a `Waiting` cancels the future for which the coroutine waits; the coroutine sees `CancelledError`, as in a task.
- Long work gives the loop its turns (`turns`), and so does `gather` when it starts many coroutines.

Invariant: a coroutine that is stepped never runs in two places; after `step` returned a `Waiting`, only callbacks of the loop run it.

Left out: `asyncio.timeout` and everything else that needs the current task. There is no task; `sleep` of this module takes the loop.

Sources: PEP 492 (coroutines), the protocol between `asyncio.Task` and `asyncio.Future` (`_asyncio_future_blocking`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar, cast

from barnabas.turns import READ, RECORD, pace

__all__ = [
    "Loop",
    "Waiting",
    "gather",
    "in_background",
    "observe",
    "run",
    "run_on_the_spot",
    "shielded",
    "sleep",
    "start",
    "step",
]

logger = logging.getLogger(__name__)

R = TypeVar("R")


class Loop(Protocol):
    """The part of an event loop that steps need; the tests' loop in virtual time is another."""

    def create_future(self) -> asyncio.Future[Any]: ...

    def call_soon(self, callback: Any, /, *args: Any) -> Any: ...

    def call_later(self, delay: float, callback: Any, /, *args: Any) -> Any: ...

    def run_in_executor(self, executor: None, func: Any, /, *args: Any) -> Any: ...


class Waiting(asyncio.Future[R]):
    """The result of a coroutine that waits; made by `step` and `start`."""

    def __init__(self, coroutine: Coroutine[Any, Any, R], awaited: asyncio.Future[Any] | None, loop: Loop) -> None:
        super().__init__(loop=loop)  # type: ignore[arg-type]
        self._coroutine = coroutine
        self._awaited: asyncio.Future[Any] | None = None
        self._is_cancel_requested = False
        self._wait_for(awaited)

    def __repr__(self) -> str:
        return f"<Waiting {self._coroutine!r} done={self.done()}>"

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the future for which the coroutine waits; return False if the coroutine has ended."""
        if self.done():
            return super().cancel(msg)  # The exception is dropped if it was not retrieved, as with any future.
        if self._awaited is None or not self._awaited.cancel(msg):
            self._is_cancel_requested = True
        return True

    def _wait_for(self, awaited: asyncio.Future[Any] | None) -> None:
        self._awaited = awaited
        if awaited is None:
            self.get_loop().call_soon(self._resume)
            return
        awaited._asyncio_future_blocking = False
        awaited.add_done_callback(self._resume)
        if self._is_cancel_requested and awaited.cancel():
            self._is_cancel_requested = False

    def _resume(self, _: object = None) -> None:
        self._awaited = None
        try:
            if self._is_cancel_requested:
                self._is_cancel_requested = False
                awaited = self._coroutine.throw(asyncio.CancelledError())
            else:
                awaited = self._coroutine.send(None)
        except StopIteration as finished:
            self.set_result(finished.value)
        except asyncio.CancelledError:
            super().cancel()
        except (KeyboardInterrupt, SystemExit) as error:
            self.set_exception(error)
            raise
        except BaseException as error:
            self.set_exception(error)
        else:
            self._wait_for(awaited)


def step(coroutine: Coroutine[Any, Any, R], loop: Loop) -> R | asyncio.Future[R]:
    """Run a coroutine to its end or its first wait.

    Returns: the coroutine's result, or a future: a `Waiting`, or a cancelled future if the coroutine raised CancelledError.
    Raises: any exception of the coroutine before its first wait.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as finished:
        result: R = finished.value
        return result
    except asyncio.CancelledError:
        return _cancelled(loop)
    return Waiting(coroutine, awaited, loop)


_ENDED = object()


def run(coroutine: Coroutine[Any, Any, R | None], loop: Loop) -> asyncio.Future[R] | None:
    """As `step`, for a coroutine that returns None if it ends before its first wait: that end costs no exception.

    Returns: a future, or None if the coroutine has ended.
    """
    try:
        awaited = next(coroutine.__await__(), _ENDED)
    except asyncio.CancelledError:
        return _cancelled(loop)
    if awaited is _ENDED:
        return None
    waiting: asyncio.Future[Any] = Waiting(coroutine, cast("asyncio.Future[Any] | None", awaited), loop)
    return waiting


def start(coroutine: Coroutine[Any, Any, R], loop: Loop) -> asyncio.Future[R]:
    """As `step`, but return a future in every case: it is done if the coroutine has ended."""
    done: asyncio.Future[R] = loop.create_future()
    try:
        awaited = coroutine.send(None)
    except StopIteration as finished:
        done.set_result(finished.value)
    except asyncio.CancelledError:
        done.cancel()
    except Exception as error:
        done.set_exception(error)
    else:
        return Waiting(coroutine, awaited, loop)
    return done


def _cancelled(loop: Loop) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = loop.create_future()
    future.cancel()
    return future


def observe(future: asyncio.Future[Any]) -> None:
    """Keep the loop from reporting that nothing retrieved the exception of this future. A coroutine that awaits it still gets the error."""
    future.add_done_callback(_ask_for_exception)


def _ask_for_exception(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


def in_background(coroutine: Coroutine[Any, Any, object], loop: Loop) -> asyncio.Future[Any]:
    """Run a coroutine without a caller that waits for it; an exception is logged."""

    def log_failure(done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("%r failed", coroutine, exc_info=error)

    started = start(coroutine, loop)
    if started.done():
        log_failure(started)
    else:
        started.add_done_callback(log_failure)
    return started


def run_on_the_spot(coroutine: Coroutine[Any, Any, None], loop: Loop | None) -> None:
    """As `in_background`; without a loop the coroutine must end without a wait, and its exception is raised."""
    if loop is not None:
        in_background(coroutine, loop)
        return
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("without a loop nothing may wait")


async def gather(coroutines: Iterable[Coroutine[Any, Any, R]], loop: Loop, cost: int = READ) -> list[R]:
    """Run coroutines side by side and return their results in order.

    Each is stepped when it is taken from `coroutines`. The first failure (in their order) cancels the coroutines that still wait.

    Args:
        cost: of a coroutine up to its first wait, as in `turns`.
    """
    started: list[asyncio.Future[R]] = []
    try:
        for coroutine in coroutines:
            started.append(start(coroutine, loop))
            await pace(cost)
        results = []
        started.reverse()
        while started:
            results.append(await started[-1])
            # A future is freed with its result taken: to free 500,000 of them in one turn holds the loop for 20 ms.
            started.pop()
            await pace(RECORD)
        return results
    except GeneratorExit:
        raise  # The loop is gone, and nothing can be cancelled.
    except BaseException:
        for one in started:
            one.cancel()
            observe(one)  # It may still fail, on the way out.
        raise


async def shielded(work: Coroutine[Any, Any, R] | asyncio.Future[R], loop: Loop) -> R:
    """Wait for work that continues to its end when the waiting coroutine is cancelled.

    For a coroutine that must not stop half-way because its client closed the connection, and for a future that several wait for.
    """
    if not isinstance(work, asyncio.Future):
        work = start(work, loop)
    if work.done():
        return work.result()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(done: asyncio.Future[R]) -> None:
        # Asked for here, because the waiting coroutine may be cancelled before it asks.
        error = None if done.cancelled() else done.exception()
        if not waiter.done():
            waiter.set_result(None)
        elif error is not None:
            logger.info("%r failed after its waiter was cancelled: %s", done, error)

    work.add_done_callback(wake)
    await waiter
    return work.result()


async def sleep(seconds: float, loop: Loop) -> None:
    """Wait for a time of the given loop."""
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _wake, over)
    try:
        await over
    finally:
        timer.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
