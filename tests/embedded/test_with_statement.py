"""`with` and `async with`: start and stop are called once each, also if the caller is cancelled, and mistakes come out plainly."""

from __future__ import annotations

import asyncio
import threading
from typing import Self

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.embedded.with_statement import StartedByWith


class Started(StartedByWith):
    """It writes down what is called, and in which thread; `start` waits for `may_start`, and may fail."""

    def __init__(self, mistake: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.threads: set[int] = set()
        self.may_start = threading.Event()
        self.mistake = mistake

    def start(self) -> Self:
        self.threads.add(threading.get_ident())
        self.calls.append("start")
        assert self.may_start.wait(30)
        if self.mistake is not None:
            raise self.mistake
        self.calls.append("started")
        return self

    def stop(self) -> None:
        self.threads.add(threading.get_ident())
        self.calls.append("stop")


def test_with_starts_and_stops_here() -> None:
    subject = Started()
    subject.may_start.set()
    with subject as entered:
        assert entered is subject
        assert subject.calls == ["start", "started"]
    assert subject.calls == ["start", "started", "stop"]
    assert subject.threads == {threading.get_ident()}


def test_async_with_starts_and_stops_beside_the_loop() -> None:
    subject = Started()

    async def story() -> None:
        asyncio.get_running_loop().call_soon(subject.may_start.set)  # would never come if the start held the loop
        async with subject as entered:
            assert entered is subject
        assert subject.calls == ["start", "started", "stop"]

    asyncio.run(story())
    assert threading.get_ident() not in subject.threads


def test_a_start_that_is_cancelled_ends_and_is_stopped() -> None:
    subject = Started()

    async def story() -> None:
        entering = asyncio.ensure_future(subject.__aenter__())
        while not subject.calls:
            await asyncio.sleep(0)
        entering.cancel()
        await asyncio.sleep(0)
        assert not entering.done()
        subject.may_start.set()
        with pytest.raises(asyncio.CancelledError):
            await entering
        assert subject.calls == ["start", "started", "stop"]

    asyncio.run(story())


def test_a_start_that_fails_is_not_stopped_and_shows_no_frames_of_ours() -> None:
    subject = Started(CannotStart("the port is taken"))
    subject.may_start.set()

    async def story() -> None:
        with pytest.raises(CannotStart, match="the port is taken") as raised:
            async with subject:
                pass
        assert "start" not in [frame.name for frame in raised.traceback]

    asyncio.run(story())
    assert subject.calls == ["start"]


def test_another_loop_than_asyncios_is_told_apart() -> None:
    with pytest.raises(RuntimeError, match="async with needs asyncio"):
        Started().__aenter__().send(None)
