"""What must hold of a sink's run, one property a function; each returns what it found wrong, in words, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from barnabas.client.producer_transactions import Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.spark.sink.decision_topic import TOPIC
from barnabas.spark.sink.decisions import NO_BATCH
from tests.simulation.sink.reading import ends_of_transactions
from tests.simulation.sink.sink_history import Failed, SinkHistory

_FENCING = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
"""What a driver meets that another one overtakes."""
Pair = tuple[int, int]
"""Producer id and epoch."""


def exactly_once(history: SinkHistory) -> list[str]:
    """A reader of committed records finds each row once; one whose batch was never reported, at most once."""
    found = []
    for topic, wanted in history.wanted.items():
        if topic not in history.committed:
            continue
        read, maybe = history.committed[topic], set(history.undecided.get(topic, ()))
        found += [f"{topic} lacks {value}" for value in wanted if not read[value]]
        found += [f"{topic} has {value} {count} times" for value, count in read.items() if count > 1]
        found += [f"{topic} has {value}, which nobody planned" for value in read if value not in {*wanted, *maybe}]
    return found


def reported_batches_are_there(history: SinkHistory) -> list[str]:
    """A batch whose commit returned, written or skipped, has a decision, and its transactions hold just its rows."""
    rows, _ = _transactions(history)
    found = []
    for each in history.reported if history.decisions else ():
        decided = [one for one in history.decisions.get(each.sink, ()) if one.batch == each.batch]
        if not decided:
            if each.values:
                found.append(f"{each.driver} was told that batch {each.batch} of {each.sink} is written: no decision")
            continue
        held = Counter(value for pair in _pairs(decided[-1].transactions) for value in rows.get(pair, ()))
        if held != Counter(each.values):
            missing, more = Counter(each.values) - held, held - Counter(each.values)
            found.append(
                f"{each.driver} was told that batch {each.batch} of {each.sink} is written: its transactions lack"
                f" {sorted(missing)}, and have {sorted(more)} besides"
            )
    return found


def decided_transactions_are_committed(history: SinkHistory) -> list[str]:
    """All rows of a decided transaction are committed, and those of no other."""
    rows, ends = _transactions(history)
    decided = {pair for each in history.decisions.values() for one in each for pair in _pairs(one.transactions)}
    found = []
    for pair, outcomes in ends.items():
        if pair in decided and outcomes != {True}:
            how = "was aborted" if False in outcomes else "is open"
            found.append(f"a decided transaction {how}: producer {pair} with {sorted(rows[pair])}")
        elif pair not in decided and True in outcomes:
            found.append(f"a transaction without a decision was committed: producer {pair} with {sorted(rows[pair])}")
    return found


def decisions_go_forward(history: SinkHistory) -> list[str]:
    """A sink decides each batch once, and later ones later. A decision may be written again, with more that is aborted."""
    found = []
    for sink, decided in history.decisions.items():
        for one, next_one in pairwise(decided):
            is_same = (one.batch, one.transactions) == (next_one.batch, next_one.transactions)
            if next_one.batch <= one.batch and not is_same:
                found.append(f"{sink} decided batch {next_one.batch} after {one.batch}")
    return found


def nothing_is_open(history: SinkHistory) -> list[str]:
    """When the last batch is written, every transaction has ended."""
    return [f"a transaction stays open in {each}" for each in history.held_back]


def errors_have_reasons(history: SinkHistory) -> list[str]:
    """A user sees an error only where the scenario justifies it."""
    return [f"{each.driver}, batch {each.batch}: {each.error}" for each in history.failed if not _is_right(each)]


def _is_right(failed: Failed) -> bool:
    """Return whether a user can understand why he sees this error."""
    if failed.code is not None:
        return failed.code in _FENCING and not failed.was_alone
    reasons = {
        "is older than batch": failed.is_old or not failed.was_alone,
        "was written before with": failed.differs,
        "took over while batch": not failed.was_alone,
        "the brokers have forgotten": failed.may_forget and not failed.was_reported,
    }
    return any(words in failed.error and is_right for words, is_right in reasons.items())


ALL: dict[str, Callable[[SinkHistory], list[str]]] = {
    "exactly_once": exactly_once,
    "reported_batches_are_there": reported_batches_are_there,
    "decided_transactions_are_committed": decided_transactions_are_committed,
    "decisions_go_forward": decisions_go_forward,
    "nothing_is_open": nothing_is_open,
    "errors_have_reasons": errors_have_reasons,
}


def count(history: SinkHistory) -> None:
    """Count what the sink did: a run in which nothing happened proves nothing."""
    _, ends = _transactions(history)
    counts = history.counts
    counts["transactions committed"] = sum(True in outcomes for outcomes in ends.values())
    counts["transactions aborted"] = sum(False in outcomes for outcomes in ends.values())
    counts["decisions"] = sum(len({one.batch for one in each} - {NO_BATCH}) for each in history.decisions.values())
    counts["batches reported"] = len(history.reported)
    for each in history.reported:
        decided = [one.transactions for one in history.decisions.get(each.sink, ()) if one.batch == each.batch]
        counts["batches skipped"] += bool(decided) and set(decided[-1]) != set(each.transactions)


def _pairs(transactions: tuple[Transaction, ...]) -> Iterator[Pair]:
    return ((each.producer_id, each.epoch) for each in transactions)


def _transactions(history: SinkHistory) -> tuple[dict[Pair, list[str]], dict[Pair, set[bool | None]]]:
    """Return by pair the values that each transaction wrote, and how it ended."""
    rows: dict[Pair, list[str]] = {}
    ends: dict[Pair, set[bool | None]] = {}
    for partition, log in history.logs.items():
        if partition.topic == TOPIC:
            continue
        for each, outcome in zip(log, ends_of_transactions(log), strict=True):
            if each.is_commit is None:
                pair = (each.producer_id, each.epoch)
                rows.setdefault(pair, []).append((each.value or b"").decode())
                ends.setdefault(pair, set()).add(outcome)
    return rows, ends
