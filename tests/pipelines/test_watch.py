"""The watcher starts what fails again, each time later, and says what is wrong."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from shop.watch import Limits, Watcher


class FakeQuery:
    """A query that is as a test says."""

    def __init__(self) -> None:
        self.isActive = True
        self.reports: list[Any] = []
        self.fetched: list[int] = []
        self.error: Exception | None = None
        self.status = {"isDataAvailable": True, "isTriggerActive": False}

    @property
    def lastProgress(self) -> Any:
        self.fetched.append(1)
        return self.reports[-1] if self.reports else None

    @property
    def recentProgress(self) -> list[Any]:
        self.fetched.append(len(self.reports[-100:]))
        return self.reports[-100:]

    def exception(self) -> Exception | None:
        return self.error

    def fail(self, sentence: str) -> None:
        self.isActive, self.error = False, RuntimeError(f"{sentence}\n=== Streaming Query ===\nIdentifier: x")

    def stop(self) -> None:
        self.isActive = False

    def report(
        self, batch: int, rows: int, *, rejected: int = 0, dropped: int = 0, behind: int = 0, has_batch: bool = True
    ) -> None:
        self.reports.append(
            SimpleNamespace(
                runId=id(self),
                batchId=batch,
                timestamp=f"2026-11-24T12:00:{len(self.reports)}Z",
                durationMs={"addBatch": 1000, "triggerExecution": 1500} if has_batch else {"latestOffset": 1},
                numInputRows=rows,
                batchDuration=1500,
                stateOperators=[SimpleNamespace(numRowsDroppedByWatermark=dropped)],
                observedMetrics={"checked": {"records": rows, "rejected": rejected}},
                sources=[
                    SimpleNamespace(
                        endOffset=json.dumps({"orders": {"0": 10, "1": 5}, "~first": {}}),
                        latestOffset=json.dumps({"orders": {"0": 10 + behind, "1": 5}}),
                    )
                ],
            )
        )


class Started:
    """What the watcher has started, in order."""

    def __init__(self) -> None:
        self.queries: list[tuple[str, FakeQuery]] = []
        self.refuse: Exception | None = None

    def start(self, name: str) -> FakeQuery:
        if self.refuse is not None:
            raise self.refuse
        self.queries.append((name, FakeQuery()))
        return self.queries[-1][1]

    @property
    def last(self) -> FakeQuery:
        return self.queries[-1][1]


def test_queries_start_in_order():
    started = Started()
    Watcher(started.start, ["a", "b"]).step(0.0)
    assert [name for name, _ in started.queries] == ["a", "b"]


def test_a_failed_query_starts_again_each_time_later():
    started = Started()
    watcher = Watcher(started.start, ["a"])
    now_s, pauses = 0.0, []
    watcher.step(now_s)
    for _ in range(8):
        failed = len(started.queries)
        started.last.fail("it broke")
        watcher.step(now_s)
        failed_s = now_s
        while len(started.queries) == failed:
            now_s += 0.5
            watcher.step(now_s)
        pauses.append(now_s - failed_s)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    started.last.fail("it broke after all")
    watcher.step(now_s + 601)
    watcher.step(now_s + 602)
    assert len(started.queries) == 10
    assert watcher.status()["queries"][0]["restarts"] == 9


def test_a_query_that_does_not_start_is_down_and_the_others_go_on():
    started = Started()
    started.refuse = RuntimeError("no such table")
    watcher = Watcher(started.start, ["a"])
    watcher.step(0.0)
    assert watcher.alarms == ["a is down: no such table"]
    assert watcher.status()["queries"][0]["state"] == "down"
    started.refuse = None
    watcher.step(1.0)
    watcher.step(1.5)
    assert watcher.alarms == []
    assert watcher.status()["queries"][0]["state"] == "running"


def test_numbers_add_up_over_restarts_and_count_each_batch_once():
    started = Started()
    watcher = Watcher(started.start, ["a"])
    watcher.step(0.0)
    started.last.report(0, 100, rejected=1, dropped=2)
    watcher.step(1.0)
    watcher.step(2.0)
    started.last.fail("it broke")
    watcher.step(3.0)
    watcher.step(4.0)
    started.last.report(1, 50, rejected=2)
    watcher.step(5.0)
    (query,) = watcher.status()["queries"]
    assert (query["batch"], query["rows"], query["rejected"], query["dropped"]) == (1, 150, 3, 2)


def test_alarms_begin_and_end():
    started = Started()
    watcher = Watcher(started.start, ["a"], Limits(lag=10, rejected_share=0.1))
    watcher.step(0.0)
    started.last.report(0, 100, rejected=11, dropped=1, behind=11)
    watcher.step(1.0)
    assert watcher.alarms == [
        "a is more than 10 records behind its topic",
        "a rejects more than 10% of its records",
        "a dropped rows that came too late for their window",
    ]
    started.last.report(1, 100, behind=10)
    watcher.step(2.0)
    assert watcher.alarms == ["a dropped rows that came too late for their window"]


def test_a_look_fetches_only_the_last_report():
    started = Started()
    watcher = Watcher(started.start, ["a"])
    watcher.step(0.0)
    for batch in range(300):
        started.last.report(batch, 10)
        watcher.step(batch + 1.0)
        started.last.report(batch + 1, 0, has_batch=False)
        watcher.step(batch + 1.5)
        watcher.step(batch + 1.7)
    assert watcher.status()["queries"][0]["rows"] == 3000
    assert set(started.last.fetched) == {1}
    (watched,) = watcher.watched.values()
    assert max(len(value) for value in vars(watched).values() if hasattr(value, "__len__")) < 50, "nothing grows"


def test_batches_that_ended_between_two_looks_are_counted():
    started = Started()
    watcher = Watcher(started.start, ["a"])
    watcher.step(0.0)
    for batch in range(40, 45):  # a query with a checkpoint
        started.last.report(batch, 10, dropped=1)
    watcher.step(1.0)
    started.last.report(45, 10)
    started.last.report(46, 0)  # a batch without records, for the watermark
    started.last.report(47, 10)
    started.last.report(48, 0, has_batch=False)
    watcher.step(2.0)
    started.last.fetched.clear()
    started.last.report(48, 10)
    watcher.step(3.0)
    (query,) = watcher.status()["queries"]
    assert (query["batch"], query["rows"], query["dropped"]) == (48, 80, 5)
    assert started.last.fetched == [1]


def test_a_query_that_has_nothing_to_do_after_its_start_costs_one_report():
    started = Started()
    watcher = Watcher(started.start, ["a"])
    watcher.step(0.0)
    for look in range(5):
        started.last.report(40, 0, has_batch=False, behind=look)
        watcher.step(look + 1.0)
    assert started.last.fetched == [1, 1, 1, 1, 1, 1]
    assert watcher.status()["queries"][0]["lag"] == 4
