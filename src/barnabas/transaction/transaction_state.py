"""The states of a transactional id.

    Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──► Ongoing …
      │          └──────► PrepareAbort ───► CompleteAbort ───► Ongoing …
      └─(version 2)──────────┘  ▲
                                └─ also from the Complete states (version 2: a client that is not sure aborts)

The Prepare record decides the outcome; between Prepare and Complete the coordinator writes markers into the transaction's partitions.
Dead and PrepareEpochFence exist only in Kafka's memory: here an expired transactional id gets a tombstone, and fencing an open
transaction is one step to PrepareAbort.

Source: Kafka class `TransactionState`; KIP-98, KIP-890.
"""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """A state: its number in the log, and its name in DescribeTransactions and ListTransactions."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.title = title

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_expirable(self) -> bool:
        """Whether no transaction is open, so that an unused transactional id may expire."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


BY_NUMBER = {state.number: state for state in TransactionState}
BY_TITLE = {state.title: state for state in TransactionState}

VALID_PREVIOUS = {
    TransactionState.EMPTY: {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    },
    TransactionState.ONGOING: {
        TransactionState.ONGOING,
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    },
    TransactionState.PREPARE_COMMIT: {TransactionState.ONGOING},
    TransactionState.PREPARE_ABORT: {
        TransactionState.ONGOING,
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    },
    TransactionState.COMPLETE_COMMIT: {TransactionState.PREPARE_COMMIT},
    TransactionState.COMPLETE_ABORT: {TransactionState.PREPARE_ABORT},
}
"""State → the states before it; Dead and PrepareEpochFence are never written."""
