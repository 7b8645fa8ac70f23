"""The brokers that the tests of the card share, and the card itself."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import apache_kafka
import pytest

from tests.conform.brokers import BarnabasProcess, KafkaProcess, broker
from tests.conform.card import secured_results
from tests.conform.card.programs import program_of
from tests.conform.card.results import OURS, THEIRS, Card, KeptCells
from tests.conform.card.security import WAYS, SecuredBarnabas, SecuredKafka, Security, secured_broker
from tests.conform.nodes import Nodes

OUTCOME = pytest.StashKey[pytest.TestReport]()
PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
# What a client waits for is the broker's to say: cleaning, the heartbeats of KIP-848, transactions that time out.
SETTINGS = {
    "node.id": "1",
    "log.cleaner.backoff.ms": "200",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "10000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nodes", type=int, default=1, help="nodes of each broker of the card; of several, each scenario kills one"
    )
    parser.addoption(
        "--security",
        # A run that names no path reads this file late, and has an option only if it has a default.
        default=None,
        choices=list(WAYS),
        help="how the card's clients connect; without it in plain text, without an authorizer",
    )
    parser.addoption(
        "--acl-questions",
        type=int,
        default=40_000,
        help="questions for our authorizer and Apache Kafka's to decide alike",
    )


@pytest.fixture(scope="session")
def security(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Security | None]:
    """What the card's clients connect with, or None for plain text."""
    way = request.config.getoption("--security")
    if not way:
        yield None
        return
    with Security(WAYS[way], tmp_path_factory.mktemp("security")) as made:
        yield made


@pytest.fixture(scope="session")
def both_brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, security: Security | None
) -> Iterator[dict[str, BarnabasProcess | KafkaProcess | Nodes]]:
    """One broker of each kind for all scenarios of the card; `BARNABAS_CARD_BROKER` names one to run on alone."""
    only = os.environ.get("BARNABAS_CARD_BROKER")
    folder, nodes = tmp_path_factory.mktemp("card"), request.config.getoption("--nodes")
    if security is not None and nodes > 1:
        raise pytest.UsageError("--security plays on one node: leave --nodes out")

    def made(name: str) -> BarnabasProcess | KafkaProcess | Nodes:
        if security is not None:
            return secured_broker(name, folder / name, security, SETTINGS)
        return broker(name, folder / name, SETTINGS) if nodes == 1 else Nodes(name, folder / name, nodes, SETTINGS)

    brokers = {name: made(name) for name in (OURS, THEIRS) if name == (only or name)}
    try:
        for one in brokers.values():
            one.start()
            if security is not None:
                assert isinstance(one, (SecuredBarnabas, SecuredKafka))
                security.admit(one)
        yield brokers
    finally:
        for one in brokers.values():
            if isinstance(one, Nodes):
                one.kill()
            else:
                one.stop()


@pytest.fixture(scope="session")
def card(request: pytest.FixtureRequest) -> Iterator[Card]:
    """The cells of earlier runs and of this one; at the end the page, when no cell is missing.

    The page shows one node of each kind; cells of several nodes, and those of each way of security, are kept apart.
    """
    nodes, way = request.config.getoption("--nodes"), request.config.getoption("--security")
    where = f"card-{way.replace('/', '-')}" if way else "card" if nodes == 1 else f"card-on-{nodes}-nodes"
    kept = KeptCells(request.config.cache.mkdir(where))
    found = Card(kept.read(), apache_kafka.VERSION)
    found.keep = lambda: kept.merge(found)
    yield found
    found.keep()
    if way:
        print("", *found.lines(), sep="\n")
        day = datetime.now(UTC).date().isoformat()
        secured = secured_results.renewed(secured_results.read(), secured_results.of_card(found, way, day))
        secured_results.write(secured)
        PAGE.write_text(secured_results.with_section(PAGE.read_text(), secured))
    elif nodes > 1:
        print("", *found.lines(), sep="\n")
    elif missing := found.missing():
        print(f"\n{PAGE.name} is not written: {len(missing)} results are missing, first {missing[0]}")
    else:
        PAGE.write_text(secured_results.with_section(found.page(), secured_results.read()))


@pytest.fixture(autouse=True)
def _in_the_card(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put the outcome of a program's test into the card, and keep what a client's test has put there."""
    test = request.node
    belongs = program_of(test.originalname)
    if belongs is None and "card" not in request.fixturenames:
        yield
        return
    found: Card = request.getfixturevalue("card")
    yield
    if belongs is None:
        found.keep()
        return
    program, scenario = belongs
    report = test.stash.get(OUTCOME, None)
    if report is not None and not report.skipped:
        parameters = getattr(test, "callspec", None)
        where = [value for value in parameters.params.values() if value in (OURS, THEIRS)] if parameters else []
        found.says(program.name, program.version)
        for name in where or (OURS,):
            found.step(program.name, scenario, name, f"{test.name} failed" if report.failed else None)
        if program.compares:
            found.step(program.name, scenario, THEIRS, None)
        found.keep()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep a test's outcome for the fixture above."""
    report = yield
    if report.when == "call":
        item.stash[OUTCOME] = report
    return report
