"""The first signal asks for a stop, a later one ends the process; the end of the input may ask for it, too."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from barnabas.process.stop_signals import LEAVE, StopSignals


class StoppedLoop:
    """Only what `StopSignals` calls, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.handlers: dict[signal.Signals, Callable[[], None]] = {}
        self.readers: dict[int, Callable[[], None]] = {}

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=asyncio.new_event_loop())

    def add_signal_handler(self, number: signal.Signals, handler: Callable[..., None], *values: object) -> None:
        self.handlers[number] = lambda: handler(*values)

    def add_reader(self, number: int, reader: Callable[[], None]) -> None:
        self.readers[number] = reader

    def remove_reader(self, number: int) -> None:
        del self.readers[number]


def test_a_later_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = StoppedLoop()
    ends: list[tuple[str, object]] = []
    signals = StopSignals(loop, lambda: ends.append(("at once", None)))  # type: ignore[arg-type]
    monkeypatch.setattr(signal, "signal", lambda number, handler: ends.append(("handler", (number, handler))))
    monkeypatch.setattr(signal, "raise_signal", lambda number: ends.append(("raised", number)))
    loop.handlers[signal.SIGINT]()
    assert signals.asked.done()
    loop.now = 0.9
    loop.handlers[signal.SIGINT]()
    assert ends == []
    loop.now = 1.0
    loop.handlers[signal.SIGTERM]()
    assert ends == [("at once", None), ("handler", (signal.SIGTERM, signal.SIG_DFL)), ("raised", signal.SIGTERM)]
    signals.asked.get_loop().close()


class Input:
    """A node's standard input, which another process holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = StoppedLoop()
        self._read, self._write = os.pipe()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: self._read))
        self.signals = StopSignals(self.loop)  # type: ignore[arg-type]
        self.signals.heed_input()

    def write(self, words: bytes) -> None:
        os.write(self._write, words)
        self.loop.readers[self._read]()

    def end(self) -> None:
        os.close(self._write)
        self.loop.readers[self._read]()
        assert self.loop.readers == {}

    @property
    def state(self) -> tuple[bool, bool, bool]:
        signals = self.signals
        return signals.asked.done(), signals.with_others, signals.input_ended.done()


def test_the_end_of_the_input_asks_for_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Input(monkeypatch)
    given.write(b"words that nobody reads")
    assert given.state == (False, False, False)
    given.end()
    assert given.state == (True, False, True)


def test_all_nodes_stop_if_the_input_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Input(monkeypatch)
    given.write(LEAVE)
    assert given.state == (True, True, False)
    given.end()
    assert given.state == (True, True, True)


def test_a_node_that_stops_already_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Input(monkeypatch)
    given.loop.handlers[signal.SIGTERM]()
    given.write(LEAVE)
    assert given.state == (True, False, False)
    given.end()
    assert given.state == (True, False, True)
