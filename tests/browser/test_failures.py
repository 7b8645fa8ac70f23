"""What people look for when something broke: why a group rebalanced, and dead letters that go back; in a browser, on a broker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from barnabas.retries.headers import FailureHeaders, write_failure
from tests.browser.furnished import PATIENCE_SECONDS
from tests.browser.test_scenarios import created
from tests.browser.visitor import DARK, NARROW, WITHOUT_SCRIPT, Looks, Visitor, visitor
from tests.conform.brokers import BrokerUnderTest
from tests.console.writing import Given, write

HERE = "/clusters/local/"
SESSION_MS = 6_000
MEMBER = f"""
import sys
from confluent_kafka import Consumer
bootstrap, group, topic, client = sys.argv[1:]
consumer = Consumer({{
    "bootstrap.servers": bootstrap, "group.id": group, "client.id": client, "session.timeout.ms": {SESSION_MS},
    "heartbeat.interval.ms": 1000, "auto.offset.reset": "earliest", "enable.auto.commit": False,
}})
consumer.subscribe([topic])
while True:
    message = consumer.poll(1)
    if message is not None and not message.error():
        print("reads", flush=True)
"""


@contextmanager
def member(bootstrap: str, group: str, topic: str, client: str) -> Iterator[subprocess.Popen[str]]:
    """Run a consumer as a process of its own, and yield when it has read a record."""
    command = [sys.executable, "-c", MEMBER, bootstrap, group, topic, client]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "reads\n"
            yield process
        finally:
            process.kill()


def reload_until(visited: Visitor, address: str, section: str, words: str, without: str) -> None:
    """Load a page again and again until a section has some words, and others no more: a group's page shows one moment."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while words not in (text := visited.go(address).locator(section).inner_text()) or without in text:
        assert time.monotonic() < deadline, f"{section} has not “{words}”, or still “{without}”: {text}"


@pytest.mark.timeout(300)
def test_a_killed_consumer_is_in_the_timeline(chromium: Browser, reading: str, running: BrokerUnderTest) -> None:
    bootstrap, group = running.bootstrap_servers, "killed-group"
    created(bootstrap, "killed", 2)
    write(bootstrap, "killed", [Given(b"1"), Given(b"2", partition=1)])
    address = f"{HERE}group?{urlencode({'id': group})}"
    with visitor(chromium, reading) as waiting, member(bootstrap, group, "killed", "killed-client") as killed:
        expect(waiting.go(address).locator("main")).to_contain_text("killed-client")
        with member(bootstrap, group, "killed", "staying-client"):
            killed.kill()
            killed.wait()
            # The group is without the member when its session has ended.
            reload_until(waiting, address, "#group", "staying-client", without="killed-client")
    with visitor(chromium, reading, DARK) as reader:
        page = reader.go(address)
        if running.name == "apache-kafka":
            sentence = "when and why the group rebalanced cannot be known"
            expect(page.locator("#rebalances .failed")).to_contain_text(sentence)
            assert page.locator("#rebalances svg").count() == 0
        else:
            cause = re.compile("session of member killed-client.* ended")
            expect(page.locator("#rebalances svg.timeline")).to_contain_text("killed-client")
            expect(page.locator("#rebalances table").first).to_contain_text(cause)
        assert reader.judged() == []


@pytest.mark.parametrize("looks", [NARROW, WITHOUT_SCRIPT], ids=lambda looks: looks.name)
def test_dead_letters_go_back(
    chromium: Browser, writing: str, running: BrokerUnderTest, audit_log: Path, looks: Looks
) -> None:
    bootstrap = running.bootstrap_servers
    source = f"returned-{'narrow' if looks.script else 'plain'}"
    letters = f"{source}.dlq"
    created(bootstrap, source)
    created(bootstrap, letters)
    failures = [FailureHeaders(source, 0, number, error="TimeoutError", attempts=4) for number in range(3)]
    failures.append(FailureHeaders(source, 0, 3, error="shop.NoCard", attempts=4))
    write(
        bootstrap,
        letters,
        [Given(b"order %d" % each.offset, b"k", headers=write_failure(each)) for each in failures],  # type: ignore[str-bytes-safe]
    )
    with visitor(chromium, writing, looks) as writer:
        page = writer.go(f"{HERE}dead-letters")
        page.get_by_role("link", name=letters, exact=True).click()
        expect(page.locator("main")).to_contain_text("TimeoutError")
        wrong = writer.judged()
        page.get_by_role("link", name="Redrive dead letters").click()
        expect(page.locator("[name=topic]")).to_have_value(letters)
        page.locator("[name=filters]").fill("error=TimeoutError")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview")).to_contain_text("would be sent")
        wrong += writer.judged()
        confirm = page.locator("form.change").get_by_role("button")
        assert confirm.inner_text() == f"Redrive 3 dead letters of {letters}"
        with visitor(chromium, writing) as other:
            assert other.go(f"{HERE}messages?topic={source}").locator("#messages tbody tr").count() == 0
        confirm.click()
        expect(page.locator("main")).to_contain_text("sent")
        wrong += writer.judged()
        page = writer.go(f"{HERE}messages?topic={source}")
        expect(page.locator("#messages tbody tr")).to_have_count(3)
        wrong += writer.judged()
        page = writer.go(f"{HERE}change/dead-letter-redrive?topic={letters}&filters=error%3DTimeoutError")
        page.get_by_role("button", name="Preview").click()
        # Each is sent once.
        expect(page.locator("main")).not_to_contain_text("3 dead letters of")
        assert wrong == []
    lines = [json.loads(line) for line in audit_log.read_text().splitlines()]
    assert [each["result"] for each in lines if letters in json.dumps(each)] == ["begun", "done"]
