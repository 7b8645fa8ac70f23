"""The pytest plugin: whose settings a test's broker has, and what the report of a failed test shows."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from barnabas.pytest_plugin import BrokerLog
from tests.pages import run_pytest

FAILING = """
import barnabas as package
from confluent_kafka import Consumer, Producer


def read(broker, group):
    address = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer(address)
    producer.produce("orders", b"one")
    producer.flush()
    consumer = Consumer(address | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    value = consumer.poll(60).value()
    consumer.close()
    return value


def test_a_broker_of_its_own():
    with package.Broker() as broker:
        assert broker.cluster_id == ""


def test_passes(barnabas, caplog):
    assert read(barnabas, "group-of-the-first") == b"one"
    assert caplog.records == []


def test_fails(barnabas):
    assert read(barnabas, "group-of-the-second") == b"two"
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_failed_test_shows_the_brokers_log_of_that_test(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(FAILING)
    done = run_pytest(tmp_path, *options)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    _, own, section = done.stdout.split("Captured barnabas log call")
    assert "INFO barnabas.node.node: Stopped" in own
    assert "INFO barnabas.group.classic.rebalance: group group-of-the-second: generation 1" in section
    assert "group-of-the-first" not in done.stdout
    assert "Captured stderr" not in done.stdout
    assert "Captured log" not in done.stdout


TWICE = """
import logging


def test_fails(barnabas, caplog):
    barnabas.create_topic("orders")
    logging.getLogger("barnabas.plugin_test").warning("a warning of the broker")
    logging.getLogger("shop").warning("a warning of the shop")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["a warning of the broker", "a warning of the shop"]
    assert False
"""


LATER_PYTEST = """
import logging
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    # pytest adds its handlers to loggers that do not propagate, from 9.1 on
    assert logging.getLogger("barnabas").propagate
    assert logging.getLogger("barnabas").level == logging.NOTSET
    return (yield)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--log-level=INFO",), ("--log-level=DEBUG", "-n", "1"), ("-p", "no:logging")])
def test_a_report_shows_each_line_once(options: tuple[str, ...], tmp_path: Path) -> None:
    text = TWICE
    if "no:logging" in options:
        text = "\n".join(line.replace(", caplog", "") for line in TWICE.splitlines() if "warnings" not in line)
    (tmp_path / "test_twice.py").write_text(text)
    (tmp_path / "conftest.py").write_text(LATER_PYTEST)
    done = run_pytest(tmp_path, *options)
    assert "assert False" in done.stdout, done.stdout + done.stderr
    _, _, report = done.stdout.partition("assert False\n")
    broker, shop = report.split("Captured log call" if "no:logging" not in options else "Captured stderr call")
    assert broker.count("a warning of the broker") == 1
    assert broker.count("start_report: barnabas") == 1
    assert "barnabas.plugin_test" not in shop
    assert shop.count("a warning of the shop") == 1


MISTAKES = """
import pytest


class TestNothing:
    @pytest.fixture
    def barnabas_config(self):
        pass

    def test(self, barnabas):
        pass


@pytest.mark.parametrize("barnabas_config", [["num.partitions=4"], {"num.partition": 4}, {"num.partitions": "four"}, {"listeners": "PLAINTEXT://no.such.host:1"}])
def test_mistaken(barnabas):
    pass


def test_rejected(barnabas):
    barnabas.create_topic("orders", partitions=0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-p", "no:asyncio", "-p", "no:anyio")], ids=["asyncio", "alone"])
def test_a_mistake_is_one_sentence_that_names_the_place(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_mistakes.py").write_text(MISTAKES)
    done = run_pytest(tmp_path, "-q", *options)
    report, _, _ = done.stdout.partition("short test summary info")
    sentences = [
        line.removeprefix("E").strip() for line in report.splitlines() if re.match(r"(E +)?\S*(Error|Start): ", line)
    ]
    mapping = 'return a mapping of settings, such as {"num.partitions": 4}, or {} for the defaults'
    place = "test_mistakes.py:14: the fixture barnabas_config:"
    assert [line for line in sentences if "no.such.host" not in line] == [
        f"TypeError: test_mistakes.py:6: the fixture barnabas_config: it returns None: {mapping}",
        f"TypeError: {place} it returns a list: {mapping}",
        f"ConfigError: {place} num.partition is not a setting of the broker; did you mean num.partitions?",
        f"ConfigError: {place} num.partitions=four: must be a whole number",
        "barnabas.KafkaError: INVALID_PARTITIONS: Number of partitions was set to an invalid non-positive value.",
    ], done.stdout + done.stderr
    (cannot_start,) = (line for line in sentences if "no.such.host" in line)
    assert cannot_start.startswith(f"CannotStart: {place} ")
    for foreign in ("pytest_plugin.py", "embedded", "plugin.py", "--full-trace"):
        assert foreign not in done.stdout


OVERRIDES = """
import pytest


@pytest.fixture(scope="session")
def barnabas_config():
    return {"num.partitions": 2}


def number(broker):
    return broker._running().config.num_partitions


def test_the_modules_settings(barnabas):
    assert number(barnabas) == 2


class TestAClass:
    @pytest.fixture(scope="class")
    def barnabas_config(self, barnabas_config):
        return {**barnabas_config, "num.partitions": 3}

    def test_the_classes_settings(self, barnabas):
        assert number(barnabas) == 3


@pytest.mark.parametrize("barnabas_config", [{"num.partitions": 4}, {"num.partitions": 2}])
def test_the_tests_settings(barnabas, barnabas_config):
    assert number(barnabas) == barnabas_config["num.partitions"]


def test_the_same_settings_have_the_same_broker(barnabas, barnabas_broker):
    assert barnabas is barnabas_broker
    barnabas.stop()


def test_a_stopped_broker_starts_again(barnabas):
    barnabas.create_topic("orders")


@pytest.mark.parametrize("barnabas_config", [{"num.partition": 4}])
def test_a_mistaken_name(barnabas):
    pass
"""

OTHER_MODULE = """
def test_another_module_has_the_defaults(barnabas):
    assert barnabas._running().config.num_partitions == 1
"""


@pytest.mark.slow
def test_settings_are_overridden_where_they_should_apply(tmp_path: Path) -> None:
    (tmp_path / "test_a_settings.py").write_text(OVERRIDES)
    (tmp_path / "test_b_settings.py").write_text(OTHER_MODULE)
    done = run_pytest(tmp_path, "-q")
    assert "7 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "num.partition is not a setting of the broker; did you mean num.partitions?" in done.stdout


@pytest.fixture
def log() -> BrokerLog:
    return BrokerLog()


@pytest.mark.parametrize(
    ("levels", "passed_on"),
    [
        ({}, ["a warning"]),
        ({"": logging.INFO}, ["a line", "a warning"]),
        ({"barnabas": logging.INFO}, ["a line", "a warning"]),
        ({"barnabas.plugin_test": logging.ERROR, "": logging.INFO}, []),
        ({"barnabas": logging.ERROR}, []),
    ],
)
def test_other_handlers_get_what_they_got(
    levels: dict[str, int], passed_on: list[str], caplog: pytest.LogCaptureFixture, log: BrokerLog
) -> None:
    logger = logging.getLogger("barnabas.plugin_test")
    shared = [handler for handler in logging.getLogger("barnabas").handlers if isinstance(handler, BrokerLog)]
    for installed in shared:
        installed.uninstall()
    log.install()
    try:
        for name, level in levels.items():
            caplog.set_level(level, logger=name or None)
        logger.info("a line")
        logger.warning("a warning")
        assert [record.getMessage() for record in caplog.records] == passed_on
        kept = [line.partition(" ")[2] for line in log.take().splitlines()]
        assert set(passed_on) <= {line.partition(": ")[2] for line in kept}
        if not levels:
            assert kept == ["INFO barnabas.plugin_test: a line", "WARNING barnabas.plugin_test: a warning"]
        assert log.take() == ""
    finally:
        log.uninstall()
        for installed in shared:
            installed.install()
    assert logging.getLogger("barnabas").propagate is not bool(shared)
