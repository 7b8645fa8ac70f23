"""An asyncio event loop in virtual time: a timer an hour away fires as soon as nothing is left to do before it.

The loop is asyncio's own, with a selector that never waits: asked to wait for `t` seconds, it moves the clock by `t`. Sockets do not
exist; servers and connections come from a `Network` in memory. Work for other threads runs at once, in order, so that a run depends on
nothing but its seed. If nothing is scheduled at all the simulated world has come to a stop, which is an error, not a wait for ever.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.network import Network


class Stuck(SystemExit):
    """Nothing is scheduled and nothing is ready, yet somebody still waits."""


class Crash(SystemExit):
    """The simulated process ends here, between two instructions. A SystemExit, because asyncio lets only such pass."""


class _NeverWaits(selectors.BaseSelector):
    def __init__(self) -> None:
        self.loop: VirtualLoop | None = None
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = key = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        if timeout is None:
            raise Stuck("nothing is scheduled in the simulation")
        self.loop.advance(max(timeout, 0.0))
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """One incarnation of the simulated world; `start` continues the clock of the one before."""

    def __init__(self, network: Network, start: float = 0.0) -> None:
        self._now = start
        selector = _NeverWaits()
        super().__init__(selector)
        selector.loop = self
        self.network = network
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def now_ms(self) -> int:
        """Wall time of the simulated world in epoch milliseconds: it began on 2026-01-01."""
        return 1_767_225_600_000 + int(self._now * 1000)

    def abandon(self) -> None:
        """Leave everything as a crash leaves it: nothing runs any more, and what is collected later may still talk to this loop."""
        self._close_self_pipe()  # type: ignore[attr-defined]

    def __del__(self, *_: object) -> None:
        """An abandoned loop is not closed, and that is no mistake."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()
        try:
            result = func(*args)
        except Exception as error:
            self.call_soon(_settle, future, None, error)
        else:
            self.call_soon(_settle, future, result, None)
        return future

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        return self.network.listen(self, protocol_factory, host or "127.0.0.1", port or 0)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        return await self.network.connect(self, protocol_factory, host, port)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if not future.done():
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
