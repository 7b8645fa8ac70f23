"""Keeps the queries running, and says when something is wrong.

A query that fails is started again, after a second at first and up to a minute later; one that ran ten minutes starts
over with a second. An alarm is a sentence: a query is far behind, much is rejected, rows came too late for their window,
a query failed. Alarms are in the status, and the log has each when it begins and when it ends.

A report takes a third of a millisecond to fetch and parse, the hundred reports that Spark keeps a hundred times as much.
So a look fetches only the last report, and the others if a batch ended that it does not show.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

logger = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S, WELL_AFTER_S = 1.0, 60.0, 600.0


class Query(Protocol):
    """What the watcher needs of a `StreamingQuery`."""

    @property
    def isActive(self) -> bool: ...

    @property
    def lastProgress(self) -> Any: ...

    @property
    def recentProgress(self) -> Sequence[Any]: ...

    @property
    def status(self) -> Mapping[str, Any]: ...

    def exception(self) -> Exception | None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Limits:
    """When to raise an alarm."""

    lag: int = 100_000
    rejected_share: float = 0.05
    dropped: int = 0


@dataclass
class Watched:
    """One query, through all its restarts.

    Attributes:
        run_id: of the run that the next two are about.
        seen: number and time of the last report that a look has seen.
        counted: the last batch whose report has been added up.
    """

    name: str
    query: Query | None = None
    restarts: int = 0
    error: str = ""
    batch: int = -1
    rows: int = 0
    rejected: int = 0
    dropped: int = 0
    lag: int = 0
    batch_s: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    started_s: float = 0.0
    due_s: float = 0.0
    run_id: str = ""
    seen: tuple[int, str] = (-1, "")
    counted: int = -1

    def count(self) -> None:
        """Add up what the query has reported since the last look."""
        last = None if self.query is None else self.query.lastProgress
        if self.query is None or last is None:
            return
        if str(last.runId) != self.run_id:
            self.run_id, self.seen, self.counted = str(last.runId), (-1, ""), -1
        if (last.batchId, last.timestamp) == self.seen:
            return
        self.seen = last.batchId, last.timestamp
        for progress in [last] if last.batchId <= self.counted + 1 else self.query.recentProgress:
            if progress.batchId > self.counted and _has_batch(progress):
                self._add(progress)
        # An idle query reports the number of its next batch.
        self.counted = max(self.counted, last.batchId - 1)
        self.lag = sum(_lag(source) for source in last.sources)

    def _add(self, progress: Any) -> None:
        self.counted = progress.batchId
        if not progress.numInputRows:
            return
        self.batch = progress.batchId
        self.rows += progress.numInputRows
        self.batch_s = progress.batchDuration / 1000
        self.dropped += sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
        observed = progress.observedMetrics.get("checked")
        self.rejected += observed["rejected"] if observed is not None else 0


def _has_batch(progress: Any) -> bool:
    """Return whether a report is that of a batch; a trigger that finds nothing to do is reported now and then."""
    return bool(progress.numInputRows) or "addBatch" in progress.durationMs


def _lag(source: Any) -> int:
    """Return how many records a topic has beyond the batch; a table's source does not say."""
    try:
        end, latest = json.loads(source.endOffset), json.loads(source.latestOffset)
    except (TypeError, ValueError):
        return 0
    if not isinstance(end, dict) or not isinstance(latest, dict):
        return 0
    lag = 0
    for topic, partitions in latest.items():
        if isinstance(partitions, dict) and not topic.startswith("~"):
            lag += sum(max(0, offset - end.get(topic, {}).get(number, 0)) for number, offset in partitions.items())
    return lag


class Watcher:
    """Watches queries; call `step` about once a second.

    Args:
        start: starts the query of a name.
        names: the queries, in the order in which they start: one after the other, when the one before is ready.
        limits: when to raise an alarm.
    """

    def __init__(self, start: Callable[[str], Query], names: Sequence[str], limits: Limits = Limits()) -> None:
        self._start = start
        self._limits = limits
        self.watched = {name: Watched(name) for name in names}
        self.alarms: list[str] = []

    def __repr__(self) -> str:
        return f"<Watcher queries={len(self.watched)} alarms={len(self.alarms)}>"

    def step(self, now_s: float) -> None:
        """Start what is due, count what is new, and see to the alarms."""
        for each in self.watched.values():
            each.count()
            if each.query is None:
                if now_s >= each.due_s:
                    self._begin(each, now_s)
            elif not each.query.isActive:
                self._failed(each, each.query.exception(), now_s)
        self._see_to_alarms()

    def stop(self) -> None:
        """Stop every query after the batch it is in."""
        for each in self.watched.values():
            if each.query is not None:
                each.query.stop()
                each.count()

    def status(self) -> dict[str, Any]:
        """Return what `shop status` shows."""
        return {"alarms": self.alarms, "queries": [_status(each) for each in self.watched.values()]}

    def _begin(self, each: Watched, now_s: float) -> None:
        try:
            each.query = self._start(each.name)
            each.started_s = now_s
        except Exception as error:  # whatever it is, the other queries go on and this one is tried again
            self._failed(each, error, now_s)

    def _failed(self, each: Watched, error: Exception | None, now_s: float) -> None:
        if each.query is not None and now_s - each.started_s > WELL_AFTER_S:
            each.pause_s = FIRST_PAUSE_S
        each.query = None
        each.restarts += 1
        each.error = first_line(error)
        each.due_s = now_s + each.pause_s
        logger.warning("%s failed and starts again in %.0f s: %s", each.name, each.pause_s, each.error)
        each.pause_s = min(2 * each.pause_s, LONGEST_PAUSE_S)

    def _see_to_alarms(self) -> None:
        now = [alarm for each in self.watched.values() for alarm in _alarms(each, self._limits)]
        for alarm in now:
            if alarm not in self.alarms:
                logger.warning("%s", alarm)
        for alarm in self.alarms:
            if alarm not in now:
                logger.info("over: %s", alarm)
        self.alarms = now


def _alarms(each: Watched, limits: Limits) -> list[str]:
    """Return what is wrong with a query. A number would make every look a new alarm, so the status has the numbers."""
    found = []
    if each.query is None and each.restarts:
        found.append(f"{each.name} is down: {each.error}")
    if each.lag > limits.lag:
        found.append(f"{each.name} is more than {limits.lag:,} records behind its topic")
    if each.rows and each.rejected / each.rows > limits.rejected_share:
        found.append(f"{each.name} rejects more than {limits.rejected_share:.0%} of its records")
    if each.dropped > limits.dropped:
        found.append(f"{each.name} dropped rows that came too late for their window")
    return found


def _status(each: Watched) -> dict[str, Any]:
    state = "down" if each.query is None and each.restarts else "starting" if each.query is None else "running"
    return {
        "name": each.name,
        "state": state,
        "batch": each.batch,
        "rows": each.rows,
        "rejected": each.rejected,
        "dropped": each.dropped,
        "lag": each.lag,
        "batch_s": each.batch_s,
        "restarts": each.restarts,
        "error": each.error,
        "idle": each.query is not None and not _is_busy(each.query.status),
    }


def _is_busy(status: Mapping[str, Any]) -> bool:
    return bool(status["isDataAvailable"] or status["isTriggerActive"])


def first_line(error: Exception | None) -> str:
    """Return what an exception says, without Spark's plans below it."""
    if error is None:
        return "it ended"
    lines = [line for line in str(error).splitlines() if line and not line.startswith("===")]
    return lines[0] if lines else type(error).__name__
