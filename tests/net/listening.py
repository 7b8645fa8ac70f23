"""A listener with scripted answers on the running loop, and clients of it."""

from __future__ import annotations

import asyncio
import functools
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from barnabas.api.serving.context import RequestContext
from barnabas.net.listener import Listener
from barnabas.process.commands import new_event_loop
from tests.net.scripted_dispatcher import ScriptedDispatcher, response

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on asyncio's loop and on uvloop, whose transports differ in when they write."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        for factory in (asyncio.new_event_loop, new_event_loop):
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(test(**fixtures))

    return run


@asynccontextmanager
async def listening(answer: Callable[[RequestContext, bytes], Any], **limits: Any) -> AsyncIterator[Any]:
    dispatcher = ScriptedDispatcher(answer)
    listener = Listener(asyncio.get_running_loop(), host="127.0.0.1", **limits)
    await listener.bind()
    listener.serve(dispatcher)  # type: ignore[arg-type]
    try:
        yield listener, dispatcher
    finally:
        await listener.stop()


async def connect(listener: Listener, **options: Any) -> tuple[Reader, Writer]:
    return await asyncio.open_connection("127.0.0.1", listener.port, **options)


async def next_response(reader: Reader) -> tuple[int, bytes]:
    size, correlation_id = struct.unpack(">ii", await reader.readexactly(8))
    return correlation_id, await reader.readexactly(size - 4)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is true; the test's own timeout is the bound."""
    while not condition():
        await asyncio.sleep(0)


def echo(context: RequestContext, body: bytes) -> list[bytearray]:
    return [response(context.correlation_id, body)]
