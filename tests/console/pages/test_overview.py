"""The overview has what the commands print."""

from starlette.testclient import TestClient

import barnabas
from tests.console.conftest import HOSTILE
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_commands_print(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "")
    assert found["health"] == printed(broker.bootstrap_servers, "cluster", "status")
    assert found["nodes"] == printed(broker.bootstrap_servers, "cluster", "nodes")
    assert "orders" in [each["name"] for each in found["topics"]]
    assert found["groups"][0]["group"] == HOSTILE
    assert found["held_back"][0].keys() == printed(broker.bootstrap_servers, "txn", "doctor")[0].keys()


def test_a_browser_gets_news_or_reloads(browser: TestClient) -> None:
    page = html(browser, "")
    assert 'sse-connect="/clusters/local/events"' in page
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in page
