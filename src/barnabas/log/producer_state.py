"""The state of each idempotent producer of a log: its epoch, its last five batches, its open transaction.

A producer numbers its records per partition. The log accepts the next number, returns the first offsets again for one of the last
five batches, and rejects a gap. The state is a function of the log; with snapshot files (`producer_snapshot`) recovery need not
read the whole log.

Rules (Kafka's `ProducerAppendInfo`):

- No state for the producer id: any sequence is accepted. Its state may have expired, or been removed with old segments.
- An older epoch: INVALID_PRODUCER_EPOCH. A newer epoch must begin with sequence 0.
- The same epoch: the sequence follows the last one; 0 follows 2^31 - 1. Otherwise OUT_OF_ORDER_SEQUENCE_NUMBER.
- A marker (control batch) ends the transaction; if it raises the epoch, the next batch begins with sequence 0.
- While a producer's transaction is open its other batches are INVALID_TXN_STATE; a transactional batch needs an open transaction
  or a verification's guard (`transaction_verification`).
- A marker of transaction version 2 carries an epoch above that of the transaction's batches. Another one is late and rejected
  (INVALID_PRODUCER_EPOCH), unless it repeats the marker that ended the transaction. In earlier versions an equal epoch is enough.
- A marker of an older coordinator epoch than the last marker's is rejected (TRANSACTION_COORDINATOR_FENCED).

Crash argument: a snapshot is replaced by rename. If its checksum or length is wrong it is removed and the one before it is used;
without any, recovery reads all batches. Recovery replays the batches after the snapshot's offset, so an old snapshot
costs time, never state. A snapshot beyond the log's end is removed.

Source: Kafka's `ProducerStateManager`, `ProducerStateEntry`, `ProducerAppendInfo`; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.log import log_files
from barnabas.log.disk import Disk
from barnabas.log.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
    in_words,
)
from barnabas.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from barnabas.log.producer_state_entry import NO_OFFSET, BatchMetadata, ProducerStateEntry
from barnabas.log.transaction_verification import Verification, VerificationGuard
from barnabas.records.record_batch import NO_PRODUCER_EPOCH, SEQUENCE_MASK

logger = logging.getLogger(__name__)

MAX_EPOCH = 0x7FFF
EPOCH_BUMP_SINCE = 2
"""The transaction version from which each transaction ends with a new epoch (KIP-890)."""


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerStateManager:
    """The producers of one log."""

    __slots__ = (
        "_directory",
        "_disk",
        "_snapshots",
        "expiration_ms",
        "map_end_offset",
        "ongoing",
        "producers",
        "unreplicated",
        "verifications",
    )

    def __init__(self, disk: Disk, directory: str, *, expiration_ms: int) -> None:
        self._disk = disk
        self._directory = directory
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerStateEntry] = {}
        # First offset -> producer id of each open transaction, ascending as dictionaries keep the order of insertion.
        self.ongoing: dict[int, int] = {}
        # First offset -> marker offset of transactions whose marker the high watermark has not passed.
        self.unreplicated: dict[int, int] = {}
        # Of producers whose transaction the coordinator must confirm before its first batch.
        self.verifications: dict[int, Verification] = {}
        self.map_end_offset = 0
        self._snapshots: list[int] = []

    def __repr__(self) -> str:
        return f"<ProducerStateManager producers={len(self.producers)} end={self.map_end_offset}>"

    # Checks and updates

    def check(
        self,
        producer_id: int,
        producer_epoch: int,
        first_sequence: int,
        last_sequence: int,
        offset: int,
        *,
        transactional: bool = False,
        guard: VerificationGuard | None = None,
        must_verify: bool = False,
    ) -> BatchMetadata | None:
        """Check a client's batch that is about to be appended at `offset`.

        Args:
            guard: from `begin_verification` for the batch.
            must_verify: a transactional batch needs an open transaction or the guard.

        Returns:
            The batch that this one repeats, None if it is new.

        Raises:
            InvalidProducerEpoch: a newer instance of the producer has written here.
            OutOfOrderSequence: batches are missing between the last one and this one.
            InvalidTxnState: the batch is in a transaction and should not be, or the reverse.
        """
        entry = self.producers.get(producer_id)
        if transactional:
            duplicate = None if entry is None else entry.find_duplicate(producer_epoch, first_sequence, last_sequence)
            if duplicate is not None:
                return duplicate
            if must_verify:
                self._check_verified(entry, producer_id, producer_epoch, guard)
        if self.verifications:
            self._check_lowest_sequence(entry, producer_id, first_sequence, offset)
        if entry is None:
            return None
        batches = entry.batches
        if producer_epoch == entry.producer_epoch:
            if not batches:
                # This epoch has only a marker, or nothing.
                if first_sequence != 0:
                    raise self.out_of_order(producer_id, first_sequence, entry.last_sequence, offset)
            elif first_sequence != ((batches[-1].last_sequence + 1) & SEQUENCE_MASK):
                duplicate = entry.find_duplicate(producer_epoch, first_sequence, last_sequence)
                if duplicate is None:
                    raise self.out_of_order(producer_id, first_sequence, entry.last_sequence, offset)
                return duplicate
        elif producer_epoch < entry.producer_epoch:
            raise _stale_epoch(producer_id, producer_epoch, entry.producer_epoch)
        elif first_sequence != 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequence(
                f"Invalid sequence number for new epoch of producer {producer_id} at offset {offset} in partition "
                f"{self._where}: {producer_epoch} (request epoch), {first_sequence} (seq. number), "
                f"{entry.producer_epoch} (current producer epoch)"
            )
        if entry.txn_first_offset != NO_OFFSET and not transactional:
            raise self._not_transactional(producer_id, offset)
        return None

    def check_unsequenced(
        self,
        producer_id: int,
        producer_epoch: int,
        offset: int,
        *,
        transactional: bool,
        guard: VerificationGuard | None,
        must_verify: bool,
    ) -> None:
        """Check a coordinator's batch, which has a producer and no sequence. Raises as `check`."""
        entry = self.producers.get(producer_id)
        if transactional and must_verify:
            self._check_verified(entry, producer_id, producer_epoch, guard)
        if entry is None:
            return
        if producer_epoch < entry.producer_epoch:
            raise _stale_epoch(producer_id, producer_epoch, entry.producer_epoch)
        if entry.txn_first_offset != NO_OFFSET and not transactional:
            raise self._not_transactional(producer_id, offset)

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, offset: int, transaction_version: int
    ) -> None:
        """Check a marker that is about to be appended.

        Args:
            coordinator_epoch: the leader epoch of the transaction coordinator's partition.
            transaction_version: from 2 on a marker's epoch is above its batches' epoch.

        Raises:
            InvalidProducerEpoch: the marker is late: a newer epoch, or another transaction of this one, has begun.
            TransactionCoordinatorFenced: a newer coordinator has written here.
        """
        entry = self.producers.get(producer_id)
        if entry is None:
            return
        current = entry.producer_epoch
        bumps = transaction_version >= EPOCH_BUMP_SINCE
        if producer_epoch < current or (bumps and producer_epoch == current):
            # The marker is written already, but the coordinator does not know: it has restarted, or the response was lost.
            is_repeated = bumps and producer_epoch == current and entry.txn_first_offset == NO_OFFSET
            # A transaction of the largest epoch, which cannot be raised, must be able to end.
            is_last = bumps and producer_epoch == current == MAX_EPOCH
            if not is_repeated and not is_last:
                raise InvalidProducerEpoch(
                    f"Epoch of producer {producer_id} at offset {offset} in {self._where} is {producer_epoch}, which is "
                    f"{'<=' if bumps else '<'} the last seen epoch {current} (TV{transaction_version})"
                )
        if entry.coordinator_epoch > coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"Invalid coordinator epoch for producerId {producer_id} at offset {offset} in partition {self._where}: "
                f"{coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)"
            )

    # Verification

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the log holds an open transaction of the producer in this epoch."""
        entry = self.producers.get(producer_id)
        return entry is not None and entry.txn_first_offset != NO_OFFSET and entry.producer_epoch == producer_epoch

    def begin_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, now_ms: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Begin, or join, the verification of a producer's first batch.

        Returns:
            The guard to append with once the coordinator has agreed; None if the open transaction is proof enough.

        Raises:
            InvalidProducerEpoch: a newer instance of the producer has written here.
        """
        entry = self.producers.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise _stale_epoch(producer_id, producer_epoch, entry.producer_epoch)
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return None
        found = self.verifications.get(producer_id)
        if found is None:
            found = self.verifications[producer_id] = Verification(
                now_ms, sequence, producer_epoch, supports_epoch_bump
            )
        else:
            found.note(sequence, producer_epoch)
        return found.guard

    def _check_verified(
        self, entry: ProducerStateEntry | None, producer_id: int, producer_epoch: int, guard: VerificationGuard | None
    ) -> None:
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise _stale_epoch(producer_id, producer_epoch, entry.producer_epoch)
        verification = self.verifications.get(producer_id)
        if guard is None or verification is None or verification.guard is not guard:
            raise InvalidTxnState("Record was not part of an ongoing transaction")

    def _check_lowest_sequence(
        self, entry: ProducerStateEntry | None, producer_id: int, first_sequence: int, offset: int
    ) -> None:
        verification = self.verifications.get(producer_id)
        if verification is None:
            return
        if verification.supports_epoch_bump and first_sequence != 0 and (entry is None or not entry.batches):
            raise OutOfOrderSequence(
                f"Invalid sequence number for producer {producer_id} at offset {offset} in partition {self._where}: "
                f"{first_sequence} (incoming seq. number). Expected sequence 0 for transactions v2 idempotent producer "
                "with no existing state."
            )
        if first_sequence > verification.lowest_sequence:
            raise OutOfOrderSequence(
                f"Out of order sequence number for producer {producer_id} at offset {offset} in partition "
                f"{self._where}: {first_sequence} (incoming seq. number), {verification.lowest_sequence} "
                "(earliest seen sequence)"
            )

    def _forget_verification(self, producer_id: int, marker_epoch: int | None) -> None:
        """Discard guards, after a transactional batch or a marker was appended.

        A marker of version 2 with the epoch that is being verified ends the transaction before: its guard stays.
        """
        verification = self.verifications.get(producer_id)
        if verification is not None:
            begins_next = verification.supports_epoch_bump and marker_epoch == verification.epoch
            if not begins_next:
                del self.verifications[producer_id]

    def _not_transactional(self, producer_id: int, offset: int) -> InvalidTxnState:
        return InvalidTxnState(
            f"Expected transactional write from producer {producer_id} at offset {offset} in partition {self._where}"
        )

    def out_of_order(
        self, producer_id: int, first_sequence: int, last_sequence: int, offset: int
    ) -> OutOfOrderSequence:
        """Return the error for a batch that does not follow `last_sequence`."""
        return OutOfOrderSequence(
            f"Out of order sequence number for producer {producer_id} at offset {offset} in partition {self._where}: "
            f"{first_sequence} (incoming seq. number), {last_sequence} (current end sequence number)"
        )

    @property
    def _where(self) -> str:
        return log_files.partition_name(self._directory)

    def update(
        self,
        producer_id: int,
        producer_epoch: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        *,
        transactional: bool = False,
    ) -> None:
        """Note a batch that has been appended."""
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerStateEntry(producer_id, producer_epoch)
        elif entry.producer_epoch != producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.batches.clear()
        entry.batches.append(BatchMetadata(last_sequence, last_offset, last_offset - first_offset, timestamp))
        entry.last_timestamp = timestamp
        if transactional:
            if entry.txn_first_offset == NO_OFFSET:
                entry.txn_first_offset = first_offset
                self.ongoing[first_offset] = producer_id
            if self.verifications:
                self._forget_verification(producer_id, None)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        aborted: bool,
    ) -> CompletedTransaction | None:
        """Note a marker at `offset`; return the transaction it ended, None if none was open.

        Raises:
            InvalidProducerEpoch: the marker is of an older epoch than the log has seen.
        """
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerStateEntry(producer_id, producer_epoch)
        elif producer_epoch < entry.producer_epoch:
            raise _stale_epoch(producer_id, producer_epoch, entry.producer_epoch)
        elif producer_epoch > entry.producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.batches.clear()
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        if self.verifications:
            self._forget_verification(producer_id, producer_epoch)
        first_offset, entry.txn_first_offset = entry.txn_first_offset, NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        self.ongoing.pop(first_offset, None)
        self.unreplicated[first_offset] = offset
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def first_unstable_offset(self) -> int | None:
        """Return the first offset that a read_committed reader must not see yet, None if all transactions are decided."""
        if not self.ongoing and not self.unreplicated:
            return None
        return min([*self.ongoing, *self.unreplicated])

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset without this transaction, for its entry in the index."""
        others = [first for first in self.ongoing if first != completed.first_offset]
        return min(others, default=completed.last_offset + 1)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Forget the ended transactions whose marker is below the high watermark."""
        if self.unreplicated:
            self.unreplicated = {
                first: marker for first, marker in self.unreplicated.items() if marker >= high_watermark
            }

    def expire(self, now_ms: int) -> int:
        """Forget producers that have been silent and have no open transaction; return how many."""
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= self.expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now_ms - verification.since_ms >= self.expiration_ms:
                del self.verifications[producer_id]
        return len(expired)

    def forget_before(self, log_start_offset: int) -> None:
        """Follow the log's start: forget transactions below it."""
        self.unreplicated = {first: marker for first, marker in self.unreplicated.items() if marker >= log_start_offset}
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    # Snapshots

    def directory_renamed(self, directory: str) -> None:
        """Follow a rename of the log's directory."""
        self._directory = directory

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{log_files.file_name(offset, log_files.SNAPSHOT)}"

    @property
    def snapshots(self) -> list[int]:
        """The offsets of the snapshot files, ascending."""
        return self._snapshots

    def found_snapshots(self, offsets: Iterable[int]) -> None:
        """Note which snapshot files the directory holds."""
        self._snapshots = sorted(offsets)

    def take_snapshot(self) -> str | None:
        """Write the state as of `map_end_offset`; return the file's path, None if there is nothing new to write."""
        offset = self.map_end_offset
        if self._snapshots and self._snapshots[-1] >= offset:
            return None
        if not offset:
            return None
        path = self._path(offset)
        self._disk.write_file_atomic(path, encode_snapshot(self.producers.values()), sync=False)
        self._snapshots.append(offset)
        return path

    def load_snapshot(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Replace the state by the newest usable snapshot in the range; remove unusable ones and those beyond the end.

        The caller must replay the batches from `map_end_offset` on.
        """
        self._forget_all()
        self.map_end_offset = log_start_offset
        while self._snapshots:
            offset = self._snapshots[-1]
            if log_start_offset <= offset <= log_end_offset:
                try:
                    entries = decode_snapshot(self._disk.read_file(self._path(offset)))
                except (CorruptSnapshot, FileNotFoundError):
                    pass
                else:
                    for entry in entries:
                        if entry.txn_first_offset != NO_OFFSET or now_ms - entry.last_timestamp < self.expiration_ms:
                            self.producers[entry.producer_id] = entry
                    open_transactions = [e for e in self.producers.values() if e.txn_first_offset != NO_OFFSET]
                    for entry in sorted(open_transactions, key=_txn_first_offset):
                        self.ongoing[entry.txn_first_offset] = entry.producer_id
                    self.map_end_offset = offset
                    return
            elif offset < log_start_offset:
                return
            self._remove_snapshot(offset)

    def remove_snapshots(self, which: Callable[[int], bool]) -> None:
        """Remove the snapshot files whose offsets the predicate selects."""
        for offset in [offset for offset in self._snapshots if which(offset)]:
            self._remove_snapshot(offset)

    def remove_snapshots_of(self, bases: frozenset[int]) -> None:
        """Remove the snapshot files of segments that are gone; a failure is only logged."""
        try:
            self.remove_snapshots(lambda offset: offset in bases)
        except OSError as error:
            logger.warning("%s: the next start will remove old snapshots: %s", self._directory, in_words(error))

    def _remove_snapshot(self, offset: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._disk.remove(self._path(offset))
        self._snapshots.remove(offset)

    def clear(self, offset: int) -> None:
        """Forget everything, files included; the state now ends at `offset`."""
        self._forget_all()
        self.remove_snapshots(lambda _: True)
        self.map_end_offset = offset

    def _forget_all(self) -> None:
        self.producers.clear()
        self.ongoing.clear()
        self.unreplicated.clear()
        self.verifications.clear()


def _stale_epoch(producer_id: int, producer_epoch: int, last_seen: int) -> InvalidProducerEpoch:
    return InvalidProducerEpoch(
        f"Epoch of producer {producer_id} is {producer_epoch}, which is smaller than the last seen epoch {last_seen}"
    )


def _txn_first_offset(entry: ProducerStateEntry) -> int:
    return entry.txn_first_offset
