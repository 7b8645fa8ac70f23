"""A thread that works while a block of a scenario runs."""

from __future__ import annotations

import threading
from typing import Self


class Worker:
    """Works in a thread of its own from the beginning of a `with` block to its end.

    Attributes:
        patience_seconds: how long the end of the block waits for the thread; None for as long as it takes.
    """

    patience_seconds: float | None = None

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        """Work until `_stopping` is set."""
        raise NotImplementedError

    @property
    def is_working(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stopping.set()
        self._thread.join(self.patience_seconds)
