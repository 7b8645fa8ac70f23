"""The list of topics, page by page."""

from starlette.testclient import TestClient

import barnabas
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_command_prints(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "topics", q="ORDERS")
    (listed,) = printed(broker.bootstrap_servers, "topic", "list", "orders", "--sizes", "--rates")
    changing = ("records_per_sec", "bytes_per_sec")
    (shown,) = found["topics"]
    assert shown.keys() == listed.keys()
    assert all(shown[name] == listed[name] for name in shown if name not in changing)


def test_pages(browser: TestClient) -> None:
    first, second = twin(browser, "topics"), twin(browser, "topics", page="2")
    names = [each["name"] for each in (*first["topics"], *second["topics"])]
    assert names == [*(f"many-{number:02}" for number in range(60)), "orders"]
    assert (first["page"], first["pages"], first["count"], len(first["topics"])) == (1, 2, 61, 50)
    assert 'rel="next" href="/clusters/local/topics?q=many&amp;page=2"' in html(browser, "topics", q="many")


def test_internal_topics_and_no_topic(browser: TestClient) -> None:
    assert "__consumer_offsets" in html(browser, "topics", internal="1", q="__consumer")
    page = html(browser, "topics", q='"><b>')
    assert "No topic&#39;s name contains “&#34;&gt;&lt;b&gt;”." in page
