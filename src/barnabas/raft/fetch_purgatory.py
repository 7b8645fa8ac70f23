"""Fetch requests of replicas that have everything: each waits for news, or until its time is over.

Kafka's name for it is `fetchPurgatory`. A request that is woken asks the node again, so a wake without news for it does no harm.
"""

from __future__ import annotations

import asyncio

from barnabas.steps import Loop


class FetchPurgatory:
    """Requests that wait. They go on in a later turn of the loop, so that records appended in one turn leave in one answer."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[bool]] = []

    def __repr__(self) -> str:
        return f"<FetchPurgatory waiting={len(self._waiting)}>"

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, duration_ms: int) -> bool:
        """Wait for news; returns False when the time is over."""
        if duration_ms <= 0:
            return False
        woken: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append(woken)
        timer = self._loop.call_later(duration_ms / 1000, _set, woken, False)
        try:
            return await woken
        finally:
            timer.cancel()
            if woken in self._waiting:
                self._waiting.remove(woken)

    def wake(self) -> None:
        """Tell all that there is news."""
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            _set(woken, True)


def _set(future: asyncio.Future[bool], result: bool) -> None:
    if not future.done():
        future.set_result(result)
