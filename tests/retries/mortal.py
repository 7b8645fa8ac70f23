"""A producer that dies at a chosen moment: before or after any of its calls, as a process that is killed there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer


class Killed(BaseException):
    """The process is dead."""


class Mortal:
    """A producer of the library that lives for so many moments; each call has one before and one after it.

    Args:
        moments: None lives for ever.
    """

    CALLS = (
        "init_transactions", "begin_transaction", "produce", "send_offsets_to_transaction", "commit_transaction", "abort_transaction",
    )  # fmt: skip

    def __init__(self, settings: dict[str, Any], moments: int | None) -> None:
        self._producer = Producer(settings)
        self._left = moments

    def __len__(self) -> int:
        return len(self._producer)

    def __getattr__(self, name: str) -> Any:
        call: Callable[..., Any] = getattr(self._producer, name)
        if name not in self.CALLS:
            return call

        def mortal(*arguments: Any, **named: Any) -> None:
            self._pass(f"before {name}")
            call(*arguments, **named)
            if name == "produce":
                # What the library has not sent yet would die with the process: the worst is that the broker has it.
                self._producer.flush(30)
            self._pass(f"after {name}")

        return mortal

    def _pass(self, moment: str) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Killed(moment)
