"""Fetch requests of replicas that have everything: each waits for news, or until its time is over.

Kafka's name for it is `fetchPurgatory`. A request that is woken asks the node again, so a wake without news for it does no harm.
"""

from __future__ import annotations

from barnabas.pause import Pause
from barnabas.steps import Loop


class FetchPurgatory:
    """Requests that wait. They continue in a later turn of the loop, so that records appended in one turn leave in one answer."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: list[Pause] = []

    def __repr__(self) -> str:
        return f"<FetchPurgatory waiting={len(self._waiting)}>"

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, duration_ms: int) -> bool:
        """Wait for news; returns False when the time is over."""
        if duration_ms <= 0:
            return False
        pause = Pause(self._loop)
        self._waiting.append(pause)
        try:
            return await pause.or_woken(duration_ms / 1000)
        finally:
            if pause in self._waiting:
                self._waiting.remove(pause)

    def wake(self) -> None:
        """Tell all that there is news."""
        waiting, self._waiting = self._waiting, []
        for pause in waiting:
            pause.wake()
