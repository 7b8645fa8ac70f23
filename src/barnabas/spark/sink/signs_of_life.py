"""When a query that writes through the sink was last seen at work, from what it leaves on the brokers anyway.

- Its records in `__barnabas_sink`: a claim, a decision and its end in each batch.
- The beginning of its youngest open transaction.
- The timestamps of the newest rows in its open transactions, as the partitions' leaders remember them.

So there is no record of its own that says "alive": a query that works writes one of these, and such a record would only
tell that a driver's process runs.

Limits: a task that computes for long before its first row leaves no sign. If the column `timestamp` is given, the third is
the rows' time; what lies in the future is dropped. Compaction removes claims after a day, and keeps decisions.

Source: DescribeProducers (KIP-664), whose `LastTimestamp` is that of the newest batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from barnabas.client.brokers import describe_producers
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import results
from barnabas.client.partition_records import fetch_records
from barnabas.client.transactions import TransactionDescription
from barnabas.protocol.errors import KafkaError
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.spark.sink.decision_scan import claim_key, done_key
from barnabas.spark.sink.decision_topic import LOOK_BACK, PARTITION, TOPIC

_CLOCKS_DIFFER_MS = 60_000
"""A timestamp so far in the future is no clock's."""


def last_signs(
    cluster: Cluster, transactions: Mapping[str, Iterable[TransactionDescription]], now_ms: int
) -> dict[str, int]:
    """Return when each sink was last seen, in epoch milliseconds.

    Args:
        transactions: the open ones, by the sink's name. A sink without one of them is not looked for.

    Raises:
        KafkaError: the topic of decisions cannot be read.
    """
    found = {name: list(each) for name, each in transactions.items() if each}
    written = cluster.retry(lambda: _last_records(cluster, found))
    rows = _last_rows(cluster, [each for mine in found.values() for each in mine])
    signs = {}
    for name, mine in found.items():
        stamps = [written.get(name, 0), *(each.start_ms or 0 for each in mine)]
        stamps += [rows.get(each.producer_id, 0) for each in mine]
        signs[name] = max(each for each in (0, *stamps) if each <= now_ms + _CLOCKS_DIFFER_MS)
    return signs


def _last_records(cluster: Cluster, names: Collection[str]) -> dict[str, int]:
    """Return the time of each sink's last record, of any kind."""
    if not names or TOPIC not in cluster.metadata([TOPIC]).topics:
        return {}
    first, end = (results(list_offsets(cluster, {PARTITION: each}))[PARTITION].offset for each in (EARLIEST, LATEST))
    keys = {key: name for name in names for key in (name.encode(), claim_key(name), done_key(name))}
    seen: dict[str, int] = {}
    for look_back in (*LOOK_BACK, end):
        offset = begin = max(first, end - look_back)
        while offset < end:
            offset = _note_times(fetch_records(cluster, PARTITION, offset), keys, seen, offset)
        if begin == first or len(seen) == len(names):
            break
    return seen


def _note_times(records: memoryview, keys: Mapping[bytes, str], seen: dict[str, int], offset: int) -> int:
    """Note the times of the sinks' records, and return the offset behind all records."""
    for position, header in iter_batches(records):
        offset = max(offset, header.next_offset)
        if not header.is_control:
            for record in iter_records(records, position, header=header):
                name = keys.get(bytes(record.key or b""))
                if name is not None:
                    seen[name] = max(seen.get(name, 0), record.timestamp)
    return offset


def _last_rows(cluster: Cluster, transactions: Iterable[TransactionDescription]) -> dict[int, int]:
    """Return the timestamp of the newest batch of each producer in its open transaction's partitions."""
    partitions = dict.fromkeys(partition for each in transactions for partition in each.partitions)
    newest: dict[int, int] = {}
    for producers in describe_producers(cluster, partitions).values():
        for each in () if isinstance(producers, KafkaError) else producers:
            newest[each.producer_id] = max(newest.get(each.producer_id, 0), each.last_timestamp)
    return newest
