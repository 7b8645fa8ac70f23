"""The pictures of docs/console.md, made with `make browser ARGS=--screenshots`: a small shop, in light, 1200 pixels wide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from barnabas.client.admin import Admin, NewTopic
from tests.browser.console_process import console
from tests.browser.furnished import PATIENCE_SECONDS, filled, member_and_transaction
from tests.browser.visitor import Visitor, visitor
from tests.conform.brokers import BrokerUnderTest, await_leaders, broker

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = {
    "overview": "",
    "messages": "messages?topic=orders&filter=value.amount+%3E+900&limit=8",
    "group": "group?id=billing",
}
"""By the end of the file's name: `console-overview.png`."""
BYTES_MAX = 150_000
TOPICS = {"orders": 2, "payments": 1, "returns": 1}


@pytest.fixture(scope="module")
def shop(on: str, tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Visitor]:
    """A visitor of a console whose cluster has the topics of a shop, and a group that is behind."""
    started: BrokerUnderTest = broker(on, tmp_path_factory.mktemp("shop"))
    started.start()
    try:
        bootstrap = started.bootstrap_servers
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in TOPICS.items()])
        await_leaders(bootstrap, TOPICS)
        for name, count in (("orders", 3000), ("payments", 1200), ("returns", 40)):
            filled(bootstrap, name, count)
        clusters = tmp_path_factory.mktemp("shop-console") / "console.toml"
        clusters.write_text(f'[clusters.shop]\nbootstrap-server = "{bootstrap}"\n')
        names = {"group": "billing", "client": "billing-1", "transaction": "refunds"}
        with member_and_transaction(bootstrap, **names) as held:
            held.produce("returns", '{"n": 40}')
            held.flush(PATIENCE_SECONDS)
            with console("--config", str(clusters)) as home, visitor(chromium, home) as found:
                yield found
    finally:
        started.stop()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture(shop: Visitor, name: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    page = shop.go(f"/clusters/shop/{PICTURES[name]}")
    expect(page.locator("section").first).to_be_visible()
    # Two looks make a line of a chart.
    expect(page.locator("main")).not_to_contain_text("There is no line yet", timeout=60_000)
    folder = DOCS if pytestconfig.getoption("--screenshots", False) else tmp_path
    written = folder / f"console-{name}.png"
    page.screenshot(path=written, animations="disabled")
    assert written.stat().st_size < BYTES_MAX
    assert shop.judged() == []
    assert f"({written.name})" in (DOCS / "console.md").read_text()
