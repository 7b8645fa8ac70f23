"""End the transactions that hang: open in a log of this broker, and of no coordinator.

A transaction is known twice: to its coordinator, in `__transaction_state`, and to each partition that it wrote to, which waits for the
marker that ends it. When all machines lose their power, the coordinator may lose it, and a partition may keep it. Then no marker ever
comes, and read_committed readers wait at its first offset; in `__consumer_offsets` groups get UNSTABLE_OFFSET_COMMIT.

    every 10 s   open transactions of the logs that this broker leads
                   └► old enough to ask about ─► all coordinators ─► orphaned ─► an abort marker, as `kafka-transactions abort` writes it

The leader asks about a transaction that

- began before the leader epoch of this broker: it is remembered, not seen; or
- has had no batch for transaction.max.timeout.ms, as `kafka-transactions find-hanging` asks.

It is orphaned, by the rule of `find-hanging` and two more that keep one alive:

    the coordinators know of its producer                                   the transaction
    nothing: no transactional id has this producer id                       is orphaned
    a decided transaction whose markers are being written                   lives
    this epoch, and the partition                                           lives
    this epoch, without the partition                                       is orphaned when it has been silent for its own timeout:
                                                                            its client may not know yet
    another epoch                                                           is orphaned: its client is fenced, or was forgotten

A known one must also be denied by its coordinator in the way in which appends are verified (`partitions`). That proves it even where this
broker may not see the topics of transactions.

- Only a transaction without a new batch since the last look is asked about, and only an unchanged one is ended: between the last check
  and the append of the marker the loop runs nothing else.
- A failure of any coordinator ends the look; the next one asks again.
- A commit is lost where the coordinator has its outcome, and the partition lost its marker. Kafka's tool aborts it too.

Sources: Kafka's `TransactionsCommand`; KIP-664, KIP-890.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from barnabas.log.producer_state_entry import NO_OFFSET, ProducerStateEntry
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.steps import Loop, in_background
from barnabas.transaction.coordinator_survey import KnownTransaction, Survey
from barnabas.transaction.marker_writer import Marker, MarkerWriter
from barnabas.transaction.partitions import TransactionSupportedOperation, add_or_verify
from barnabas.transaction.transaction_coordinator import TransactionCoordinator
from barnabas.turns import REPLICA, pace

__all__ = ["HangingTransactions"]

logger = logging.getLogger(__name__)

DENIALS = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""A coordinator's answers to a verification that say: this is not my transaction."""


class OpenTransaction(NamedTuple):
    """A transaction that is open in a log which this broker leads, as of one look.

    Attributes:
        last_offset: of its last batch.
        is_remembered: whether it began before the leader's epoch.
    """

    partition: Partition
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    last_offset: int
    is_remembered: bool

    @property
    def where(self) -> tuple[str, int]:
        return self.partition.topic.name, self.partition.index

    def is_unchanged(self) -> bool:
        """Return whether this broker leads the partition in the same epoch, and the transaction is open with the same batches."""
        partition = self.partition
        if partition.is_deleted or not partition.is_leader or partition.leader_epoch != self.leader_epoch:
            return False
        return any(each == self for each in open_transactions(partition))


def open_transactions(partition: Partition) -> Iterator[OpenTransaction]:
    """Yield the open transactions of a partition that this broker leads, if their first batch is committed."""
    log = partition.open_log
    if log is None or log.last_stable_offset >= log.high_watermark:
        return
    for entry in log.producers():
        if entry.txn_first_offset != NO_OFFSET and entry.txn_first_offset < log.high_watermark:
            yield _opened(partition, entry)


def _opened(partition: Partition, entry: ProducerStateEntry) -> OpenTransaction:
    return OpenTransaction(
        partition,
        partition.leader_epoch,
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.txn_first_offset,
        entry.last_offset,
        entry.txn_first_offset < partition.epoch_start_offset,
    )


