"""Faults of the Spark sink that only tests can switch on, one for each step of its protocol that must not be left out.

They are to `sink_cluster` what `deliberate_bugs_of_clusters` are to `cluster`. `test_sink_bugs.py` demands that each is caught within the
number of seeds that stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import results
from barnabas.client.producer_transactions import Transaction, end_transactions
from barnabas.spark.sink import protocol, sink_transactions
from barnabas.spark.sink.decision_scan import DecisionScan, claim_key
from barnabas.spark.sink.decision_topic import TOPIC
from barnabas.spark.sink.decisions import Decision, DecisionLog
from barnabas.spark.sink.options import SinkOptions
from barnabas.spark.sink.protocol import SinkDriver
from tests.simulation.deliberate_bugs import Switch, replaced


def skip_without_comparing() -> Switch:
    """A repeated batch is skipped whatever its rows are. Caught by reported_batches_are_there, when it was planned again."""
    return replaced(protocol, "check_rows", lambda last, prepared, *, fail: None)


def join_names_by_a_dash() -> Switch:
    """Two sinks may have one name. Caught by reported_batches_are_there, or errors_have_reasons, when they do."""
    return replaced(SinkOptions, "sink_name", lambda self, query: f"{self.prefix}-{query}")


@contextmanager
def only_end_left_overs() -> Iterator[None]:
    """A transaction that is aborted leaves its pair valid, and no record of it. Caught by exactly_once, when its task lives on.

    The record alone hides it, but for an abort two decisions ago.
    """

    def keep(*arguments: Any, **more: Any) -> None:
        return None

    with replaced(sink_transactions, "init_producer_id", keep), decide_what_is_being_aborted():
        yield


def decide_what_is_being_aborted() -> Switch:
    """A driver decides transactions that another one is about to abort. Caught by decided_transactions_are_committed."""

    def look(self: SinkDriver, last: Decision | None, mine: list[Transaction], prepared: Any) -> set[Transaction]:
        return self._transactions.look(mine, ())[0]

    return replaced(SinkDriver, "_look", look)


SINK = TopicPartition(TOPIC, 0)


class _WithoutBarrier(DecisionLog):
    """A log whose claim leaves no record, and whose reader looks for none."""

    def _append(self, record: bytes) -> None:
        if claim_key(self._name) not in record:
            super()._append(record)

    def _scan(self) -> DecisionScan:
        offsets = (results(list_offsets(self._cluster, {SINK: each})) for each in (EARLIEST, LATEST))
        first, end = (found[SINK].offset for found in offsets)
        return self._scan_range(first, end)


def read_without_the_barrier() -> Switch:
    """A decision is read from any broker that takes itself for the leader. Caught by decisions_go_forward, when one was deposed."""
    return replaced(protocol, "DecisionLog", _WithoutBarrier)


def never_note_done() -> Switch:
    """Nobody notes that a decision is carried out. Caught by errors_have_reasons, when its transactional ids have expired."""
    return replaced(DecisionLog, "note_done", lambda self, batch: None)


def claim_without_fencing() -> Switch:
    """A driver claims by an id of its own, which fences nobody. Caught by decisions_go_forward, when a driver stood still."""
    original = DecisionLog.claim
    ids = count()

    def claim(self: DecisionLog) -> None:
        self._producer.transactional_id = f"{self._name}?{next(ids)}"
        original(self)

    return replaced(DecisionLog, "claim", claim)


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
    "join_names_by_a_dash": Bug(join_names_by_a_dash, 4, "names"),
    "only_end_left_overs": Bug(only_end_left_overs, 24, "overlap"),
    "decide_what_is_being_aborted": Bug(decide_what_is_being_aborted, 24, "overlap"),
    "read_without_the_barrier": Bug(read_without_the_barrier, 12, "deposed", 3),
    "never_note_done": Bug(never_note_done, 12, "expired"),
    "claim_without_fencing": Bug(claim_without_fencing, 12, "zombies"),
    "commit_before_the_decision": Bug(commit_before_the_decision, 12, "kills"),
}
