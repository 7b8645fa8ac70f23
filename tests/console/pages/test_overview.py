"""The overview has what the commands print."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.testclient import TestClient

import barnabas
from barnabas.client.errors import BrokerNotAvailable
from barnabas.console.app import Console
from barnabas.console.asked import Asked
from barnabas.console.links import Links
from barnabas.console.look import Look, TopicTotals
from barnabas.console.pages.overview import overview_sections
from tests.console.conftest import HOSTILE, cluster_at
from tests.console.reading import html, printed, twin
from tests.console.test_look import made_up


def test_the_twin_is_what_commands_print(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "")
    assert found["health"] == printed(broker.bootstrap_servers, "cluster", "status")
    assert found["nodes"] == printed(broker.bootstrap_servers, "cluster", "nodes")
    assert "orders" in [each["name"] for each in found["topics"]]
    assert found["groups"][0]["group"] == HOSTILE
    assert found["records_per_sec"][-1].keys() == {"time", "records_per_sec"}
    assert found["held_back"][0].keys() == printed(broker.bootstrap_servers, "txn", "doctor")[0].keys()


def test_a_browser_gets_news_or_reloads(browser: TestClient) -> None:
    page = html(browser, "")
    assert 'sse-connect="/clusters/local/events"' in page
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in page


def test_the_charts_are_sections_that_events_replace(broker: barnabas.Broker) -> None:
    """Two looks of the last seconds make a line."""
    console = Console([cluster_at(broker.bootstrap_servers)])
    sampler = console.samplers["local"]
    asked = Asked(console.clusters["local"], sampler, Links(""), {}, 0)

    async def first() -> str:
        now_s = asyncio.get_running_loop().time()
        old, new = (made_up(now_s - ago_s, a=TopicTotals(1, 0, 0)) for ago_s in (10, 5))
        sampler.history.add(old, None, 15)
        sampler.history.add(new, old, 15)
        async with contextlib.aclosing(console.events(asked)) as events:
            return await anext(events)

    event = asyncio.run(first())
    asked.cluster.close()
    for key in ("bytes_per_sec", "records_per_sec", "total_lag"):
        assert f'<section id="{key}"' in event
    assert 'role="img" aria-labelledby="total_lag-heading"' in event


def test_the_charts_stay_when_the_cluster_is_gone() -> None:
    console = Console([cluster_at("127.0.0.1:1")])
    asked = Asked(console.clusters["local"], console.samplers["local"], Links(""), {}, 0)
    gone = BrokerNotAvailable("gone")
    keys = [each.key for each in overview_sections(asked, Look(0, 0, gone, gone, gone, gone, gone), None)]
    assert keys == ["health", "bytes_per_sec", "records_per_sec", "total_lag"]
    asked.cluster.close()