class HangingTransactions:
    """The open transactions of one broker's logs, and the end of those that are orphaned.

    Args:
        coordinator: of this broker; verifies with the coordinators of others too.
        markers: writes into the partitions of this broker.
        max_timeout_ms: transaction.max.timeout.ms.
        monotonic_ms: the clock of the loop.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        survey: Survey,
        coordinator: TransactionCoordinator,
        markers: MarkerWriter,
        *,
        max_timeout_ms: int,
        loop: Loop,
        monotonic_ms: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._survey = survey
        self._coordinator = coordinator
        self._markers = markers
        self._max_timeout_ms = max_timeout_ms
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._is_looking = False
        # Since when each has been as it is, on the monotonic clock.
        self._silent_since: dict[OpenTransaction, int] = {}

    def __repr__(self) -> str:
        return f"<HangingTransactions open={len(self._silent_since)}>"

    def look(self) -> None:
        """Begin a look, unless the last one still waits for an answer."""
        if not self._is_looking:
            self._is_looking = True
            in_background(self._look(), self._loop)

    async def _look(self) -> None:
        try:
            due = await self._due()
            if due:
                await self._end_orphaned(due)
        except KafkaError as error:
            logger.debug("%r: the next look asks again: %s", self, error)
        finally:
            self._is_looking = False

    async def _due(self) -> dict[OpenTransaction, int]:
        """Return the transactions to ask about, each with the milliseconds for which it has been silent."""
        now_ms, before, found = self._monotonic_ms(), self._silent_since, {}
        for topic in list(self._replicas.topics.values()):
            for partition in list(topic.partitions.values()):
                await pace(REPLICA)
                if partition.is_leader:
                    for each in open_transactions(partition):
                        found[each] = before.get(each, now_ms)
        self._silent_since = found
        return {
            each: now_ms - since
            for each, since in found.items()
            if since < now_ms and (each.is_remembered or now_ms - since >= self._max_timeout_ms)
        }

    async def _end_orphaned(self, due: dict[OpenTransaction, int]) -> None:
        known = await self._survey.known({each.producer_id for each in due})
        for each, silent_ms in due.items():
            if await self._is_orphaned(each, known.get(each.producer_id), silent_ms):
                await self._end(each)

    async def _is_orphaned(self, each: OpenTransaction, known: KnownTransaction | None, silent_ms: int) -> bool:
        if known is None:
            return True
        if known.state.is_prepared:
            return False
        is_of_this_epoch = known.producer_epoch == each.producer_epoch
        if is_of_this_epoch and each.where in known.partitions:
            return False
        if is_of_this_epoch and silent_ms < min(known.timeout_ms, self._max_timeout_ms):
            return False
        return await self._is_denied(each, known.transactional_id)

    async def _is_denied(self, each: OpenTransaction, transactional_id: str) -> bool:
        """Return whether the coordinator would not let the transaction append to its partition."""
        asked: Collection[tuple[str, int]] = (each.where,)
        operation = TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED
        errors = await add_or_verify(
            self._coordinator, transactional_id, each.producer_id, each.producer_epoch, asked, operation
        )
        return errors.get(each.where) in DENIALS

    async def _end(self, each: OpenTransaction) -> None:
        if not each.is_unchanged():
            return
        marker = Marker(
            each.producer_id,
            each.producer_epoch,
            # A log without a marker of this producer has -1, and accepts every epoch.
            max(each.coordinator_epoch, 0),
            commit=False,
            transaction_version=0,
        )
        try:
            await self._markers.write(marker, each.where)
        except KafkaError as error:
            logger.info("%s: the abort of an orphaned transaction is retried: %s", each.partition.name, error)
            return
        what = "%s: aborted the transaction of producer %d, epoch %d, open since offset %d: no coordinator knows it"
        logger.warning(what, each.partition.name, each.producer_id, each.producer_epoch, each.first_offset)
