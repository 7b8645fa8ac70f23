"""The transactions under one sink's name, at their coordinators: which are open, and how they end for good.

A driver aborts a transaction that does not count, and fences its producer's pair. EndTxn alone leaves the pair valid: a
task that lives on would begin another transaction with it, and the rows that were aborted would be missing from that
one. InitProducerId bumps the epoch. Neither request touches a later transaction of the id, however late it comes, because
there is none: a worker uses an id again only if its last transaction was committed (`was_committed`).

Source: KIP-360, KIP-664, KIP-1152 (a pattern in ListTransactions 2).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from barnabas.client.cluster import Cluster
from barnabas.client.patience import insist
from barnabas.client.producer_transactions import (
    ProducerIdentity,
    Transaction,
    end_transactions,
    init_producer_id,
)
from barnabas.client.transactions import (
    TransactionDescription,
    TransactionListing,
    describe_transactions,
    list_transactions,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.words.sink_names import SEPARATOR

logger = logging.getLogger("barnabas.spark")

FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
"""The transaction has ended, or the producer's pair is no longer valid, by another process."""
ENDED = (*FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
"""A transaction with this pair is not open, and did not end as asked."""
# No transaction begins with the epoch that fences another.
_UNUSED_TIMEOUT_MS = 1_000
_COMMITTED = ("PrepareCommit", "CompleteCommit")


class SinkTransactions:
    """The transactions of one sink's tasks.

    Args:
        name: the sink's name.
        timeout_ms: each request is repeated so long.
    """

    def __init__(self, cluster: Cluster, name: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._prefix = name + SEPARATOR
        self._timeout_ms = timeout_ms

    def __repr__(self) -> str:
        return f"<SinkTransactions prefix={self._prefix}>"

    def look(
        self, mine: Iterable[Transaction], known: Iterable[Transaction]
    ) -> tuple[set[Transaction], list[Transaction]]:
        """Return the open transactions but those of a batch, and those of the batch that are not open any more.

        Args:
            mine: the batch's.
            known: others that may be open, listed or not.
        """
        listed = self._listed()
        unlisted = [each for each in mine if each.transactional_id not in listed]
        others = (listed | {each.transactional_id for each in known}) - {each.transactional_id for each in mine}
        still_open = self._ongoing(others | {each.transactional_id for each in unlisted})
        return still_open - set(mine), [each for each in unlisted if each not in still_open]

    def fence(self, transactions: Iterable[Transaction]) -> None:
        """Abort transactions, so that no task goes on with their producers' pairs."""
        wanted = sorted(transactions)
        if not wanted:
            return
        timeout_ms = self._cluster.timeout_ms
        outcomes = end_transactions(self._cluster, wanted, commit=False, timeout_ms=timeout_ms)
        for each, error in outcomes.items():
            try:
                if error is not None:
                    raise error
                identity = ProducerIdentity(each.producer_id, each.epoch)
                init_producer_id(
                    self._cluster, each.transactional_id, _UNUSED_TIMEOUT_MS, expected=identity, timeout_ms=timeout_ms
                )
            except KafkaError as failure:
                if failure.code not in ENDED:
                    logger.warning("transaction %s stays open until the next batch: %s", each.transactional_id, failure)

    def _listed(self) -> set[str]:
        """Return the ids that a list of all open transactions has; some may lack (`_ongoing`)."""
        pattern = re.escape(self._prefix) + ".*"

        def ask() -> list[TransactionListing]:
            try:
                return list_transactions(self._cluster, states=["Ongoing"], pattern=pattern)
            except KafkaError as error:
                if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                    raise
            return list_transactions(self._cluster, states=["Ongoing"])

        names = (each.transactional_id for each in insist(self._cluster, ask, self._timeout_ms))
        return {name for name in names if name.startswith(self._prefix)}

    def _ongoing(self, transactional_ids: Iterable[str]) -> set[Transaction]:
        """Return the open transactions of these ids, as their coordinators know them.

        A list of all transactions may lack some: a coordinator that died is not among the brokers any more, and the one
        that follows it does not know yet that it must load. A coordinator that is asked about an id answers for it.
        """
        known = described(self._cluster, transactional_ids, self._timeout_ms)
        return {_transaction(each) for each in known if each.state == "Ongoing"}


def was_committed(cluster: Cluster, transaction: Transaction, timeout_ms: int) -> bool:
    """Return whether a transaction is committed, or is going to be, and its id was not used since."""
    known = described(cluster, [transaction.transactional_id], timeout_ms)
    return any(each.state in _COMMITTED and _transaction(each) == transaction for each in known)


def described(cluster: Cluster, transactional_ids: Iterable[str], timeout_ms: int) -> list[TransactionDescription]:
    """Return the ids as their coordinators know them; an id that its coordinator does not know is left out.

    Raises:
        KafkaError: a coordinator did not answer in time.
    """
    names = sorted(transactional_ids)

    def describe() -> list[TransactionDescription]:
        found: list[TransactionDescription] = []
        for outcome in describe_transactions(cluster, names).values():
            if not isinstance(outcome, KafkaError):
                found.append(outcome)
            elif outcome.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise outcome
        return found

    return insist(cluster, describe, timeout_ms)


def _transaction(found: TransactionDescription) -> Transaction:
    return Transaction(found.transactional_id, found.producer_id, found.producer_epoch)
