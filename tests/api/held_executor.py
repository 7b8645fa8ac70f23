"""A loop whose executor works when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.api.quiet_clock import QuietClock


class HeldExecutor(QuietClock):
    """The loop. `apart` names what its executor was given; while `held` is a list, the work waits in it."""

    def __init__(self) -> None:
        super().__init__()
        self.apart: list[str] = []
        self.held: list[tuple[asyncio.Future[Any], Callable[[], Any]]] | None = None

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        self.apart.append(getattr(func, "__qualname__", repr(func)))
        if self.held is None:
            return super().run_in_executor(executor, func, *args)
        future = self.create_future()
        self.held.append((future, lambda: func(*args)))
        return future

    def let_go(self) -> None:
        held, self.held = self.held or [], None
        for future, work in held:
            future.set_result(work())
