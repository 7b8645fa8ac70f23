"""Every page as a browser and as a program gets it."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.console.app import Console
from barnabas.console.asked import Asked
from barnabas.console.links import Links
from barnabas.console.pages import PAGES
from tests.console.conftest import HOSTILE, cluster_at
from tests.console.reading import html, tags, twin

ADDRESSES = [
    "", "topics", "topics?q=many&page=2", "topic?name=orders", "topic?name=absent", "topic?name=%3Cscript%3E", "groups",
    f"group?{urlencode({'id': HOSTILE})}", "group?id=..", "transactions", "cluster", "quotas", "users", "acls",
    "acls?principal=User%3Aalice&host=10.0.0.7&operation=read&resource=topic&name=orders", "messages",
    "messages?topic=orders", "messages?topic=absent",
    "messages?topic=orders&filter=value.n&live=1", "record?topic=orders&partition=0&offset=1", "record?topic=orders&partition=0&offset=99",
    "dead-letters", "dead-letters?topic=orders", "spark", "cluster?plan=rebalance", "cluster?plan=drain&node=7",
]  # fmt: skip


def test_the_addresses_are_those_of_all_pages() -> None:
    assert {address.partition("?")[0] for address in ADDRESSES} == {page.path for page in PAGES}


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_form_of_a_page(browser: TestClient, address: str) -> None:
    """One heading, landmarks, captions, scopes; nothing in it is a script or a style of its own."""
    answer = browser.get(f"/clusters/local/{address}")
    found = tags(answer.text)
    names = [tag for tag, _ in found]
    assert [names.count(tag) for tag in ("h1", "main", "header", "footer")] == [1] * 4
    # A picture has titles of its own.
    assert answer.text.partition("</head>")[0].count("<title>") == 1
    assert names.count("table") == names.count("caption")
    assert all("scope" in attributes for tag, attributes in found if tag == "th")
    assert "style" not in names
    assert [attributes["src"] for tag, attributes in found if tag == "script"] == [
        "/static/htmx.min.js",
        "/static/htmx-ext-sse.min.js",
        "/static/console.js",
    ]
    assert not any(name.startswith("on") or name == "style" for _, attributes in found for name in attributes)
    assert all(attributes["href"] for tag, attributes in found if tag == "a")
    assert "<script>" not in answer.text
    anchors = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(anchors) == len(set(anchors))


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_of_a_cluster_that_is_down_is_a_sentence(nowhere: TestClient, address: str) -> None:
    answer = nowhere.get(f"/clusters/local/{address}")
    assert answer.status_code == 200
    assert "Cannot reach 127.0.0.1:1: connection refused" in answer.text
    assert "<h1>" in answer.text


def test_the_first_page_leads_to_the_only_cluster(browser: TestClient) -> None:
    assert browser.get("/").headers["location"] == "/clusters/local/"
    assert browser.get("/?format=json").json() == {"clusters": ["local"]}


def test_several_clusters_and_a_base_path(broker: barnabas.Broker) -> None:
    clusters = [cluster_at(broker.bootstrap_servers, "a b"), cluster_at("127.0.0.1:1", "down")]
    with TestClient(Console(clusters, base_path="/kafka").app(), base_url="http://localhost") as browser:
        assert browser.get("/").status_code == 404
        assert 'href="/kafka/clusters/a%20b/"' in browser.get("/kafka/").text
        page = browser.get("/kafka/clusters/a%20b/topics").text
        assert 'href="/kafka/clusters/a%20b/topic?name=many-00"' in page
        assert 'href="/kafka/static/console.css"' in page
        assert browser.get("/kafka/static/console.css").headers["content-type"].startswith("text/css")
        assert "connection refused" in browser.get("/kafka/clusters/down/").text


def test_a_page_that_is_not_there(browser: TestClient) -> None:
    for path, sentence in (("/nothing", "no such page"), ("/clusters/<b>/topics", "no cluster named &lt;b&gt;")):
        answer = browser.get(path)
        assert (answer.status_code, sentence in answer.text) == (404, True)
    assert browser.get("/clusters/x/?format=json").json() == {"error": "This console has no cluster named x."}


def test_what_a_client_named_itself_is_text(browser: TestClient) -> None:
    escaped = "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;"
    for path, query in (("groups", {}), ("group", {"id": HOSTILE}), ("transactions", {}), ("", {})):
        assert escaped in html(browser, path, **query)
    assert twin(browser, "group", id=HOSTILE)["group"]["group"] == HOSTILE


def test_json_is_asked_for_by_name_or_by_type(browser: TestClient) -> None:
    assert browser.get("/clusters/local/topics", headers={"accept": "application/json"}).json()["count"] == 61
    accepting = {"accept": "text/html,application/json;q=0.5"}
    assert browser.get("/clusters/local/topics", headers=accepting).headers["content-type"].startswith("text/html")


def test_the_stream_of_an_overview(broker: barnabas.Broker) -> None:
    console = Console([cluster_at(broker.bootstrap_servers)])
    (cluster,) = console.clusters.values()
    asked = Asked(cluster, console.samplers["local"], Links(""), {}, 0)

    async def first() -> str:
        async with contextlib.aclosing(console.events(asked)) as events:
            return await anext(events)

    event = asyncio.run(first())
    cluster.close()
    assert event.startswith("event: sections\ndata: <section")
    assert event.endswith("\n\n")
    assert "\n\n" not in event[:-2]
    assert not console.samplers["local"].is_running
