"""Why a plan cannot be met, and which input to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.planning.rule import Rule
from barnabas.planning.sums import at_least
from barnabas.planning.workload import Workload

_REMEDIES = {
    "replicas": "lower --replicas",
    "write": "raise --compression or --broker-rate, or lower --replicas",
    "read": "raise --compression or --broker-rate, or lower --groups",
    "disk": "shorten --retention, or raise --compression or --broker-disk",
    "partitions": "raise --partition-rate, or lower --consumers",
}


class Shortage(NamedTuple):
    """Why a plan cannot be met, and the input that would mend it."""

    problem: str
    change: str


def shortages(workload: Workload, needs: Sequence[Rule]) -> list[Shortage]:
    """Return what the given brokers and consumers cannot do.

    Args:
        needs: the rules that ask for brokers, by resource.
    """
    w = workload
    found = []
    for need in needs:
        if w.brokers is not None and need.low > w.brokers:
            problem = f"{need.name} needs {need.low:,} brokers, and there {_are(w.brokers)}"
            found.append(Shortage(problem, f"give --nodes {need.low}, or {_REMEDIES[need.name]}"))
    if w.consumer_rate is not None and w.consumers is not None:
        readers = at_least(w.records, w.consumer_rate)
        if readers > w.consumers:
            who = f"{w.consumers:,} consumer{'' if w.consumers == 1 else 's'}"
            problem = f"{who} can handle {w.consumers * w.consumer_rate:,.0f} records/s, and {w.records:,.0f}/s come"
            found.append(Shortage(problem, f"give --consumers {readers}, or raise --consumer-rate"))
    return found


def _are(count: int) -> str:
    return f"is {count}" if count == 1 else f"are {count:,}"
