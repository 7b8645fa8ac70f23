"""The state of one transactional id, and its steps.

A step returns the metadata for its record; the state moves only when the record is replayed. Each step asserts that Kafka's state
machine allows it.

Two things bump the producer epoch:

- InitProducerId, which fences the previous producer of the transactional id;
- with transaction version 2 every end of a transaction. Markers have the new epoch, so that a late batch cannot become part of the
  next transaction (KIP-890). The response to EndTxn has the epoch.

No client gets an epoch above the last but one, so that the coordinator can always fence once more. After that epoch a new producer id
begins at epoch 0. In a transaction of version 2 the new id waits in `next_producer_id` until the end is complete, because the markers
belong to the old one.

A producer that resumes a prepared transaction (InitProducerId with keepPreparedTxn) gets a new epoch too, but the transaction keeps the
pair of its batches. The new pair waits in `next_producer_id` and `next_producer_epoch`, and only that pair may end the transaction.
Markers and completed transaction then have an epoch above both.

    Ongoing 42/100  ─InitProducerId(keep)─►  Ongoing 42/100 next 42/101  ─EndTxn by 42/101─►  Prepare 42/102  ─►  Complete 42/102

Source: Kafka class `TransactionMetadata`; KIP-98, KIP-360 (bumping after an error), KIP-890, KIP-939.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.log.producer_state import EPOCH_BUMP_SINCE, MAX_EPOCH
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from barnabas.transaction.transaction_state import VALID_PREVIOUS, TransactionState

TopicPartition = tuple[str, int]

NEVER_TIMES_OUT_MS = 0x7FFFFFFF
"""The timeout that marks a distributed two-phase commit (KIP-939)."""


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Return whether this is the last epoch of a producer id that a client may get."""
    return producer_epoch >= MAX_EPOCH - 1


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """One transactional id.

    Attributes:
        previous_producer_id: the producer id before the last step; identifies a retry with an exhausted epoch.
        next_producer_id: replaces `producer_id` when the transaction is complete, -1 for none.
        next_producer_epoch: with `next_producer_id`, the pair of a client that keeps a prepared transaction (KIP-939), -1 for none.
        last_producer_epoch: the epoch before the last bump, for a client that repeats InitProducerId; -1 after a restart, since the log
            does not have it, as in Kafka.
        start_ms: when the first partition was added, -1 before.
        client_transaction_version: the last one that the client used: 0 or 2.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    client_transaction_version: int = 0
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH

    def __repr__(self) -> str:
        return (
            f"<TransactionMetadata id={self.transactional_id} state={self.state.title}"
            f" producer={self.producer_id}/{self.producer_epoch} partitions={len(self.partitions)}>"
        )

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def client_producer_id(self) -> int:
        """The current client's producer id; the transaction's own differs if the client kept it."""
        return self.producer_id if self.next_producer_epoch == NO_PRODUCER_EPOCH else self.next_producer_id

    @property
    def client_producer_epoch(self) -> int:
        """The current client's epoch."""
        return self.producer_epoch if self.next_producer_epoch == NO_PRODUCER_EPOCH else self.next_producer_epoch

    @property
    def is_two_phase(self) -> bool:
        """Whether its transactions have no timeout, because an external transaction manager decides."""
        return self.timeout_ms == NEVER_TIMES_OUT_MS

    def is_same_transaction(self, other: TransactionMetadata) -> bool:
        """Return whether both are steps of one transaction: the same producer, epoch and start."""
        return (self.producer_id, self.producer_epoch, self.start_ms) == (
            other.producer_id,
            other.producer_epoch,
            other.start_ms,
        )

    def has_timed_out(self, now_ms: int) -> bool:
        """Return whether the transaction is open for longer than its timeout."""
        return (
            self.state is TransactionState.ONGOING
            and not self.is_two_phase
            and self.start_ms + self.timeout_ms < now_ms
        )

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return whether no transaction is open, and the last update is older than the expiration time."""
        return self.state.is_expirable and self.last_update_ms <= now_ms - expiration_ms

    def bumped_for_init(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionMetadata:
        """Apply InitProducerId: the next epoch, or the current one for a repeated request.

        Args:
            expected_epoch: the client's epoch, None if the request has none.

        Raises:
            KafkaError: PRODUCER_FENCED if another producer was initialized since.
        """
        if expected_epoch is None:
            epoch, last = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
            epoch, last = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            epoch, last = self.producer_epoch, self.last_producer_epoch
        else:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        assert epoch < MAX_EPOCH, f"{self!r} has no epoch left"
        return self._initialized(self.producer_id, epoch, last, timeout_ms, now_ms)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, may_retry: bool
    ) -> TransactionMetadata:
        """Apply InitProducerId after the last epoch.

        Args:
            may_retry: the request has the client's epoch, and the client may repeat it.
        """
        last = self.producer_epoch if may_retry else NO_PRODUCER_EPOCH
        return self._initialized(producer_id, 0, last, timeout_ms, now_ms)

    def _initialized(
        self, producer_id: int, epoch: int, last: int, timeout_ms: int, now_ms: int
    ) -> TransactionMetadata:
        return self._to(
            TransactionState.EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def kept(self, new_producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """Apply InitProducerId that keeps the open transaction (KIP-939): only the client gets a new pair.

        Args:
            new_producer_id: for a client at its last epoch; -1 otherwise.
        """
        producer_id, epoch = self.client_producer_id, self.client_producer_epoch + 1
        if is_epoch_exhausted(self.client_producer_epoch):
            producer_id, epoch = new_producer_id, 0
        assert producer_id != NO_PRODUCER_ID, f"{self!r} needs a new producer id"
        return self._to(
            TransactionState.ONGOING,
            next_producer_id=producer_id,
            next_producer_epoch=epoch,
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], now_ms: int, client_transaction_version: int
    ) -> TransactionMetadata:
        """Apply AddPartitionsToTxn: begin or extend the transaction."""
        return self._to(
            TransactionState.ONGOING,
            partitions=self.partitions | partitions,
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_transaction_version=client_transaction_version,
        )

    def prepared(
        self, *, commit: bool, client_transaction_version: int, next_producer_id: int, now_ms: int
    ) -> TransactionMetadata:
        """Apply EndTxn: decide the outcome.

        Args:
            next_producer_id: for a client at its last epoch; -1 otherwise.
        """
        epoch, last, next_epoch = self.producer_epoch, self.last_producer_epoch, self.next_producer_epoch
        if client_transaction_version >= EPOCH_BUMP_SINCE:
            last = self.client_producer_epoch
            if next_epoch != NO_PRODUCER_EPOCH and self.next_producer_id == self.producer_id:
                # The client's epoch is above the kept transaction's; the markers' epoch must be above both.
                epoch, next_epoch = next_epoch + 1, NO_PRODUCER_EPOCH
            else:
                # At the very last epoch an abort succeeds without a bump, so that a broken state can end.
                epoch = min(self.producer_epoch + 1, MAX_EPOCH)
                if is_epoch_exhausted(next_epoch):
                    next_epoch = NO_PRODUCER_EPOCH
                elif next_epoch != NO_PRODUCER_EPOCH:
                    next_producer_id, next_epoch = self.next_producer_id, next_epoch + 1
        return self._to(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            producer_epoch=epoch,
            last_producer_epoch=last,
            next_producer_id=next_producer_id,
            next_producer_epoch=next_epoch,
            # A transaction without partitions never began, but a Prepare record needs a start.
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_transaction_version=client_transaction_version,
        )

    def fenced_abort(self, now_ms: int) -> TransactionMetadata:
        """Abort for the coordinator before version 2: no client gets the bumped epoch."""
        fenced = replace(
            self, producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH), last_producer_epoch=NO_PRODUCER_EPOCH
        )
        return fenced.prepared(
            commit=False, client_transaction_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Complete the transaction: every marker is written."""
        commit = self.state is TransactionState.PREPARE_COMMIT
        rotates = self.client_transaction_version >= EPOCH_BUMP_SINCE and self.next_producer_id != NO_PRODUCER_ID
        return self._to(
            TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=max(0, self.next_producer_epoch) if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_PRODUCER_EPOCH,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )

    def _to(self, state: TransactionState, **changes: object) -> TransactionMetadata:
        assert self.state in VALID_PREVIOUS[state], f"{self!r} cannot become {state.title}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)  # type: ignore[arg-type]
