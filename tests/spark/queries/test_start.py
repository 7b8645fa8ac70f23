"""A query whose source is late is started again; every other failure is the caller's."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.spark.queries.start import start

LATE = "java.net.SocketException: the Python process failed to connect back"


class Query:
    def __init__(self, error: str | None, polls: int) -> None:
        self._error = error
        self._polls = polls

    @property
    def isActive(self) -> bool:
        return self._polls > 0 or self._error is None

    @property
    def status(self) -> dict[str, str]:
        self._polls -= 1
        return {"message": "Initializing sources" if self._polls >= 0 else "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return None if self._error is None else RuntimeError(self._error)


class Machine:
    """Starts queries that end as planned, or do not start if the plan is an exception, on a clock of its own."""

    def __init__(self, *errors: str | Exception | None, polls: int = 2) -> None:
        self._errors = list(errors)
        self._polls = polls
        self.started: list[Query] = []
        self.slept_s: list[float] = []
        self.tables: list[str] = []

    def start(self) -> Query:
        error = self._errors.pop(0)
        if isinstance(error, Exception):
            raise error
        self.started.append(Query(error, self._polls))
        return self.started[-1]

    def toTable(self, name: str) -> Query:
        self.tables.append(name)
        return self.start()

    def begin(self, **options: Any) -> Any:
        return start(self, clock=lambda: sum(self.slept_s), sleep=self.slept_s.append, **options)  # type: ignore[arg-type]


def test_waits_until_the_sources_are_ready():
    machine = Machine(None, polls=3)
    assert machine.begin() is machine.started[0]
    assert machine.slept_s == [0.05] * 3


def test_a_source_that_is_late_is_started_again():
    machine = Machine(LATE, LATE, LATE, LATE, LATE, None, polls=0)
    assert machine.begin() is machine.started[5]
    assert machine.slept_s == [5, 10, 20, 40, 40]


def test_a_query_into_a_table():
    machine = Machine(LATE, None, polls=0)
    assert machine.begin(table="orders") is machine.started[1]
    assert machine.tables == ["orders", "orders"]


def test_patience_ends():
    machine = Machine(LATE, LATE, LATE, polls=0)
    assert "failed to connect back" in str(machine.begin(patience_s=15).exception())
    assert len(machine.started) == 3


def test_a_process_that_is_late_before_there_is_a_query():
    late = RuntimeError(
        "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    )
    machine = Machine(late, LATE, None, polls=0)
    assert machine.begin() is machine.started[1]
    assert machine.slept_s == [5, 10]
    with pytest.raises(RuntimeError, match="Timed out"):
        Machine(late, late, polls=0).begin(patience_s=5)
    with pytest.raises(RuntimeError, match="no such option"):
        Machine(RuntimeError("no such option"), polls=0).begin()


def test_another_failure_is_returned_at_once():
    machine = Machine("topic orders does not exist", polls=0)
    assert "does not exist" in str(machine.begin().exception())
    assert machine.slept_s == []
