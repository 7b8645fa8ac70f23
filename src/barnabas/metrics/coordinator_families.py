"""Transactions, share groups and the log cleaner.

- Two numbers show what holds back readers of committed records: how far each partition's last stable offset is behind its high
  watermark, and the age of the oldest open transaction.
- The owners of the oldest open transactions are named. They are few, and each has been open for long, so that the series do not change
  with every transaction.
- Share groups have samples once a member of a share group has fetched from this node.

Sources: Kafka's `Partition` (LastStableOffsetLag), `ReplicaManager` (ProducerIdCount), `LogCleaner`, `LogCleanerManager`,
`ShareGroupMetrics`; the JMX exporter's naming.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

from barnabas.log.log_cleaner import LogCleaner
from barnabas.log.log_directories import Cleaners
from barnabas.log.producer_state_entry import NO_OFFSET, ProducerStateEntry
from barnabas.metrics.exposition import Family, family, family_in_pieces, labels
from barnabas.metrics.source import PartitionRow
from barnabas.transaction.transaction_coordinator import TransactionCoordinator
from barnabas.transaction.transaction_state import TransactionState
from barnabas.words.sink_names import sink_of

if TYPE_CHECKING:
    from barnabas.share.share_partition_manager import SharePartitionManager

__all__ = ["cleaner", "share_groups", "transactions"]

_OWNERS, _LONG_OPEN_MS = 10, 10_000
_LATE_MS = 5 * 60_000
"""As in Kafka: by so much an open transaction is older than the longest timeout of one before it counts as late."""
_ACKNOWLEDGE_TYPES = {1: "Accept", 2: "Release", 3: "Reject", 4: "Renew"}


def transactions(coordinator: TransactionCoordinator, rows: Sequence[PartitionRow], now_ms: int) -> Iterator[Family]:
    """Yield the families of transactions, from their coordinator and from their partitions."""
    by_state: Counter[TransactionState] = Counter()
    oldest: dict[str, int] = {}
    for shard in coordinator.active_shards():
        for transaction in shard.transactions.values():
            by_state[transaction.state] += 1
            if transaction.state is TransactionState.ONGOING:
                owner = sink_of(transaction.transactional_id) or transaction.transactional_id
                oldest[owner] = min(oldest.get(owner, now_ms), transaction.start_ms)
    yield family(
        "barnabas_transaction_state_count",
        "gauge",
        "Transactional ids by the state of their transaction.",
        ((labels({"state": state.title}), by_state[state]) for state in TransactionState),
    )
    yield family(
        "barnabas_transaction_oldest_ongoing_seconds",
        "gauge",
        "How long the oldest open transaction has been open.",
        [("", (now_ms - min(oldest.values(), default=now_ms)) / 1000)],
    )
    long_open = ((start_ms, owner) for owner, start_ms in oldest.items() if now_ms - start_ms >= _LONG_OPEN_MS)
    yield family(
        "barnabas_transaction_ongoing_seconds",
        "gauge",
        "How long an owner's oldest open transaction has been open: the ten oldest that are open for ten seconds or more.",
        ((labels({"owner": owner}), (now_ms - start_ms) / 1000) for start_ms, owner in nsmallest(_OWNERS, long_open)),
    )
    yield from _producers(rows, now_ms - coordinator.config.transaction_max_timeout_ms - _LATE_MS)
    yield from family_in_pieces(
        "kafka_cluster_partition_laststableoffsetlag",
        "gauge",
        "Records between the last stable offset and the high watermark.",
        (
            (row.labels, 0 if row.log is None else row.log.high_watermark - row.log.last_stable_offset)
            for row in rows
            if row.replica is not None and row.replica.is_leader
        ),
    )


def _producers(rows: Sequence[PartitionRow], late_before_ms: int) -> Iterator[Family]:
    """Yield the families of the logs' producers, and an empty text after each partition."""
    ids = late = 0
    for row in rows:
        if row.log is not None:
            producers = row.log.producers()
            ids += len(producers)
            if row.replica is not None and row.replica.is_leader:
                late += _has_late_transaction(producers, late_before_ms)
        yield ""
    for name, text, count in (
        ("produceridcount", "Producer ids in the state of this broker's logs.", ids),
        ("partitionswithlatetransactionscount", "Partitions led here with a transaction that should have ended.", late),
    ):
        yield family(f"kafka_server_replicamanager_{name}", "gauge", text, [("", count)])


def _has_late_transaction(producers: Sequence[ProducerStateEntry], late_before_ms: int) -> bool:
    """Return whether the oldest open transaction of a partition was last written to before this time."""
    open_ones = [each for each in producers if each.txn_first_offset != NO_OFFSET]
    if not open_ones:
        return False
    oldest = min(open_ones, key=lambda each: each.txn_first_offset)
    return 0 < oldest.last_timestamp < late_before_ms


def share_groups(partitions: SharePartitionManager) -> Iterator[Family]:
    """Yield the families of share groups."""
    yield family(
        "barnabas_sharegroup_records_acquired_total",
        "counter",
        "Records acquired by members of share groups.",
        [("", partitions.records_acquired)],
    )
    yield family(
        "kafka_server_sharegroupmetrics_recordacknowledgements_total",
        "counter",
        "Records acknowledged by members of share groups, by type.",
        (
            (labels({"ackType": name}), partitions.records_acknowledged[number])
            for number, name in _ACKNOWLEDGE_TYPES.items()
        ),
    )


def cleaner(cleaner: LogCleaner | Cleaners, now_ms: int) -> Iterator[Family]:
    """Yield the families of the log cleaner."""
    stats = cleaner.stats
    samples: tuple[tuple[str, str, str, float], ...] = (
        (
            "logcleaner_cleaner_recopy_percent",
            "gauge",
            "Bytes written per byte read in the last cleaning, in percent.",
            stats.cleaner_recopy_percent,
        ),
        (
            "logcleaner_max_buffer_utilization_percent",
            "gauge",
            "Fill of the key table in the last cleaning, in percent.",
            stats.max_buffer_utilization_percent,
        ),
        ("logcleaner_max_clean_time_secs", "gauge", "Seconds of the last cleaning.", stats.max_clean_time_seconds),
        (
            "logcleaner_max_compaction_delay_secs",
            "gauge",
            "How long the oldest record has waited beyond max.compaction.lag.ms.",
            stats.max_compaction_delay_seconds,
        ),
        ("logcleaner_deadthreadcount", "gauge", "Unexpected ends of the cleaning process.", cleaner.worker_deaths),
        ("logcleanermanager_max_dirty_percent", "gauge", "Dirty share of the dirtiest log.", stats.max_dirty_percent),
        (
            "logcleanermanager_time_since_last_run_ms",
            "gauge",
            "Milliseconds since the cleaner last looked for dirty logs.",
            max(0, now_ms - stats.last_run_ms),
        ),
        (
            "logcleanermanager_uncleanable_partitions_count",
            "gauge",
            "Logs that cannot be cleaned.",
            len(cleaner.uncleanable),
        ),
        ("logcleaner_cleanings_total", "counter", "Cleanings done.", stats.cleanings),
        ("logcleaner_bytes_read_total", "counter", "Bytes read by cleanings.", stats.bytes_read),
        ("logcleaner_bytes_written_total", "counter", "Bytes written by cleanings.", stats.bytes_written),
    )
    for name, kind, text, value in samples:
        yield family(f"kafka_log_{name}", kind, text, [("", value)])
