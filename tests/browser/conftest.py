"""A furnished cluster, consoles on it, and Chromium, for all tests of the room. `make browser` runs them, and no other suite."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import apache_kafka
import pytest

from tests.browser.console_process import console
from tests.browser.furnished import furnished
from tests.conform.brokers import BrokerUnderTest, broker

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HAS_PLAYWRIGHT = importlib.util.find_spec("playwright") is not None
collect_ignore_glob = [] if HAS_PLAYWRIGHT else ["test_*.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Give `make browser` its options; other suites do not read this file in time, and have none of them."""
    parser.addoption("--on", choices=("barnabas", "kafka"), default="barnabas", help="the broker")
    parser.addoption("--records", type=int, default=20_000, help="how many records are searched")
    parser.addoption("--screenshots", action="store_true", help="write the pictures of docs/console.md")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the room's tests."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def on(pytestconfig: pytest.Config) -> str:
    """The broker that is asked for."""
    return "apache-kafka" if pytestconfig.getoption("--on", "barnabas") == "kafka" else "barnabas"


@pytest.fixture(scope="session")
def running(on: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    """A broker with something on every page."""
    if on == "apache-kafka":
        apache_kafka.install()
    started: BrokerUnderTest = broker(on, tmp_path_factory.mktemp("broker"))
    started.start()
    try:
        with furnished(started.bootstrap_servers):
            yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def clusters_file(running: BrokerUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clusters, of which one is down."""
    found = tmp_path_factory.mktemp("console") / "console.toml"
    found.write_text(
        f'[clusters.local]\nbootstrap-server = "{running.bootstrap_servers}"\n\n'
        '[clusters.down]\nbootstrap-server = "127.0.0.1:1"\ntimeout-ms = 500\n'
    )
    return found


@pytest.fixture(scope="session")
def reading(clusters_file: Path) -> Iterator[str]:
    """The address of a read-only console."""
    with console("--config", str(clusters_file)) as home:
        yield home


@pytest.fixture(scope="session")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="session")
def writing(clusters_file: Path, audit_log: Path) -> Iterator[str]:
    """The address of a console that may change the cluster."""
    with console("--config", str(clusters_file), "--write", "--audit-log", str(audit_log)) as home:
        yield home


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    from tests.browser.visitor import started

    with sync_playwright() as playwright:
        found = started(playwright)
        yield found
        found.close()
