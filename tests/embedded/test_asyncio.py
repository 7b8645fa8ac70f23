"""`async with barnabas.Broker()`: the caller's loop goes on while the broker starts and stops."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

import barnabas


def test_the_loop_goes_on_while_the_broker_starts_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and stop wait for something that only the caller's loop can do."""
    start, stop = barnabas.Broker.start, barnabas.Broker.stop

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def wait_for_the_loop() -> None:
            turned = threading.Event()
            loop.call_soon_threadsafe(turned.set)
            assert turned.wait(60)

        def slow_start(broker: barnabas.Broker) -> barnabas.Broker:
            wait_for_the_loop()
            return start(broker)

        def slow_stop(broker: barnabas.Broker) -> None:
            wait_for_the_loop()
            stop(broker)

        monkeypatch.setattr(barnabas.Broker, "start", slow_start)
        monkeypatch.setattr(barnabas.Broker, "stop", slow_stop)
        async with barnabas.Broker() as broker:
            broker.create_topic("orders")
            folder = broker.data_dir
        assert not broker.is_running
        assert not os.path.exists(folder)

    asyncio.run(main())


def test_a_failed_start_raises_its_error() -> None:
    async def main() -> None:
        with pytest.raises(barnabas.ConfigError, match=r"num\.partitions"):
            async with barnabas.Broker(config={"num.partitions": "x"}):
                pass

    asyncio.run(main())


def test_a_cancelled_start_leaves_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    start = barnabas.Broker.start
    starting, cancelled = threading.Event(), threading.Event()

    def start_late(broker: barnabas.Broker) -> barnabas.Broker:
        starting.set()
        assert cancelled.wait(60)
        return start(broker)

    monkeypatch.setattr(barnabas.Broker, "start", start_late)
    broker = barnabas.Broker()

    async def use() -> None:
        async with broker:
            raise AssertionError("entered")

    async def main() -> None:
        task = asyncio.create_task(use())
        await asyncio.to_thread(starting.wait, 60)
        task.cancel()
        asyncio.get_running_loop().call_soon(cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not broker.is_running

    asyncio.run(main())


def test_without_asyncio_it_says_what_to_use() -> None:
    entering = barnabas.Broker().__aenter__()
    with pytest.raises(RuntimeError, match="async with needs asyncio: elsewhere use a with statement"):
        entering.send(None)
