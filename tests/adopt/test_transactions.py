"""Transactions that should have ended."""

from __future__ import annotations

from dataclasses import replace

from barnabas.adopt.finding import Verdict
from barnabas.adopt.transactions import LONG_MS, findings_of_transactions
from barnabas.client.admin import TransactionDescription, TransactionListing
from tests.adopt.states import HEALTHY, of_verdict


def opened(start_ms: int | None) -> TransactionDescription:
    return TransactionDescription("pay", "Ongoing", 7, 1, 60_000, start_ms, [], 1)


def test_open_for_long() -> None:
    now_ms = 10 * LONG_MS
    state = replace(
        HEALTHY,
        transactions=[TransactionListing("pay", 7, "Ongoing", 1)],
        open_transactions={"pay": opened(now_ms - LONG_MS - 1), "new": opened(now_ms - 10), "none": opened(None)},
        now_ms=now_ms,
    )
    found = list(findings_of_transactions(state))
    assert of_verdict(found, Verdict.WORKS) == ["1 transactional id: producers go on"]
    assert [each.where for each in found if each.verdict == Verdict.DIFFERS] == [("transactional id pay",)]


def test_none() -> None:
    assert list(findings_of_transactions(HEALTHY)) == []
