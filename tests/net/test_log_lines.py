"""The broker's log: one line for each event, whatever clients call themselves."""

from __future__ import annotations

import logging
import re
import signal
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.net.log_lines import LineFormatter
from tests.process.process import Node

HOSTILE = "g\x1b]0;owned\x07\x1b[2J\n2026-11-22 00:00:00,000 INFO barnabas: forged \u202e\u2028\r\x85"


def formatted(message: str, *args: object, error: BaseException | None = None) -> str:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("barnabas.group", logging.INFO, __file__, 1, message, args, exc_info)
    return LineFormatter().format(record)


def test_what_a_terminal_or_a_log_would_obey_is_escaped() -> None:
    line = formatted("group %s: rebalance", HOSTILE)
    assert line.isprintable()
    assert r"g\x1b]0;owned\x07\x1b[2J\n2026" in line
    assert line.endswith(r"forged \u202e\u2028\r\x85: rebalance")


def test_an_ordinary_line_is_as_before() -> None:
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO barnabas\.group: größer 'a\\\\n' …",
        formatted("größer %r …", "a\\n"),
    )


def test_an_exception_s_text_begins_no_line() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        lines = formatted("failed", error=error).split("\n")
    assert lines[0].endswith("INFO barnabas.group: failed")
    assert len(lines) > 3, "the traceback is there"
    assert all(line.startswith("    ") and line.isprintable() for line in lines[1:]), lines


def test_a_long_name_does_not_fill_the_log() -> None:
    line = formatted("group %s: rebalance", "x" * 30_000)
    assert len(line) < 4100
    assert line.endswith(" more characters)")


def test_a_stack_is_indented() -> None:
    record = logging.LogRecord("n", logging.INFO, __file__, 1, "m", (), None, sinfo="Stack\n2026 forged\x1b")
    assert LineFormatter().format(record).split("\n")[1:] == ["    Stack", "    2026 forged\\x1b"]


@pytest.mark.slow
def test_a_client_cannot_forge_a_line_of_a_running_broker(tmp_path: Path) -> None:
    with Node(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0") as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
        admin.create_topics([NewTopic("t", 1)])["t"].result()
        consumer = Consumer(
            {"bootstrap.servers": node.bootstrap_servers, "group.id": HOSTILE, "client.id": HOSTILE, "log_level": 0}
        )
        consumer.subscribe(["t"])
        while "owned" not in node.log_path.read_text():
            consumer.poll(0.1)
        consumer.close()
        assert node.signal(signal.SIGTERM) == 0
        log = node.log_path.read_text()
    for line in log.split("\n")[:-1]:
        assert line.isprintable()
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \w+ barnabas\.\w+|    ", line), line
