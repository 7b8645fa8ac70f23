"""The checks of a sink's run find what they look for."""

from __future__ import annotations

from collections import Counter

from barnabas.client.producer_transactions import Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.spark.sink.decisions import Decision
from tests.simulation.history import Partition
from tests.simulation.sink import checks
from tests.simulation.sink.sink_history import Entry, Failed, Reported, SinkHistory

P = Partition("out", 0)
FIRST, SECOND = Transaction("s/w/0", 7, 0), Transaction("s/w/1", 8, 0)


def rows(transaction: Transaction, *values: str, is_commit: bool | None = True) -> list[Entry]:
    """Return a transaction's records and their marker, which None leaves out."""
    pair = transaction.producer_id, transaction.epoch
    records = [Entry(0, *pair, value.encode(), value.encode()) for value in values]
    return records if is_commit is None else [*records, Entry(0, *pair, None, None, is_commit)]


def decision(batch: int, *transactions: Transaction) -> Decision:
    return Decision("q", batch, "run", 1, transactions)


def history(**changes: object) -> SinkHistory:
    """Return a run of one batch that went well, but for the changes."""
    given = {
        "reported": [Reported("driver", "s", 0, ("a", "b"), frozenset({FIRST}))],
        "wanted": {"out": ["a", "b"]},
        "logs": {P: rows(FIRST, "a", "b")},
        "committed": {"out": Counter("ab")},
        "decisions": {"s": [decision(0, FIRST)]},
    }
    return SinkHistory(**{**given, **changes})


def names(found: SinkHistory) -> set[str]:
    return {name for name, check in checks.ALL.items() if check(found)}


def test_a_run_that_went_well():
    assert names(history()) == set()


def test_rows_that_lack_or_are_there_twice_are_found():
    assert names(history(committed={"out": Counter("a")})) == {"exactly_once"}
    assert names(history(committed={"out": Counter("abb")})) == {"exactly_once"}
    assert names(history(committed={"out": Counter("abc")})) == {"exactly_once"}


def test_a_row_whose_batch_was_never_reported_may_lack():
    late = {"wanted": {"out": ["a"]}, "undecided": {"out": ["b"]}, "reported": []}
    assert names(history(**late, committed={"out": Counter("a")})) == set()
    assert names(history(**late, committed={"out": Counter("ab")})) == set()
    assert names(history(**late, committed={"out": Counter("abb")})) == {"exactly_once"}


def test_a_batch_that_was_skipped_and_is_another_is_found():
    skipped = [Reported("driver", "s", 0, ("a", "b", "c"), frozenset({SECOND}))]
    assert names(history(reported=skipped)) == {"reported_batches_are_there"}
    assert names(history(reported=skipped, decisions={"s": []})) >= {"reported_batches_are_there"}


def test_an_aborted_or_open_transaction_of_a_decision_is_found():
    for is_commit in (False, None):
        both = rows(FIRST, "a", "b") + rows(SECOND, "c", is_commit=is_commit)
        found = history(logs={P: both}, decisions={"s": [decision(0, FIRST, SECOND)]}, reported=[])
        assert names(found) == {"decided_transactions_are_committed"}


def test_a_commit_without_a_decision_is_found():
    found = history(logs={P: rows(FIRST, "a", "b") + rows(SECOND, "c")}, decisions={"s": [decision(0, FIRST)]})
    assert names(found) == {"decided_transactions_are_committed"}


def test_a_batch_that_is_decided_again_is_found():
    assert names(history(decisions={"s": [decision(0, SECOND), decision(0, FIRST)]})) == {"decisions_go_forward"}
    assert names(history(decisions={"s": [decision(1, SECOND), decision(0, FIRST)]})) == {"decisions_go_forward"}
    again = [decision(0, FIRST), decision(0, FIRST)]
    assert names(history(decisions={"s": again})) == set(), "only what is aborted has changed"


def test_what_stays_open_is_found():
    assert names(history(held_back=["out-0"])) == {"nothing_is_open"}


def test_an_error_without_a_reason_is_found():
    def failed(error: str, **reasons: object) -> SinkHistory:
        none = {"was_alone": True, "differs": False, "is_old": False, "code": None, "was_reported": False}
        return history(failed=[Failed("driver", "s", 0, error, **{**none, "may_forget": False, **reasons})])

    wrong = {"errors_have_reasons"}
    assert names(failed("batch 0 is older than batch 1")) == wrong
    assert names(failed("batch 0 is older than batch 1", is_old=True)) == set()
    assert names(failed("it was written before with 3 rows")) == wrong
    assert names(failed("it was written before with 3 rows", differs=True)) == set()
    assert names(failed("the brokers have forgotten 1", may_forget=True)) == set()
    assert names(failed("the brokers have forgotten 1", may_forget=True, was_reported=True)) == wrong
    assert names(failed("rows are lost", was_alone=False, may_forget=True, is_old=True, differs=True)) == wrong
    assert names(failed("fenced", code=ErrorCode.PRODUCER_FENCED)) == wrong
    assert names(failed("fenced", code=ErrorCode.PRODUCER_FENCED, was_alone=False)) == set()
    assert names(failed("time is up", code=ErrorCode.REQUEST_TIMED_OUT, was_alone=False)) == wrong


def test_it_counts_what_happened():
    found = history(
        logs={P: rows(FIRST, "a", "b") + rows(SECOND, "c", is_commit=False)},
        reported=[Reported("d", "s", 0, ("a", "b"), frozenset({each})) for each in (FIRST, SECOND)],
    )
    checks.count(found)
    assert found.counts == {
        "transactions committed": 1,
        "transactions aborted": 1,
        "decisions": 1,
        "batches reported": 2,
        "batches skipped": 1,
    }
