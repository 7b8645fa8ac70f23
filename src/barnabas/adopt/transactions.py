"""Transactions that are open for long: each holds readers of committed records back, before the change and after it."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.finding import Finding, differs, works
from barnabas.cli.txn import duration_text
from barnabas.cli.wording import counted
from barnabas.words.printable import printable

__all__ = ["LONG_MS", "findings_of_transactions"]

LONG_MS = 15 * 60_000
"""Kafka's default of transaction.max.timeout.ms: a transaction of that age should have ended."""


def findings_of_transactions(state: ClusterState) -> Iterator[Finding]:
    """Yield the number of transactional ids, and transactions that should have ended."""
    if state.transactions:
        yield works("transactions", f"{counted(len(state.transactions), 'transactional id')}: producers go on")
    for name, found in state.open_transactions.items():
        if found.start_ms is not None and state.now_ms - found.start_ms > LONG_MS:
            what = (
                f"a transaction is open for {duration_text(state.now_ms - found.start_ms)} ({printable(found.state)})"
            )
            remedy = "`barnabas txn doctor` says whom it holds back; end it before the change"
            yield differs(f"transactional id {printable(name)}", what, remedy)
