"""Dead letters."""

from __future__ import annotations

import sys

import pytest
from starlette.testclient import TestClient

import barnabas
from tests.console.buried import bury
from tests.console.reading import html, printed, twin

TOPIC = "buried.dlq"


@pytest.fixture(scope="module", autouse=True)
def letters(records_broker: barnabas.Broker) -> None:
    bury(records_broker.bootstrap_servers, TOPIC, "buried", 5, 2)


@pytest.mark.slow
def test_the_twin_is_what_the_commands_print(records_broker: barnabas.Broker, records_browser: TestClient) -> None:
    listed = twin(records_browser, "dead-letters", q="buried")
    assert listed["dead_letters"] == printed(records_broker.bootstrap_servers, "dlq", "list", TOPIC)
    found = twin(records_browser, "dead-letters", topic=TOPIC)
    assert found["dead_letters"] == printed(records_broker.bootstrap_servers, "dlq", "show", TOPIC)
    assert [(each["error"], each["source"], each["records"]) for each in found["causes"]] == [
        ("TimeoutError", "buried", 3),
        ("shop.NoCard", "buried", 2),
    ]


def test_a_page_leads_to_the_topic_and_to_each_record(records_browser: TestClient) -> None:
    assert f'href="/clusters/local/dead-letters?topic={TOPIC}"' in html(records_browser, "dead-letters")
    assert f"record?topic={TOPIC}&amp;partition=1&amp;offset=1" in html(records_browser, "dead-letters", topic=TOPIC)


@pytest.mark.slow
def test_filters(records_browser: TestClient) -> None:
    found = twin(records_browser, "dead-letters", topic=TOPIC, filter="error=NoCard\nkey=k3")
    assert [each["value"] for each in found["dead_letters"]] == ["order 3"]
    assert "has no dead letter" in html(records_browser, "dead-letters", topic="buried")
    assert "is not one of" in twin(records_browser, "dead-letters", topic=TOPIC, filter="eror=x")["causes"]["error"]
    assert "does not exist" in twin(records_browser, "dead-letters", topic="absent")["causes"]["error"]


def test_a_page_counts_so_many_and_says_so(records_browser: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["barnabas.console.pages.dead_letters"], "COUNTED_MAX", 3)
    page = html(records_browser, "dead-letters", topic=TOPIC)
    assert f"Only the first 3 records of {TOPIC} are counted" in page
    assert "3 of 3 dead letters." in page
