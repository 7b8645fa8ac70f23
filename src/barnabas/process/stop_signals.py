"""SIGTERM and SIGINT of a command that runs until it is stopped: the first asks for a stop, a later one ends the process.

A node of `barnabas start --nodes` also heeds its standard input, which its supervisor holds:

    "leave\\n"   all nodes stop: give up what this one leads, say `barnabas left`, and wait for the end of the input
    the end      stop; if nothing was said before, the supervisor has died
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable

__all__ = ["LEAVE", "LEFT", "StopSignals"]

LEAVE = b"leave\n"
LEFT = b"barnabas left\n"

logger = logging.getLogger(__name__)

# `timeout` and task runners signal both the process and its group: the same signal arrives twice.
_ONE_SIGNAL_SECONDS = 1.0


class StopSignals:
    """Waits for a signal, from the moment it is made.

    Args:
        at_once: called before a later signal ends the process.

    Attributes:
        asked: done when something has asked for a stop.
        with_others: all nodes stop; set before `asked`.
        input_ended: done when standard input has ended, if it is heeded.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, at_once: Callable[[], None] = lambda: None) -> None:
        self.asked: asyncio.Future[None] = loop.create_future()
        self.with_others = False
        self.input_ended: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._at_once = at_once
        self._first_at = 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._arrived, number)

    def __repr__(self) -> str:
        return f"<StopSignals asked={self.asked.done()}>"

    def heed_input(self) -> None:
        """Ask for a stop also when standard input says so, or ends."""
        self._loop.add_reader(sys.stdin.fileno(), self._read)

    def ignore(self) -> None:
        """Let no later signal change how the process ends."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _arrived(self, number: signal.Signals) -> None:
        if not self.asked.done():
            self._first_at = self._loop.time()
            logger.info("Stopping: %s (another one ends the process at once, as a kill does)", number.name)
            self.asked.set_result(None)
        elif self._loop.time() - self._first_at >= _ONE_SIGNAL_SECONDS:
            self._at_once()
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def _read(self) -> None:
        said = os.read(sys.stdin.fileno(), 4096)
        if not said:
            self._loop.remove_reader(sys.stdin.fileno())
            self.input_ended.set_result(None)
        if self.asked.done() or (said and LEAVE not in said):
            return
        self.with_others = bool(said)
        logger.info("Stopping: %s", "all nodes stop" if said else "the process that started this one has ended")
        self.asked.set_result(None)
