"""The live end of a topic."""

from __future__ import annotations

import asyncio
import contextlib
import html
from typing import Any

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.app import Console
from barnabas.console.asked import Asked
from barnabas.console.links import Links
from barnabas.console.page import Section
from barnabas.console.sampler import Sampler
from barnabas.console.search.query import Query
from barnabas.console.tail import Tail
from tests.console.conftest import cluster_at
from tests.console.writing import Given, create, numbered, write

QUERY = Query("live", filter="value.n % 2 == 0", limit=3, value_as="json", key_as="text")


def offsets(sections: list[Section]) -> list[int]:
    data: Any = sections[0].data
    return [each["offset"] for each in data]


def test_records_come_as_they_are_written(records_broker: barnabas.Broker) -> None:
    bootstrap = records_broker.bootstrap_servers
    create(bootstrap, "live")
    write(bootstrap, "live", numbered(6))

    async def watch() -> None:
        cluster = cluster_at(bootstrap)
        asked = Asked(cluster, Sampler(cluster), Links(""), {"topic": "live"}, 0)
        looks = Tail(asked, QUERY, interval_s=0.01, clock=lambda: 0.0).sections()
        async with contextlib.aclosing(looks):
            assert offsets(await anext(looks)) == [4, 2, 0]
            await asyncio.to_thread(write, bootstrap, "live", numbered(3))
            seen = await anext(looks)
            while offsets(seen)[0] < 8:
                seen = await anext(looks)
            assert offsets(seen) == [8, 6, 4]
            await asyncio.to_thread(_delete, bootstrap)
            while not seen[0].is_failed:
                seen = await anext(looks)
            assert "does not exist" in (seen[0].sentence or "")
            await asyncio.to_thread(create, bootstrap, "live")
            await asyncio.to_thread(write, bootstrap, "live", numbered(1))
            while seen[0].is_failed or not offsets(seen):
                seen = await anext(looks)
            assert offsets(seen) == [0]
        cluster.close()

    asyncio.run(asyncio.wait_for(watch(), 60))


def _delete(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.delete_topics(["live"])


def test_a_cluster_that_is_down_is_a_sentence_and_is_asked_again() -> None:
    async def watch() -> None:
        cluster = cluster_at("127.0.0.1:1", timeout_ms=500)
        looks = Tail(Asked(cluster, Sampler(cluster), Links(""), {}, 0), QUERY, interval_s=0.01).sections()
        async with contextlib.aclosing(looks):
            for _ in range(2):
                (section,) = await anext(looks)
                assert "connection refused" in (section.sentence or "")
        cluster.close()

    asyncio.run(watch())


HOSTILE = "<script>alert('\"1\"')</script>\r\ndata: x\r\n\revent: sections\x1b[31m\u2028<img src=x onerror=alert(1)>"


def test_hostile_records_are_text_of_one_event(records_broker: barnabas.Broker) -> None:
    """A key, a value and a header neither become elements nor end the event's lines."""
    bootstrap, data = records_broker.bootstrap_servers, HOSTILE.encode()
    create(bootstrap, "hostile-tail")
    write(bootstrap, "hostile-tail", [Given(data, data, headers=[(HOSTILE, data)])])
    for topic in ("hostile-tail", HOSTILE):
        event = asyncio.run(_first_event(bootstrap, {"topic": topic}))
        head, *lines, last, end = event.split("\n")
        assert (head, last, end) == ("event: sections", "", "")
        assert all(each.startswith("data: ") for each in lines)
        assert "\r" not in event
        assert "<script" not in event
        assert "<img" not in event
        assert "\x1b" not in event
        assert html.escape("<script>alert(") in event


async def _first_event(bootstrap: str, query: dict[str, str]) -> str:
    cluster = cluster_at(bootstrap)
    asked = Asked(cluster, Sampler(cluster), Links(""), query, 0)
    async with contextlib.aclosing(Console([cluster]).tail(asked)) as events:
        event = await anext(events)
    cluster.close()
    return event
