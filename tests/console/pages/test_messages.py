"""The page of a search."""

from __future__ import annotations

import html as entities
import json
import shlex
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import barnabas
from barnabas.main import command_group
from tests.console.reading import html, tags, twin
from tests.console.writing import Given, create, numbered, write

HOSTILE = b"<script>alert('\"1\"')</script>\x1b[31m"


@pytest.fixture(scope="module")
def shop(records_broker: barnabas.Broker) -> barnabas.Broker:
    bootstrap = records_broker.bootstrap_servers
    create(bootstrap, "shop", 2)
    write(bootstrap, "shop", [*numbered(30), *numbered(30, 1)])
    write(bootstrap, "shop", [Given(b'{"n": 1}', b"aborted")], transactional_id="pages", commit=False)
    create(bootstrap, "hostile")
    write(bootstrap, "hostile", [Given(HOSTILE, HOSTILE, headers=[(HOSTILE.decode(), HOSTILE)]), Given(b"x" * 100_000)])
    return records_broker


def places(found: dict[str, Any]) -> list[tuple[int, int]]:
    return [(each["partition"], each["offset"]) for each in found["messages"]]


def test_a_search_and_its_next_page(shop: barnabas.Broker, records_browser: TestClient) -> None:
    first = twin(records_browser, "messages", topic="shop", filter="value.n % 2 == 0", limit="20", order="oldest")
    assert len(first["messages"]) == 20
    assert first["messages"][0]["value_data"] == {"n": 0}
    assert first["read"]["query"]["value_as"] == "json"
    page = html(records_browser, "messages", topic="shop", filter="value.n % 2 == 0", limit="20", order="oldest")
    (link,) = [
        found["href"] or "" for tag, found in tags(page) if tag == "a" and "cursor=" in (found.get("href") or "")
    ]
    second = records_browser.get(link, headers={"accept": "application/json"}).json()
    assert len(second["messages"]) == 10
    assert not set(places(first)) & set(places(second))
    assert second["read"]["complete"]
    assert second["read"]["notes"][0].startswith("Complete: all 62 offsets")
    assert second["read"]["next_cursor"] is None
    assert "Go on" not in records_browser.get(link).text.partition("cursor=")[2]


def test_the_command_that_reads_the_same(shop: barnabas.Broker, records_browser: TestClient) -> None:
    query = {
        "topic": "shop",
        "offset": "5:25",
        "partitions": "1",
        "order": "oldest",
        "key": "k2",
        "filter": "value.n > 7",
    }
    found = twin(records_browser, "messages", **query)
    words = shlex.split(found["read"]["consume"])[1:]
    done = CliRunner().invoke(command_group(), [*words, "-b", shop.bootstrap_servers], prog_name="barnabas")
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["offset"] for each in printed] == [12, 17, 22]
    assert [{name: each[name] for name in printed[0]} for each in found["messages"]] == printed


def test_aborted_and_control_records_on_demand(shop: barnabas.Broker, records_browser: TestClient) -> None:
    asked = {"topic": "shop", "partitions": "0", "offset": "-2", "isolation_level": "read_uncommitted", "control": "1"}
    found = twin(records_browser, "messages", **asked)
    assert [(each["key_format"], each["state"]) for each in found["messages"]] == [
        ("control", "committed"),
        ("text", "aborted"),
    ]
    page = html(records_browser, "messages", **asked)
    assert "control record: abort" in page
    assert "PRODUCER-ID" in page
    hidden = twin(records_browser, "messages", topic="shop", partitions="0")
    assert "Not shown: 1 record of aborted transactions." in hidden["read"]["notes"]


def test_hostile_records_are_only_shown(shop: barnabas.Broker, records_browser: TestClient) -> None:
    page = html(records_browser, "messages", topic="hostile")
    assert "<script>alert" not in page
    assert entities.escape("<script>alert(") in page
    assert "\x1b" not in page
    assert "(100000 bytes)" in page
    assert len(page) < 30_000


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"topic": "shop", "filter": "value.n >"}, "The filter cannot be read at character 10"),
        ({"topic": "shop", "filter": "value.n"}, "not true or false"),
        ({"topic": "shop", "offset": "x"}, "is not a valid offset"),
        ({"topic": "shop", "cursor": "x"}, "begin it again"),
        ({"topic": "shop", "partitions": "9"}, "has no partition 9"),
        ({"topic": "absent"}, "Topic absent does not exist"),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(
    shop: barnabas.Broker, records_browser: TestClient, query: dict[str, str], sentence: str
) -> None:
    found = twin(records_browser, "messages", **query)
    assert sentence in found["messages"]["error"]
    page = html(records_browser, "messages", **query)
    assert entities.escape(sentence, quote=False) in page
    assert '<form class="search"' in page


def test_the_form_keeps_what_was_asked(shop: barnabas.Broker, records_browser: TestClient) -> None:
    page = html(records_browser, "messages", topic="shop", filter='key == "k1"', order="oldest", control="1")
    fields = {found["name"]: found for tag, found in tags(page) if tag == "input" and found.get("name")}
    assert fields["filter"]["value"] == 'key == "k1"'
    assert "checked" in fields["control"]
    assert "checked" not in fields["details"]
    assert '<option value="oldest" selected>' in page
    assert "<details open>" in page
    assert all(tag != "script" or "src" in found for tag, found in tags(page))


def test_without_a_topic_it_offers_those_that_there_are(shop: barnabas.Broker, records_browser: TestClient) -> None:
    assert "shop" in twin(records_browser, "messages")["topics"]
    assert "Choose a topic." in html(records_browser, "messages")


def test_live_without_javascript_reloads(shop: barnabas.Broker, records_browser: TestClient) -> None:
    page = html(records_browser, "messages", topic="shop", live="1")
    assert '<noscript><meta http-equiv="refresh"' in page
    (stream,) = [found["sse-connect"] for _, found in tags(page) if "sse-connect" in found]
    assert stream == "/clusters/local/messages/events?topic=shop"


def test_an_internal_topic_by_its_records(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "messages", topic="__consumer_offsets", filter='key.type == "OffsetCommit"')
    assert found["messages"][0]["key_data"]["topic"] == "orders"
    assert found["messages"][0]["value_data"]["offset"] >= 0
