"""Lines about peers: the first at once, then one a minute with a count."""

from __future__ import annotations

import logging

import pytest

from barnabas import repeated_lines
from barnabas.repeated_lines import RepeatedLines
from tests.coordinator.virtual_loop import VirtualLoop

logger = logging.getLogger("barnabas.test_repeated_lines")
MINUTE = 60_000


class Log:
    """The lines about peers in virtual time."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, logger.name)
        self._caplog = caplog
        self.loop = VirtualLoop()
        self.lines = RepeatedLines(self.loop)  # type: ignore[arg-type]

    def log(self, about: str, line: str, level: int = logging.WARNING) -> None:
        self.lines.log(logger, level, about, line)

    @property
    def logged(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.name == logger.name]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_a_peer_gets_one_line_a_minute_with_a_count(log: Log) -> None:
    for number in range(3000):
        log.log("10.0.0.1", f"bad frame {number}")
        log.loop.advance(50)  # a hundred and fifty seconds in all
    assert log.logged == [
        "bad frame 0",
        "bad frame 1199 (1,199 lines about 10.0.0.1 in the last minute; this is the last one)",
        "bad frame 2399 (1,200 lines about 10.0.0.1 in the last minute; this is the last one)",
    ]


def test_what_was_counted_when_the_peer_fell_silent_is_logged(log: Log) -> None:
    log.log("10.0.0.1", "one")
    log.log("10.0.0.1", "two")
    log.loop.advance(MINUTE)
    assert log.logged == ["one", "two"], "a count of one says nothing"
    log.loop.advance(MINUTE)
    log.log("10.0.0.1", "three")
    assert log.logged == ["one", "two", "three"], "a minute without a line ends the story"


def test_peers_do_not_hide_each_other(log: Log) -> None:
    for host in ("10.0.0.1", "10.0.0.2"):
        log.log(host, f"from {host}")
    assert log.logged == ["from 10.0.0.1", "from 10.0.0.2"]


def test_many_peers_cost_bounded_memory_and_are_forgotten(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_lines, "SUBJECTS", 3)
    for number in range(50):
        log.log(f"10.0.0.{number}", f"from {number}")
    assert repr(log.lines) == "<RepeatedLines subjects=4>"
    log.loop.advance(MINUTE)
    assert log.logged == [
        *(f"from {number}" for number in range(4)),
        "from 49 (46 lines about other peers in the last minute; this is the last one)",
    ]
    log.loop.advance(MINUTE)
    assert repr(log.lines) == "<RepeatedLines subjects=0>"


def test_a_line_below_the_log_s_level_begins_nothing(log: Log) -> None:
    log.log("10.0.0.1", "a detail", logging.DEBUG)
    log.log("10.0.0.1", "a fault")
    assert log.logged == ["a fault"]


def test_the_end_logs_what_was_counted_and_leaves_no_timer(log: Log) -> None:
    for number in range(3):
        log.log("10.0.0.1", f"{number}")
    log.lines.close()
    log.loop.advance(2 * MINUTE)
    assert log.logged == ["0", "2 (2 lines about 10.0.0.1 in the last minute; this is the last one)"]


def test_a_few_lines_of_a_minute_are_logged_as_they_come(log: Log) -> None:
    for number in range(6):
        log.lines.log(logger, logging.INFO, "elections", f"epoch {number}", at_most=3)
    assert log.logged == ["epoch 0", "epoch 1", "epoch 2"]
    log.loop.advance(MINUTE)
    assert log.logged[3:] == ["epoch 5 (3 lines about elections in the last minute; this is the last one)"]


def test_an_error_has_its_traceback_and_one_that_is_counted_has_none(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2):
        log.lines.log(logger, logging.ERROR, "Vote", f"failed {number}", error=ValueError("why"))
    log.loop.advance(MINUTE)
    assert [(record.getMessage(), record.exc_info is None) for record in caplog.records] == [
        ("failed 0", False),
        ("failed 1", True),
    ]
