"""Transactions as compaction meets them on its way through a log.

    first offset …                                      … marker
    | data of 7 | data of 8 | data of 7 | ABORT 7 | data of 8 | COMMIT 8 |
      discard                 discard     stays if a batch of its transaction was seen, else is removed after its delete horizon

- Data of an aborted transaction is discarded: no consumer may read it. The `.txnindex` files name these transactions.
- A marker may be removed once no batch of its transaction is left in front of it. An ABORT marker that stays gets an entry in the
  cleaned segment's index. A removed one does not, because its transaction has no data left to hide.

Source: Kafka's `CleanedTransactionMetadata`; KIP-98, KIP-534.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record_batch import BatchHeader


class _Aborted:
    """An aborted transaction whose marker has not been read yet."""

    __slots__ = ("saw_batch", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.saw_batch = False


class CleanedTransactions:
    """The transactions that are open at the offset that the cleaner has reached."""

    __slots__ = ("_coming", "_committed", "_open", "to_index")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """
        Args:
            aborted: the aborted transactions that overlap the offsets to be read.
        """
        self._coming = [(transaction.first_offset, transaction) for transaction in aborted]
        heapq.heapify(self._coming)
        self._open: dict[int, _Aborted] = {}
        # Producers with a committed or undecided transaction of which a batch was seen.
        self._committed: set[int] = set()
        # Aborted transactions whose marker stays, for the index of the segment that is being written.
        self.to_index: list[AbortedTransaction] = []

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            transaction = heapq.heappop(self._coming)[1]
            self._open.setdefault(transaction.producer_id, _Aborted(transaction))

    def read_batch(self, header: BatchHeader) -> bool:
        """Note a batch of data; return whether it belongs to an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._open.get(header.producer_id)
        if aborted is not None:
            aborted.saw_batch = True
            return True
        self._committed.add(header.producer_id)
        return False

    def read_control_batch(self, header: BatchHeader, key: bytes | None) -> bool:
        """Note a control batch; return whether it is no longer needed.

        Args:
            key: of its record; None if an earlier cleaning has removed the record.
        """
        self._reach(header.last_offset)
        if key is None:
            return True
        kind = control_type(key)
        if kind is ControlRecordType.ABORT:
            aborted = self._open.pop(header.producer_id, None)
            if aborted is not None and aborted.saw_batch:
                self.to_index.append(aborted.transaction)
                return False
            return True
        if kind is ControlRecordType.COMMIT:
            if header.producer_id in self._committed:
                self._committed.remove(header.producer_id)
                return False
            return True
        return False
