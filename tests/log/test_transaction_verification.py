"""Which transactional batches and markers a log takes: guards, sequences, epochs of both versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.log.append_checks import AppendOrigin
from barnabas.log.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.transaction_verification import Verification, VerificationGuard
from barnabas.protocol.errors import KafkaError
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.simulation.disk import SimDisk

NOW_MS = 1_767_225_600_000
EXPIRATION_MS = 1000


class Subject:
    """A log that verifies, and one producer."""

    def __init__(self, *, verify: bool = True) -> None:
        self.now_ms = NOW_MS
        self.disk = SimDisk()
        self.config = LogConfig(
            transaction_partition_verification_enable=verify, producer_id_expiration_ms=EXPIRATION_MS
        )
        self.disk.mkdir("/logs")
        self.log = self.open()

    def open(self) -> PartitionLog:
        return PartitionLog(self.disk, "/logs/t-0", self.config, now_ms=lambda: self.now_ms)

    def begin(self, sequence: int = 0, epoch: int = 0, *, bumps: bool = False) -> VerificationGuard | None:
        return self.log.begin_verification(7, sequence, epoch, supports_epoch_bump=bumps)

    def append(
        self,
        sequence: int = 0,
        epoch: int = 0,
        *,
        guard: VerificationGuard | None = None,
        transactional: bool = True,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> Any:
        batch = build_batch(
            [(self.now_ms, b"k", b"v", [])],
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        return self.log.append_as_leader(batch, 0, origin=origin, guard=guard)

    def mark(self, epoch: int = 0, *, version: int = 0, coordinator_epoch: int = 0, commit: bool = True) -> Any:
        batch = build_end_transaction_marker(
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            producer_id=7,
            producer_epoch=epoch,
            timestamp=self.now_ms,
        )
        return self.log.append_as_leader(batch, 0, origin=AppendOrigin.COORDINATOR, transaction_version=version)


def refused(error: type[KafkaError], call: Callable[[], Any]) -> None:
    with pytest.raises(error):
        call()


class TestGuards:
    def test_the_first_batch_needs_one_and_the_rest_do_not(self) -> None:
        subject = Subject()
        refused(InvalidTxnState, subject.append)
        subject.append(guard=subject.begin())
        assert subject.begin(1) is None, "the open transaction is proof enough"
        subject.append(1)

    def test_a_guard_is_of_no_use_after_a_marker(self) -> None:
        subject = Subject()
        stale = subject.begin()
        subject.mark()
        refused(InvalidTxnState, lambda: subject.append(guard=stale))
        fresh = subject.begin()
        refused(InvalidTxnState, lambda: subject.append(guard=stale))
        subject.append(guard=fresh)

    def test_a_guard_serves_everyone_who_waits(self) -> None:
        subject = Subject()
        first, second = subject.begin(0), subject.begin(1)
        assert first is second
        subject.append(0, guard=first)
        subject.append(1, guard=second)

    def test_a_marker_of_version_2_leaves_the_next_transaction_its_guard(self) -> None:
        subject = Subject()
        subject.append(guard=subject.begin(bumps=True))
        subject.log.begin_verification(7, 0, 1, supports_epoch_bump=True)
        guard = subject.begin(0, 1, bumps=True)
        subject.mark(1, version=2)
        subject.append(0, 1, guard=guard)

    def test_a_duplicate_needs_none(self) -> None:
        subject = Subject()
        first = subject.append(guard=subject.begin())
        subject.mark()
        assert subject.append().base_offset == first.base_offset

    def test_a_coordinators_batch_needs_one_too(self) -> None:
        subject = Subject()
        refused(InvalidTxnState, lambda: subject.append(-1, origin=AppendOrigin.COORDINATOR))
        subject.append(-1, guard=subject.begin(-1), origin=AppendOrigin.COORDINATOR)
        subject.append(-1, origin=AppendOrigin.COORDINATOR)
        assert subject.log.last_stable_offset == 0

    def test_without_verification(self) -> None:
        subject = Subject(verify=False)
        subject.append()

    def test_it_is_forgotten_with_the_producers(self) -> None:
        subject = Subject()
        guard = subject.begin()
        subject.now_ms += EXPIRATION_MS
        subject.log.expire_producers()
        refused(InvalidTxnState, lambda: subject.append(guard=guard))

    def test_a_truncation_discards_it(self) -> None:
        """The verification began after a transaction that the log has lost."""
        subject = Subject()
        subject.append(guard=subject.begin())
        subject.mark()
        guard = subject.begin(1)
        subject.log.truncate_to(0)
        refused(InvalidTxnState, lambda: subject.append(0, guard=guard))
        assert subject.begin(0) is not guard

    def test_an_emptied_log_discards_it(self) -> None:
        subject = Subject()
        guard = subject.begin()
        subject.log.truncate_fully_and_start_at(5)
        refused(InvalidTxnState, lambda: subject.append(guard=guard))

    def test_a_replica_that_no_longer_leads_forgets_it_with_its_lowest_sequence(self) -> None:
        subject = Subject()
        guard = subject.begin(2)
        subject.log.forget_verifications()
        refused(InvalidTxnState, lambda: subject.append(2, guard=guard))
        subject.append(4, guard=subject.begin(4))

    def test_a_fenced_producer_is_told_so(self) -> None:
        subject = Subject()
        subject.mark(5)
        refused(InvalidProducerEpoch, lambda: subject.begin(0, 4))
        refused(InvalidProducerEpoch, lambda: subject.append(0, 4))


class TestSequences:
    def test_a_higher_batch_does_not_overtake_one_that_must_try_again(self) -> None:
        subject = Subject()
        subject.begin(3)
        guard = subject.begin(2)
        refused(OutOfOrderSequence, lambda: subject.append(3, guard=guard))
        subject.append(2, guard=guard)
        subject.append(3)

    def test_version_2_begins_at_0_where_the_producer_is_unknown(self) -> None:
        subject = Subject()
        refused(OutOfOrderSequence, lambda: subject.append(5, guard=subject.begin(5, bumps=True)))
        subject = Subject()
        subject.append(5, guard=subject.begin(5, bumps=False))

    def test_a_newer_epoch_begins_anew(self) -> None:
        verification = Verification(NOW_MS, 5, 1, True)
        verification.note(7, 1)
        assert verification.lowest_sequence == 5
        verification.note(9, 2)
        assert (verification.epoch, verification.lowest_sequence) == (2, 9)
        verification.note(3, 1)
        assert verification.lowest_sequence == 9

    def test_plain_batches_wait_for_the_end(self) -> None:
        subject = Subject()
        subject.append(guard=subject.begin())
        refused(InvalidTxnState, lambda: subject.append(1, transactional=False))
        subject.mark()
        subject.append(1, transactional=False)


class TestMarkers:
    def test_version_1_takes_the_same_epoch(self) -> None:
        subject = Subject()
        subject.append(epoch=3, guard=subject.begin(0, 3))
        refused(InvalidProducerEpoch, lambda: subject.mark(2))
        subject.mark(3)
        assert subject.log.last_stable_offset == subject.log.high_watermark

    def test_version_2_takes_only_a_higher_epoch(self) -> None:
        subject = Subject()
        subject.append(epoch=3, guard=subject.begin(0, 3))
        refused(InvalidProducerEpoch, lambda: subject.mark(3, version=2))
        subject.mark(4, version=2)

    def test_version_2_takes_a_repetition_between_transactions(self) -> None:
        subject = Subject()
        subject.append(guard=subject.begin())
        subject.mark(1, version=2)
        subject.mark(1, version=2)
        subject.append(0, 1, guard=subject.begin(0, 1))
        refused(InvalidProducerEpoch, lambda: subject.mark(1, version=2))

    def test_the_last_epoch_of_all_can_end(self) -> None:
        subject = Subject()
        subject.append(epoch=32767, guard=subject.begin(0, 32767))
        subject.mark(32767, version=2, commit=False)

    def test_an_older_coordinator_is_fenced(self) -> None:
        subject = Subject()
        subject.mark(coordinator_epoch=4)
        refused(TransactionCoordinatorFenced, lambda: subject.mark(coordinator_epoch=3))
        subject.mark(coordinator_epoch=4)

    def test_a_refused_marker_changes_nothing(self) -> None:
        subject = Subject()
        subject.append(epoch=3, guard=subject.begin(0, 3))
        end = subject.log.log_end_offset
        refused(InvalidProducerEpoch, lambda: subject.mark(2))
        assert subject.log.log_end_offset == end
        assert subject.log.first_unstable_offset == 0

    def test_after_a_restart_the_rules_are_the_same(self) -> None:
        subject = Subject()
        subject.append(epoch=3, guard=subject.begin(0, 3))
        subject.mark(4, version=2, coordinator_epoch=6)
        subject.log = subject.open()
        refused(TransactionCoordinatorFenced, lambda: subject.mark(5, version=2, coordinator_epoch=5))
        refused(InvalidProducerEpoch, lambda: subject.begin(0, 3))
        subject.append(0, 4, guard=subject.begin(0, 4, bumps=True))
