"""One sampler for all viewers, and none without."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.look import Look
from barnabas.console.sampler import Sampler
from tests.console.conftest import cluster_at


def test_viewers_share_looks_and_the_last_one_ends_them(broker: barnabas.Broker) -> None:
    async def watch() -> None:
        cluster = cluster_at(broker.bootstrap_servers)
        sampler = Sampler(cluster, interval_s=3600)
        first, second = sampler.looks(), sampler.looks()
        async with contextlib.aclosing(first), contextlib.aclosing(second):
            seen = await asyncio.gather(next_of(first), next_of(second))
            assert seen[0] is seen[1]
            assert (sampler.viewers, sampler.is_running) == (2, True)
            await first.aclose()
            assert (sampler.viewers, sampler.is_running) == (1, True)
        assert (sampler.viewers, sampler.is_running) == (0, False)
        # A page that opens now shows what the viewers saw.
        assert (await sampler.latest())[0] is seen[0]
        cluster.close()

    asyncio.run(watch())


async def next_of(looks: AsyncGenerator[tuple[Look, Look | None], None]) -> Look:
    return (await anext(looks))[0]


def test_an_old_look_is_replaced_and_kept_for_rates(broker: barnabas.Broker) -> None:
    now = [100.0]

    async def watch() -> None:
        cluster = cluster_at(broker.bootstrap_servers)
        sampler = Sampler(cluster, interval_s=5, patience_s=60, clock=lambda: now[0])
        first, before = await sampler.latest()
        assert before is None
        now[0] += 6
        second, before = await sampler.latest()
        assert (before is first, second.at_s) == (True, 106.0)
        # Pages that reload make lines, too; a page an hour later begins another.
        now[0] += 20
        await sampler.latest()
        assert [each.begins for each in sampler.history.total_lag()] == [True, False, True]
        cluster.close()

    asyncio.run(watch())


def test_a_page_does_not_wait_for_a_slow_look_if_there_is_an_older_one(broker: barnabas.Broker) -> None:
    now = [100.0]

    async def watch() -> None:
        cluster = cluster_at(broker.bootstrap_servers)
        sampler = Sampler(cluster, interval_s=5, patience_s=0, clock=lambda: now[0])
        first, _ = await sampler.latest()
        now[0] += 6
        assert await sampler.latest() == (first, None)
        while (await sampler.latest())[0] is first:
            await asyncio.sleep(0.01)
        assert (await sampler.latest())[1] is first
        cluster.close()

    asyncio.run(watch())


def test_what_a_look_raises_reaches_every_viewer_and_later_ones_look_again() -> None:
    async def watch() -> None:
        def connect() -> Admin:
            raise RuntimeError("a mistake in the console")

        cluster = AskedCluster("local", connect)
        sampler = Sampler(cluster)
        for _ in range(2):
            views = [sampler.looks() for _ in range(2)]
            seen = await asyncio.gather(*map(next_of, views), return_exceptions=True)
            assert [str(each) for each in seen] == ["a mistake in the console"] * 2
            assert (sampler.viewers, sampler.is_running) == (0, False)
        cluster.close()

    asyncio.run(asyncio.wait_for(watch(), 60))


def test_a_cluster_that_is_down_comes_back(broker: barnabas.Broker) -> None:
    """A look without an answer is shown, and is not the one that rates are made from."""
    now = [100.0]
    addresses = [broker.bootstrap_servers, "127.0.0.1:1", broker.bootstrap_servers]

    async def watch() -> None:
        looks: list[tuple[Look, Look | None]] = []
        cluster = AskedCluster("local", lambda: Admin(addresses[len(looks)], timeout_ms=2000))
        sampler = Sampler(cluster, clock=lambda: now[0])
        for _ in addresses:
            looks.append(await sampler.latest())
            now[0] += 10
            cluster.forget_clients()
        cluster.close()
        assert [now.silence is None for now, _ in looks] == [True, False, True]
        assert looks[2][1] is looks[0][0]

    asyncio.run(watch())
