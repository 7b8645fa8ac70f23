"""The verdict on a history: what every check found, and numbers for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from barnabas.verify.analysis import Analysis
from barnabas.verify.anomalies import CHECKS, EXAMPLES, Anomaly
from barnabas.verify.cycles import cycles
from barnabas.verify.history import History, Op, Outcome


@dataclass(frozen=True)
class Verdict:
    """The result of all checks.

    Attributes:
        anomalies: contradictions, in the order of the checks.
        allowed: contradictions that Kafka permits.
        statistics: numbers of the run, for the report.
    """

    anomalies: tuple[Anomaly, ...]
    allowed: tuple[Anomaly, ...]
    statistics: dict[str, Any]

    @property
    def valid(self) -> bool:
        return not self.anomalies

    def counts(self) -> dict[str, int]:
        """Return how many anomalies of each kind failed the run."""
        return dict(Counter(each.name for each in self.anomalies))

    def allowed_counts(self) -> dict[str, int]:
        """Return how many allowed anomalies of each kind there are."""
        return dict(Counter(each.name for each in self.allowed))

    def as_json(self) -> dict[str, Any]:
        """Return everything for JSON, with at most EXAMPLES of each kind."""
        return {
            "valid": self.valid,
            "anomalies": self.counts(),
            "allowed": self.allowed_counts(),
            "statistics": self.statistics,
            "examples": [_as_json(each) for each in self.examples(EXAMPLES)],
        }

    def examples(self, per_kind: int) -> list[Anomaly]:
        """Return the first few anomalies of each kind."""
        shown: Counter[str] = Counter()
        found = []
        for each in self.anomalies:
            shown[each.name] += 1
            if shown[each.name] <= per_kind:
                found.append(each)
        return found


def _as_json(anomaly: Anomaly) -> dict[str, object]:
    return {
        "name": anomaly.name,
        "key": anomaly.key,
        "message": anomaly.message,
        "ops": [str(op) for op in anomaly.ops],
        **({"detail": anomaly.detail} if anomaly.detail else {}),
    }


def check(history: History) -> Verdict:
    """Look for every anomaly."""
    analysis = Analysis(history)
    found: list[Anomaly] = []
    checks: tuple[Callable[[Analysis], Iterator[Anomaly]], ...] = (*CHECKS, cycles)
    for each in checks:
        found += each(analysis)
    return Verdict(
        tuple(each for each in found if not each.allowed),
        tuple(each for each in found if each.allowed),
        statistics(analysis),
    )


def statistics(analysis: Analysis) -> dict[str, Any]:
    """Return numbers about the run."""
    outcomes: dict[str, Counter[str]] = {}
    sent = 0
    for op in analysis.completions:
        outcomes.setdefault(op.f, Counter())[op.outcome.value] += 1
        if op.outcome is Outcome.OK:
            sent += len(op.sends)
    seconds = max((op.time_ns for op in analysis.history), default=0) / 1e9
    working = [op for op in analysis.completions if op.f in ("send", "txn", "poll") and not op.final]
    return {
        "seconds": round(seconds, 1),
        "operations": {f: dict(count) for f, count in sorted(outcomes.items())},
        "acknowledged": sent,
        "read": sum(len(readers) for readers in analysis.readers_of.values()),
        "kills": outcomes.get("kill", Counter())["ok"],
        "longest_standstill_seconds": round(standstill(working), 1),
        "operations_per_second": rate(working, seconds),
    }


def rate(ops: list[Op], seconds: float) -> float:
    """Return the successful operations per second."""
    return round(sum(op.outcome is Outcome.OK for op in ops) / seconds, 1) if seconds else 0.0


def standstill(ops: list[Op]) -> float:
    """Return the longest time in seconds without a successful operation of any client."""
    times = [op.time_ns for op in ops if op.outcome is Outcome.OK]
    return max((second - first for first, second in pairwise(times)), default=0) / 1e9
