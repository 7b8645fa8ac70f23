"""What people do with the console, from the first click to the last: in a browser, on a broker."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, expect

from barnabas.client.admin import Admin, NewTopic
from barnabas.console.password_file import line_of
from barnabas.console.search.query import LIMIT_MAX
from tests.browser.console_process import console
from tests.browser.furnished import PATIENCE_SECONDS, START_MS, filled
from tests.browser.visitor import NARROW, WITHOUT_SCRIPT, Looks, Visitor, visitor
from tests.conform.brokers import BrokerUnderTest, await_leaders, broker

HERE = "/clusters/local/"
TOPIC = "searched"
TOKEN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def records(pytestconfig: pytest.Config, running: BrokerUnderTest) -> int:
    """The number of records in the topic that is searched."""
    count = int(pytestconfig.getoption("--records", 20_000))
    created(running.bootstrap_servers, TOPIC, 2)
    filled(running.bootstrap_servers, TOPIC, count)
    return count


@pytest.fixture(params=[NARROW, WITHOUT_SCRIPT], ids=lambda looks: looks.name)
def writer(request: pytest.FixtureRequest, chromium: Browser, writing: str) -> Iterator[Visitor]:
    looks: Looks = request.param
    with visitor(chromium, writing, looks) as found:
        yield found


def created(bootstrap: str, topic: str, partitions: int = 1) -> None:
    """Create a topic that keeps records of any age: Apache Kafka looks for old ones 30 s after its start."""
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, {"retention.ms": "-1"})])
    await_leaders(bootstrap, {topic: partitions})


def found_by(visited: Visitor, **query: str) -> list[str]:
    """Search to the end, page after page, and return the cells of all records."""
    page = visited.go(f"{HERE}messages?{urlencode({'topic': TOPIC, 'order': 'oldest', **query})}")
    found: list[str] = []
    seen: set[str] = set()
    # Each page reads on, so no address comes twice.
    while page.url not in seen:
        seen.add(page.url)
        found += page.locator("#messages tbody tr").all_inner_texts()
        go_on = page.get_by_role("link", name="Go on", exact=True)
        if not go_on.count():
            return found
        with page.expect_navigation(timeout=60_000):  # A piece of a search takes seconds.
            go_on.click()
    raise AssertionError(f"the search came back to {page.url}")


@pytest.mark.timeout(1800)
def test_records_are_found_by_key_header_time_and_filter(chromium: Browser, reading: str, records: int) -> None:
    with visitor(chromium, reading) as reader:
        last = records - 1
        (row,) = found_by(reader, key=f"k{last}")
        assert f'"n":{last}' in row.replace(" ", "")
        assert len(found_by(reader, header="source:shop", filter=f"value.n >= {records - 100}")) == 10
        since = f"{START_MS + last - 4}"
        assert len(found_by(reader, since=since)) == 5
        assert len(found_by(reader, filter=f"value.amount == 7 && value.n > {records - 3000}")) == 3
        assert found_by(reader, key="absent") == []
        expect(reader.page.locator("#read")).to_contain_text(f"Complete: all {records} offsets")
        assert reader.judged() == []


@pytest.mark.timeout(1800)
def test_a_search_stops_and_goes_on(chromium: Browser, reading: str, records: int) -> None:
    with visitor(chromium, reading) as reader:
        wanted = len(range(7, records, 1000))
        # Some pages, however many records there are.
        rows = found_by(reader, filter="value.amount == 7", limit=str(min(max(4, wanted // 20), LIMIT_MAX)))
        assert len(rows) == wanted
        assert len(set(rows)) == len(rows)
        assert reader.judged() == []


def test_a_record_is_produced_and_found(writer: Visitor, running: BrokerUnderTest) -> None:
    topic = f"produced-{'plain' if not writer.looks.script else 'narrow'}"
    created(running.bootstrap_servers, topic)
    page = writer.go(f"{HERE}messages?topic={topic}")
    page.get_by_role("link", name="Produce a record").click()
    page.locator("[name=key]").fill("a key <b>")
    page.locator("[name=value]").fill('{"amount": 7}')
    page.locator("[name=headers]").fill("source=shop")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("would be produced")
    page.locator("form.change").get_by_role("button").click()
    expect(page.locator("main")).to_contain_text("produced")
    for query in ({"key": "a key <b>"}, {"header": "source"}, {"filter": "value.amount == 7"}, {"since": "-1h"}):
        page = writer.go(f"{HERE}messages?{urlencode({'topic': topic, **query})}")
        expect(page.locator("#messages tbody tr")).to_have_count(1)
        expect(page.locator("#messages")).to_contain_text("a key <b>")
    assert writer.judged() == []


def test_the_live_page_shows_what_is_appended(chromium: Browser, reading: str, running: BrokerUnderTest) -> None:
    created(running.bootstrap_servers, "live")
    with visitor(chromium, reading) as reader:
        page = reader.go(f"{HERE}messages?topic=live&live=1")
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for number in range(3):
            producer.produce("live", f"appended {number}")
            assert producer.flush(PATIENCE_SECONDS) == 0
            expect(page.locator("#messages")).to_contain_text(f"appended {number}", timeout=30_000)
        assert reader.judged() == []


def test_an_open_transaction_is_found_and_aborted(
    chromium: Browser, writing: str, running: BrokerUnderTest, audit_log: Path
) -> None:
    created(running.bootstrap_servers, "held")
    name = "forgotten"
    settings = {"transactional.id": name, "transaction.timeout.ms": 900_000}
    held = Producer({"bootstrap.servers": running.bootstrap_servers, **settings})
    held.init_transactions(PATIENCE_SECONDS)
    held.begin_transaction()
    held.produce("held", "open")
    assert held.flush(PATIENCE_SECONDS) == 0
    with visitor(chromium, writing) as writer:
        page = writer.go(f"{HERE}transactions")
        expect(page.locator("#held_back")).to_contain_text(name)
        page.get_by_role("link", name="Abort a transaction", exact=True).click()
        page.locator("[name=id]").fill(name)
        page.get_by_role("button", name="Preview").click()
        page.locator("[name=typed]").fill(name)
        page.locator("form.change").get_by_role("button").click()
        expect(page.locator("main")).to_contain_text("aborted")
        page = writer.go(f"{HERE}transactions")
        expect(page.locator("#held_back")).not_to_contain_text(name)
        assert writer.judged() == []
    lines = [json.loads(line) for line in audit_log.read_text().splitlines()]
    assert [each["result"] for each in lines if name in json.dumps(each)] == ["begun", "done"]


def test_a_read_only_console_has_no_forms(chromium: Browser, reading: str) -> None:
    with visitor(chromium, reading) as reader:
        for path in ("topic?name=orders", "transactions", "users", "messages?topic=orders"):
            page = reader.go(f"{HERE}{path}")
            assert page.locator("form[method=post]").count() == 0
            assert page.get_by_role("navigation", name="Changes").count() == 0
        assert reader.judged() == []
        page = reader.go(f"{HERE}change/topic-create", 403)
        assert page.get_by_role("button", name="Preview").count() == 0


def test_a_forged_form_changes_nothing(chromium: Browser, writing: str) -> None:
    with visitor(chromium, writing) as writer:
        page = writer.go(f"{HERE}change/topic-create?name=forged")
        page.evaluate("document.querySelector('[name=token]').value = 'forged'")
        with page.expect_navigation() as navigation:
            page.get_by_role("button", name="Preview").click()
        answer = navigation.value
        assert answer is not None
        assert answer.status == 403
        expect(page.get_by_role("alert")).to_be_visible()
    connection = http.client.HTTPConnection(urlsplit(writing).netloc)
    foreign = {"origin": "http://evil.example", "content-type": "application/x-www-form-urlencoded"}
    connection.request("POST", f"{HERE}change/topic-create", "name=forged", foreign)
    assert connection.getresponse().status == 403
    connection.close()


def test_people_log_in_and_out(chromium: Browser, running: BrokerUnderTest, tmp_path: Path) -> None:
    (tmp_path / "users").write_text(line_of("alice", "correct horse", bytes(16)) + "\n")
    (tmp_path / "token").write_text(TOKEN)
    files = ("--password-file", str(tmp_path / "users"), "--token-file", str(tmp_path / "token"))
    with console("-b", running.bootstrap_servers, *files) as home, visitor(chromium, home) as guest:
        page = guest.go("/")
        wrong = guest.judged()
        page.get_by_label("Name").fill("alice")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("That is not right")
        wrong += [each for each in guest.judged() if "403 (Forbidden)" not in each]
        page.get_by_label("Name").fill("alice")
        page.get_by_label("Password").fill("correct horse")
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        wrong += guest.judged()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in with the token").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        assert wrong == []


def test_the_keyboard_alone_is_enough(chromium: Browser, reading: str) -> None:
    with visitor(chromium, reading) as reader:
        page = reader.go(f"{HERE}topics")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        expect(page.locator(".skip")).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("#main$"))
        for _ in range(10):
            page.keyboard.press("Tab")
            # The outline is what shows where the focus is.
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            if page.evaluate("document.activeElement.name") == "q":
                break
        page.keyboard.type("many-07")
        page.keyboard.press("Enter")
        expect(page.locator("#topics tbody tr")).to_have_count(1)
        assert reader.judged() == []


def test_a_broker_goes_and_comes_back(chromium: Browser, on: str, tmp_path: Path) -> None:
    lost: BrokerUnderTest = broker(on, tmp_path / "lost")
    lost.start()
    try:
        with (
            console("-b", lost.bootstrap_servers, "--timeout-ms", "2000") as home,
            visitor(chromium, home) as reader,
        ):
            page = reader.go("/")
            expect(page.locator("#nodes tbody tr")).to_have_count(1)
            lost.kill()
            # The page renews itself.
            expect(page.locator("#health .failed")).to_contain_text("Not known.", timeout=60_000)
            wrong = reader.judged()
            lost.start()
            expect(page.locator("#nodes tbody tr")).to_have_count(1, timeout=60_000)
            assert [*wrong, *reader.judged()] == []
    finally:
        lost.kill()
