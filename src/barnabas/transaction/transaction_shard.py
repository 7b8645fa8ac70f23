"""TransactionCoordinatorShard: the transactional ids of one partition of `__transaction_state`.

An operation checks a request against the state and returns the record of the next step; the state moves in `replay`, also when the
partition is loaded after a restart. The checks have Kafka's order, because clients react to the first error.

EndTxn with version 2 (PF = PRODUCER_FENCED, ITS = INVALID_TXN_STATE, bump = done, with a new epoch):

                      Abort             Commit
                      retry   current   retry   current        retry: the epoch before the last end's bump
    Empty             PF      bump      PF      ITS
    CompleteAbort     done    bump      PF      ITS
    CompleteCommit    ITS     bump      done    ITS

A commit that meets CompleteAbort at the retry epoch comes after an abort by the coordinator itself, at the transaction's timeout or for a
new producer: no client that aborted commits again at the old epoch. Apache Kafka returns PRODUCER_FENCED since KAFKA-20785; 4.3 returns
ITS, from which no client recovers.

Before version 2 a repeated end succeeds without change, and in Empty every end is ITS. In the Prepare states, while the markers are
being written, requests are CONCURRENT_TRANSACTIONS, which clients retry. That check is the first one, because the client may already
have a producer id that the state gets only at the end.

The controller allocates producer ids, so a step that needs a new one cannot have it at once. The operation then returns None and no
record, and the coordinator runs it again with a new producer id (`fresh_producer_id`; -1 on the first run).

Source: Kafka classes `TransactionCoordinator`, `TransactionStateManager`; KIP-98, KIP-360, KIP-890, KIP-939.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.log.producer_state import EPOCH_BUMP_SINCE, MAX_EPOCH
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.transaction.config import TransactionCoordinatorConfig
from barnabas.transaction.records import metadata_of, transaction_record, transaction_tombstone
from barnabas.transaction.transaction_metadata import (
    TopicPartition,
    TransactionMetadata,
    is_epoch_exhausted,
)
from barnabas.transaction.transaction_state import TransactionState

ABORT_TIMER = "abort-timed-out-transactions"
EXPIRY_TIMER = "expire-transactional-ids"


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """An InitProducerId request.

    Attributes:
        expected: the client's producer id and epoch, None if the request has none.
        keep_prepared: do not abort the open transaction (KIP-939).
    """

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None
    keep_prepared: bool = False


@dataclass(frozen=True, slots=True)
class EndTxn:
    """A client's request to end a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    client_transaction_version: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a request that ends a transaction.

    Attributes:
        prepared: the transaction whose markers must be written, None for no markers.
    """

    producer_id: int
    producer_epoch: int
    prepared: TransactionMetadata | None = None


@dataclass(frozen=True, slots=True)
class Initialized:
    """The outcome of InitProducerId: the pair for the client, or an open transaction that must be aborted first.

    Attributes:
        ongoing: the pair of the kept transaction, -1 for none.
        prepared: the transaction whose abort is decided, None if the client gets its pair.
    """

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    ongoing: tuple[int, int] = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    prepared: TransactionMetadata | None = None


class TransactionCoordinatorShard:
    """One partition's transactional ids.

    Args:
        transaction_version: returns the finalized level of the feature.
        on_prepared: called after loading for each decided transaction, whose markers may be missing.
        on_timed_out: called for each open transaction whose timeout is over.
        on_dropped: called with the partition when the next coordinator is to finish its decided transactions.
    """

    def __init__(
        self,
        partition: int,
        timer: CoordinatorTimer,
        *,
        config: TransactionCoordinatorConfig,
        now_ms: Callable[[], int],
        transaction_version: Callable[[], int],
        on_prepared: Callable[[int, TransactionMetadata], None],
        on_timed_out: Callable[[TransactionMetadata], None],
        on_dropped: Callable[[int], None],
    ) -> None:
        self._partition = partition
        self._timer = timer
        self._config = config
        self._now_ms = now_ms
        self._transaction_version = transaction_version
        self._on_prepared = on_prepared
        self._on_timed_out = on_timed_out
        self._on_dropped = on_dropped
        self.transactions: dict[str, TransactionMetadata] = {}
        # Not in a step's record, kept from `_record` to `replay`: producer id and epoch after the step, and the epoch before.
        self._last_epochs: dict[str, tuple[int, int, int]] = {}

    def __repr__(self) -> str:
        return f"<TransactionCoordinatorShard partition={self._partition} transactional_ids={len(self.transactions)}>"

    # InitProducerId

    def init_producer_id(
        self, request: InitProducerId, fresh_producer_id: int
    ) -> CoordinatorResult[Initialized | None]:
        """Give a producer its id and epoch, and fence the previous producer of the transactional id.

        Raises:
            KafkaError: PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        now_ms = self._now_ms()
        found = self.transactions.get(request.transactional_id)
        if found is None:
            if fresh_producer_id == NO_PRODUCER_ID:
                return CoordinatorResult(None)
            created = TransactionMetadata(request.transactional_id, fresh_producer_id)
            return self._initialized(created.bumped_for_init(request.timeout_ms, _epoch_of(request), now_ms))
        if found.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if request.expected is not None and not _may_init(found, *request.expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if found.state is TransactionState.ONGOING:
            if request.keep_prepared:
                return self._keep(request, found, fresh_producer_id)
            return self._abort_before_init(found, fresh_producer_id)
        if found.is_epoch_exhausted:
            if request.expected is not None and request.expected[1] != found.producer_epoch:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
            if fresh_producer_id == NO_PRODUCER_ID:
                return CoordinatorResult(None)
            may_retry = request.expected is not None
            return self._initialized(
                found.with_new_producer_id(fresh_producer_id, request.timeout_ms, now_ms, may_retry=may_retry)
            )
        return self._initialized(found.bumped_for_init(request.timeout_ms, _epoch_of(request), now_ms))

    def _initialized(self, after: TransactionMetadata) -> CoordinatorResult[Initialized | None]:
        return CoordinatorResult(Initialized(after.producer_id, after.producer_epoch), [self._record(after)])

    def _keep(
        self, request: InitProducerId, found: TransactionMetadata, fresh_producer_id: int
    ) -> CoordinatorResult[Initialized | None]:
        if self._transaction_version() < EPOCH_BUMP_SINCE:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if is_epoch_exhausted(found.client_producer_epoch) and fresh_producer_id == NO_PRODUCER_ID:
            return CoordinatorResult(None)
        kept = found.kept(fresh_producer_id, request.timeout_ms, self._now_ms())
        answer = Initialized(
            kept.client_producer_id, kept.client_producer_epoch, (kept.producer_id, kept.producer_epoch)
        )
        return CoordinatorResult(answer, [self._record(kept)])

    def _abort_before_init(
        self, found: TransactionMetadata, fresh_producer_id: int
    ) -> CoordinatorResult[Initialized | None]:
        """Abort for the coordinator; the client retries, which bumps the epoch once more."""
        aborted = self._fencing_abort(found, fresh_producer_id)
        if aborted is None:
            return CoordinatorResult(None)
        return CoordinatorResult(Initialized(prepared=aborted), [self._record(aborted)])

    def _fencing_abort(self, found: TransactionMetadata, fresh_producer_id: int) -> TransactionMetadata | None:
        """Return PrepareAbort with an epoch that no client has, None if it needs a new producer id."""
        version = self._transaction_version()
        if version < EPOCH_BUMP_SINCE and found.next_producer_epoch == NO_PRODUCER_EPOCH:
            return found.fenced_abort(self._now_ms())
        return self._prepared(found, commit=False, version=EPOCH_BUMP_SINCE, fresh_producer_id=fresh_producer_id)

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int,
    ) -> CoordinatorResult[None]:
        """Add partitions to a transaction; the first ones begin it.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        found = self.transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if found.producer_id != producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.producer_epoch != producer_epoch or found.next_producer_epoch != NO_PRODUCER_EPOCH:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if found.state is TransactionState.ONGOING and partitions <= found.partitions:
            return CoordinatorResult(None)
        after = found.with_partitions(partitions, self._now_ms(), client_transaction_version)
        return CoordinatorResult(None, [self._record(after)])

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition NONE if the open transaction includes it, else TRANSACTION_ABORTABLE.

        Raises:
            KafkaError: as `add_partitions`.
        """
        found = self.transactions.get(transactional_id)
        if found is None or found.producer_id != producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.producer_epoch != producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if found.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return {
            partition: ErrorCode.NONE if partition in found.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    # The end

    def end(self, request: EndTxn, fresh_producer_id: int) -> CoordinatorResult[Ended | None]:
        """Commit or abort a client's transaction.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
        """
        if request.client_transaction_version >= EPOCH_BUMP_SINCE:
            return self._end_with_bump(request, fresh_producer_id)
        return self._end_without_bump(request)

    def _end_without_bump(self, request: EndTxn) -> CoordinatorResult[Ended | None]:
        found = self.transactions.get(request.transactional_id)
        if found is None or found.client_producer_id != request.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.client_producer_epoch != request.producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if found.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if found.state is not TransactionState.ONGOING:
            _check_repeated_end(found.state, request.commit)
            return CoordinatorResult(Ended(NO_PRODUCER_ID, NO_PRODUCER_EPOCH))
        # A kept transaction has a higher epoch waiting, and the markers must have it.
        version = 0 if found.next_producer_epoch == NO_PRODUCER_EPOCH else EPOCH_BUMP_SINCE
        after = found.prepared(
            commit=request.commit,
            client_transaction_version=version,
            next_producer_id=NO_PRODUCER_ID,
            now_ms=self._now_ms(),
        )
        return CoordinatorResult(Ended(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, after), [self._record(after)])

    def _end_with_bump(self, request: EndTxn, fresh_producer_id: int) -> CoordinatorResult[Ended | None]:
        found = self.transactions.get(request.transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        epoch = request.producer_epoch
        is_retry_across_ids = (
            found.previous_producer_id == request.producer_id
            and found.producer_id != request.producer_id
            and epoch == MAX_EPOCH - 1
            and found.producer_epoch == 0
        )
        is_retry = is_retry_across_ids or found.producer_epoch == epoch + 1
        is_current = found.client_producer_epoch == epoch
        state = found.state
        if state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if found.client_producer_id != request.producer_id and not is_retry_across_ids:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        is_complete = state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        if not is_current and not (is_complete and is_retry):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if state is TransactionState.ONGOING:
            return self._prepare(found, request.commit, fresh_producer_id)
        if is_retry:
            if request.commit and state is TransactionState.COMPLETE_ABORT:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
            _check_repeated_end(state, request.commit)
            return CoordinatorResult(Ended(found.producer_id, found.producer_epoch))
        if request.commit:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        # A client that does not know whether a partition was added aborts.
        return self._prepare(found, False, fresh_producer_id)

    def _prepare(
        self, found: TransactionMetadata, commit: bool, fresh_producer_id: int
    ) -> CoordinatorResult[Ended | None]:
        after = self._prepared(found, commit=commit, version=EPOCH_BUMP_SINCE, fresh_producer_id=fresh_producer_id)
        if after is None:
            return CoordinatorResult(None)
        complete = after.completed(after.last_update_ms)
        return CoordinatorResult(Ended(complete.producer_id, complete.producer_epoch, after), [self._record(after)])

    def _prepared(
        self, found: TransactionMetadata, *, commit: bool, version: int, fresh_producer_id: int
    ) -> TransactionMetadata | None:
        next_producer_id = NO_PRODUCER_ID
        if is_epoch_exhausted(found.client_producer_epoch):
            if fresh_producer_id == NO_PRODUCER_ID:
                return None
            next_producer_id = fresh_producer_id
        return found.prepared(
            commit=commit,
            client_transaction_version=version,
            next_producer_id=next_producer_id,
            now_ms=self._now_ms(),
        )

    def abort_timed_out(
        self, timed_out: TransactionMetadata, fresh_producer_id: int
    ) -> CoordinatorResult[Ended | None]:
        """Abort a transaction whose timeout is over, unless it has changed in the meantime."""
        found = self.transactions.get(timed_out.transactional_id)
        if found is None or found.state is not TransactionState.ONGOING or not found.is_same_transaction(timed_out):
            return CoordinatorResult(Ended(NO_PRODUCER_ID, NO_PRODUCER_EPOCH))
        aborted = self._fencing_abort(found, fresh_producer_id)
        if aborted is None:
            return CoordinatorResult(None)
        return CoordinatorResult(Ended(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, aborted), [self._record(aborted)])

    def complete(
        self, prepared: TransactionMetadata, fresh_producer_id: int = NO_PRODUCER_ID
    ) -> CoordinatorResult[None]:
        """Complete a decided transaction: every marker is written.

        Args:
            fresh_producer_id: replaces the transaction's, whose epochs this coordinator does not know any more; -1 to keep it.
        """
        found = self.transactions.get(prepared.transactional_id)
        # No comparison of all fields: a record, above all one of version 0, does not have all of them.
        if found is None or not found.state.is_prepared or not found.is_same_transaction(prepared):
            return CoordinatorResult(None)
        after = found.completed(self._now_ms())
        if fresh_producer_id != NO_PRODUCER_ID and after.producer_id == found.producer_id:
            after = replace(
                after, producer_id=fresh_producer_id, producer_epoch=0, last_producer_epoch=NO_PRODUCER_EPOCH
            )
        return CoordinatorResult(None, [self._record(after)])

    # The log

    def _record(self, after: TransactionMetadata) -> CoordinatorRecord:
        self._last_epochs[after.transactional_id] = (
            after.producer_id,
            after.producer_epoch,
            after.last_producer_epoch,
        )
        return transaction_record(after, self._transaction_version())

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply one record to the state."""
        transactional_id = record.key.transactional_id
        remembered = self._last_epochs.pop(transactional_id, None)
        if record.value is None:
            self.transactions.pop(transactional_id, None)
            return
        last_epoch = NO_PRODUCER_EPOCH
        if remembered is not None and remembered[:2] == (record.value.producer_id, record.value.producer_epoch):
            last_epoch = remembered[2]
        self.transactions[transactional_id] = metadata_of(transactional_id, record.value, last_epoch)

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        """Do nothing: no record here belongs to a transaction."""

    def on_loaded(self) -> None:
        """Finish the transactions that were decided before the restart, and start the timers."""
        for metadata in list(self.transactions.values()):
            if metadata.state.is_prepared:
                self._on_prepared(self._partition, metadata)
        self._schedule_timeouts()
        self._schedule_expiry()

    def on_unloaded(self) -> None:
        """Give up the markers that are being written; no request waits in the state."""
        self._on_dropped(self._partition)

    # Timers

    def _schedule_timeouts(self) -> None:
        self._timer.schedule(ABORT_TIMER, self._config.abort_timed_out_interval_ms, self._find_timed_out)

    def _find_timed_out(self) -> CoordinatorResult[Any]:
        self._schedule_timeouts()
        now_ms = self._now_ms()
        for metadata in [found for found in self.transactions.values() if found.has_timed_out(now_ms)]:
            self._on_timed_out(metadata)
        return CoordinatorResult(None)

    def _schedule_expiry(self) -> None:
        self._timer.schedule(EXPIRY_TIMER, self._config.remove_expired_interval_ms, self._expire)

    def _expire(self) -> CoordinatorResult[Any]:
        """Return tombstones for expired transactional ids, in as many batches as they need."""
        self._schedule_expiry()
        now_ms, expiration_ms = self._now_ms(), self._config.transactional_id_expiration_ms
        expired = [found for found in self.transactions.values() if found.has_expired(now_ms, expiration_ms)]
        return CoordinatorResult(
            None, [transaction_tombstone(found.transactional_id) for found in expired], atomic=False
        )


def _epoch_of(request: InitProducerId) -> int | None:
    return None if request.expected is None else request.expected[1]


def _may_init(found: TransactionMetadata, producer_id: int, producer_epoch: int) -> bool:
    """Return whether a client with this producer id and epoch may get the next epoch.

    It has the current id, or the previous one at its last epoch: then the response with the new id was lost.
    """
    return producer_id == found.client_producer_id or (
        producer_id == found.previous_producer_id and is_epoch_exhausted(producer_epoch)
    )


def _check_repeated_end(state: TransactionState, commit: bool) -> None:
    """Check a request to end a transaction that has ended.

    Raises:
        KafkaError: INVALID_TXN_STATE if the transaction had the other outcome, or never began.
    """
    if state is not (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT):
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
