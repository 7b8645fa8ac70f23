"""What the coordinator knows of one transactional id, and the steps it can take (control plane, pure).

A step gives the metadata that its record will hold; nothing moves until the record is replayed. Each asserts that Kafka's
state machine has that step.

The producer epoch is bumped
- by InitProducerId, which fences whoever used the transactional id before;
- with transaction version 2 by every end of a transaction: markers carry the new epoch, so that nothing late can be taken for
  a part of the next transaction (KIP-890). The client learns the epoch from the answer to EndTxn.

The last epoch but one is never given to a client: with it the coordinator can always fence once more. When it is reached a new
producer id begins at epoch 0; within a transaction of version 2 that id waits in `next_producer_id` until the end is complete, since the
markers belong to the old one.

A producer that comes back to a transaction it had prepared (InitProducerId with keepPreparedTxn) is given an epoch too, but the
transaction keeps the pair it was written with: the new pair waits in `next_producer_id` and `next_producer_epoch`, and only it may end the
transaction. Marker and completed transaction then carry an epoch above both.

    Ongoing 42/100  ─InitProducerId(keep)─►  Ongoing 42/100 next 42/101  ─EndTxn by 42/101─►  Prepare 42/102  ─►  Complete 42/102

Source: Kafka class `TransactionMetadata`; KIP-98, KIP-360 (bumping after an error), KIP-890, KIP-939.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.transaction.transaction_state import VALID_PREVIOUS, TransactionState

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 0x7FFF
NEVER_TIMES_OUT_MS = 0x7FFFFFFF
"""The timeout that marks a distributed two-phase commit (KIP-939)."""
EPOCH_BUMP_SINCE = 2
"""The transaction version from which a transaction's end bumps the epoch."""


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no client may be given a higher epoch of this producer id."""
    return producer_epoch >= MAX_EPOCH - 1


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """One transactional id.

    Attributes:
        previous_producer_id: the producer id before the last step; tells a retry across an exhausted epoch.
        next_producer_id: the id that takes over when the present transaction is complete, -1 for none.
        next_producer_epoch: with `next_producer_id`, the epoch given to a client that keeps a prepared transaction (KIP-939).
        last_producer_epoch: the epoch before the last bump, for a client that repeats InitProducerId; not in the log, so that a
            restart forgets it (-1), as in Kafka.
        start_ms: when the first partition was added, -1 before.
        client_transaction_version: the transaction version that the client used last: 0, or 2.
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
            f"TransactionMetadata({self.transactional_id} {self.state.title} {self.producer_id}/{self.producer_epoch}"
            f" partitions={len(self.partitions)})"
        )

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def client_producer_id(self) -> int:
        """The producer id that the newest client has: not the transaction's while that is kept for it."""
        return self.producer_id if self.next_producer_epoch == NO_PRODUCER_EPOCH else self.next_producer_id

    @property
    def client_producer_epoch(self) -> int:
        """The epoch that the newest client has."""
        return self.producer_epoch if self.next_producer_epoch == NO_PRODUCER_EPOCH else self.next_producer_epoch

    @property
    def is_two_phase(self) -> bool:
        """Its transactions have no timeout: an outside transaction manager decides."""
        return self.timeout_ms == NEVER_TIMES_OUT_MS

    def is_same_transaction(self, other: TransactionMetadata) -> bool:
        """Whether both are steps of one transaction, as far as a producer's epoch tells them apart."""
        return (self.producer_id, self.producer_epoch, self.start_ms) == (
            other.producer_id,
            other.producer_epoch,
            other.start_ms,
        )

    def has_timed_out(self, now_ms: int) -> bool:
        """An open transaction has been open for longer than its producer promised."""
        return (
            self.state is TransactionState.ONGOING
            and not self.is_two_phase
            and self.start_ms + self.timeout_ms < now_ms
        )

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Nothing is open, and nobody has used the transactional id for so long."""
        return self.state.is_expirable and self.last_update_ms <= now_ms - expiration_ms

    # -- steps -------------------------------------------------------------------------------------------------------

    def bumped_for_init(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionMetadata:
        """InitProducerId: the next epoch, or the present one for a repeated request.

        Args:
            expected_epoch: what the client believes to have, None when it does not say.

        Raises:
            KafkaError: PRODUCER_FENCED, another producer has been initialized since.
        """
        if expected_epoch is None:
            epoch, last = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
            epoch, last = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            epoch, last = self.producer_epoch, self.last_producer_epoch
        else:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        assert epoch < MAX_EPOCH, f"{self!r} has no epoch left to give"
        return self._initialized(self.producer_id, epoch, last, timeout_ms, now_ms)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, may_retry: bool
    ) -> TransactionMetadata:
        """InitProducerId when the epochs are exhausted.

        Args:
            may_retry: the client named its epoch, and may repeat the request with it.
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
        """InitProducerId that keeps the open transaction (KIP-939): a new pair for the client, the transaction's own stays.

        Args:
            new_producer_id: for a client whose epochs are exhausted; -1 otherwise.
        """
        producer_id, epoch = self.client_producer_id, self.client_producer_epoch + 1
        if is_epoch_exhausted(self.client_producer_epoch):
            producer_id, epoch = new_producer_id, 0
        assert producer_id != NO_PRODUCER_ID, f"{self!r} has no producer id to give"
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
        """AddPartitionsToTxn: the transaction begins, or grows."""
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
        """EndTxn: the outcome is decided.

        Args:
            next_producer_id: takes over when the end is complete; -1 unless the client's epoch is exhausted.
        """
        epoch, last, next_epoch = self.producer_epoch, self.last_producer_epoch, self.next_producer_epoch
        if client_transaction_version >= EPOCH_BUMP_SINCE:
            last = self.client_producer_epoch
            if next_epoch != NO_PRODUCER_EPOCH and self.next_producer_id == self.producer_id:
                # The client of a kept transaction is ahead of it; the markers must be ahead of both.
                epoch, next_epoch = next_epoch + 1, NO_PRODUCER_EPOCH
            else:
                # At the very last epoch an abort goes through without a bump, so that a broken state can be left.
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
            # Without a partition there was no beginning, but an end has to have one.
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_transaction_version=client_transaction_version,
        )

    def fenced_abort(self, now_ms: int) -> TransactionMetadata:
        """An abort in the name of the coordinator, before version 2: the bumped epoch is never given to a client."""
        fenced = replace(
            self, producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH), last_producer_epoch=NO_PRODUCER_EPOCH
        )
        return fenced.prepared(
            commit=False, client_transaction_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Every marker is written."""
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
