"""Things that hold connections and are closed by the `with` that opened them. Shell plane.

Limits: leaving the block closes and nothing else; an exception passes through.
Source: java.lang.AutoCloseable, which Kafka's clients implement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """Closed on leaving a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Gives up what is held; closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
