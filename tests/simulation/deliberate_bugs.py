"""Faults of the broker that only tests can switch on, one for each way the checkers must be able to fail.

Each returns a context manager that replaces one method of the broker while it is open. A simulator that does not notice them would not
notice the real ones either: `test_simulation.py` demands that each is caught within a few seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from inspect import iscoroutinefunction, signature
from typing import Any

from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
from barnabas.log import log_appender, log_segment
from barnabas.log.log_flusher import LogFlusher
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_state import ProducerStateManager
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.records import record_batch
from barnabas.records.record_batch import BatchHeader, read_header
from barnabas.replication.fetch_reader import Reading
from barnabas.replication.partition import Partition
from barnabas.transaction.markers import Ending, Written
from barnabas.transaction.transaction_shard import TransactionCoordinatorShard

Switch = AbstractContextManager[None]


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Replace a method by one that is called in the same way: otherwise every run would fail, whatever the bug does."""
    original = getattr(owner, name)
    if callable(original):
        parameters = signature(original).parameters.values()
        named = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
        positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        signature(by).bind(*positional, **named)
        assert iscoroutinefunction(by) == iscoroutinefunction(original), f"{name}: both or neither are coroutines"
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, original)


def showing_all(where: Callable[[Partition], bool]) -> Switch:
    """Consumers may read all that a replica has, of the partitions for which `where` says so."""
    original: Any = vars(Reading)["_read"]

    def read(self: Any, wanted: Any, partition: Partition) -> Any:
        if self._replica_id >= 0 or not where(partition):
            return original(self, wanted, partition)
        log = partition.log
        known, log.high_watermark = log.high_watermark, log.log_end_offset
        try:
            return original(self, wanted, partition)
        finally:
            log.high_watermark = known

    return replaced(Reading, "_read", read)


def flush_without_sync() -> Switch:
    """The log believes its bytes are on the disk when nobody told the disk. Caught by durability, after a power cut."""

    def flush(self: LogFlusher, log_end_offset: int, now_ms: int) -> None:
        self.recovery_point = log_end_offset

    return replaced(LogFlusher, "flush", flush)


def forget_sequences() -> Switch:
    """Every retry is taken for something new. Caught by exactly_once_in_order, when an answer is lost."""
    return replaced(ProducerStateManager, "check", lambda self, *args, **kwargs: None)


def restart_without_producers() -> Switch:
    """Producers are known until the restart only: a retry across it is appended again. Caught by exactly_once_in_order."""
    initialise = PartitionLog.__init__

    def forget(self: PartitionLog, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        self._producers.producers.clear()

    return replaced(PartitionLog, "__init__", forget)


def recover_without_checksums() -> Switch:
    """Recovery believes a batch by its length alone, so that a torn one is served. Caught by what readers then fail to read."""

    def believe(buffer: Any, position: int = 0) -> BatchHeader:
        return read_header(buffer, position)

    return replaced(log_segment, "check_batch", believe)


def skip_an_offset() -> Switch:
    """One batch in seven starts an offset too late. Caught by dense_offsets, and by durability."""
    original = record_batch.patch
    count = 0

    def patch(buffer: Any, position: int, base_offset: int, leader_epoch: int) -> None:
        nonlocal count
        count += 1
        original(buffer, position, base_offset + (count % 7 == 0), leader_epoch)

    return replaced(log_appender, "patch", patch)


def commit_without_log() -> Switch:
    """A group's commit is answered from memory and never written. Caught by committed_offsets, after any crash."""

    def append(self: CoordinatorRuntime[Any], context: Any, result: Any, transaction: Any) -> None:
        producer_id, _, _ = transaction
        for record in result.records:
            if result.replay:
                context.shard.replay(record, context.next_offset, producer_id)
            context.next_offset += 1

    return replaced(CoordinatorRuntime, "_append", append)


def forget_what_was_decided() -> Switch:
    """A coordinator that starts leaves decided transactions alone. Caught by whole_transactions, after a crash between two markers."""

    def on_loaded(self: TransactionCoordinatorShard) -> None:
        for transactional_id, metadata in list(self.transactions.items()):
            if metadata.state.is_prepared:
                del self.transactions[transactional_id]

    return replaced(TransactionCoordinatorShard, "on_loaded", on_loaded)


def read_beyond_the_stable_offset() -> Switch:
    """Open transactions do not hold readers back. Caught by whole_transactions, when one is aborted after it was read."""
    return replaced(PartitionLog, "last_stable_offset", property(lambda self: self.high_watermark))


def commit_before_the_flush() -> Switch:
    """The controller answers when the flush of its log has begun. Caught by created_topics, after a power cut."""
    original = MetadataLog.flush

    def flush(self: MetadataLog, done: Callable[[], None]) -> None:
        original(self, lambda: None)
        done()

    return replaced(MetadataLog, "flush", flush)


def give_up_when_overtaken() -> Switch:
    """A coordinator that has lost an epoch leaves its transaction undone, as Apache Kafka's does. Caught by recovery, after a power cut."""

    def outcome(self: Ending) -> Written:
        return Written.EVERYWHERE if not self.is_given_up and not self.is_overtaken else Written.GIVEN_UP

    return replaced(Ending, "outcome", outcome)


BUGS: dict[str, Callable[[], Switch]] = {
    "flush_without_sync": flush_without_sync,
    "forget_sequences": forget_sequences,
    "restart_without_producers": restart_without_producers,
    "recover_without_checksums": recover_without_checksums,
    "skip_an_offset": skip_an_offset,
    "commit_without_log": commit_without_log,
    "forget_what_was_decided": forget_what_was_decided,
    "read_beyond_the_stable_offset": read_beyond_the_stable_offset,
    "commit_before_the_flush": commit_before_the_flush,
    "give_up_when_overtaken": give_up_when_overtaken,
}
