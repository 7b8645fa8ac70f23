"""Faults of the Spark sink that only tests can switch on, one for each step of its protocol that must not be left out.

They are to `sink_cluster` what `deliberate_bugs_of_clusters` are to `cluster`. `test_sink_bugs.py` demands that each is caught within the
number of seeds that stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.client.producer_transactions import end_transactions
from barnabas.spark.sink.decisions import Decision, DecisionLog
from barnabas.spark.sink.protocol import SinkDriver
from tests.simulation.deliberate_bugs import Switch, replaced


def skip_without_comparing() -> Switch:
    """A repeated batch is skipped whatever its rows are. Caught by reported_batches_are_there, when it was planned again."""
    return replaced(SinkDriver, "_check_rows", lambda self, last, prepared: None)


def commit_before_the_decision() -> Switch:
    """The transactions are committed before the decision is written. Caught by exactly_once, when the driver dies between."""
    original = DecisionLog.write

    def write(self: DecisionLog, decision: Decision) -> None:
        end_transactions(self._cluster, decision.transactions, commit=True, timeout_ms=10_000)
        original(self, decision)

    return replaced(DecisionLog, "write", write)


class Bug(NamedTuple):
    """One deliberate bug.

    Attributes:
        seeds: within how many seeds it is caught.
        shown_by: the scenario that shows it; only the seeds that have it count.
        nodes: of the cluster.
    """

    switch: Callable[[], Switch]
    seeds: int
    shown_by: str
    nodes: int = 1


BUGS: dict[str, Bug] = {
    "skip_without_comparing": Bug(skip_without_comparing, 12, "restored"),
    "commit_before_the_decision": Bug(commit_before_the_decision, 12, "kills"),
}
