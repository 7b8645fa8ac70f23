"""`with` and `async with` for what starts and stops: `barnabas.Broker`, `barnabas.Cluster`.

`start` and `stop` block. `async with` runs them in a thread, beside the caller's asyncio loop. No thread can be cancelled: if the caller
is cancelled meanwhile, it waits for the thread, and leaves nothing running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import ConfigError

__all__ = ["StartedByWith"]

__tracebackhide__ = True  # pytest's reports end at the caller's line


class StartedByWith:
    """A base: the statement calls `start`, and `stop` at its end."""

    def start(self) -> Self:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        try:
            await _in_a_thread(self.start)
        except asyncio.CancelledError:
            await _in_a_thread(self.stop)
            raise
        except (CannotStart, ConfigError) as mistake:
            raise mistake.with_traceback(None) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _in_a_thread(self.stop)


async def _in_a_thread(work: Callable[[], object]) -> None:
    """Run blocking work beside the caller's loop."""
    try:
        running = asyncio.get_running_loop().create_task(asyncio.to_thread(work))
    except RuntimeError:
        raise RuntimeError(
            "async with needs asyncio: elsewhere use a with statement, which blocks for a moment"
        ) from None
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise
