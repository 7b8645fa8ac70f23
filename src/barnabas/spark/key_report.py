"""How evenly keys spread over a topic's partitions, counted by Spark: the report of `barnabas topic skew` for large topics.

    rows = spark.read.format("barnabas").options(**options).load()
    report = key_report(rows, partitions=6)
    report.choices          # the records of each partition: as they are, and with the hot keys salted

Each task counts its rows: exact records and bytes, and the keys in a sketch of fixed size for each partition (`HeavyKeys`).
The driver merges the sketches. So a task sends at most `counters` keys of each partition to the driver, however many its
rows have. The batches of a task are summed by key in Arrow before Python sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from barnabas.client.heavy_keys import HeavyKey
from barnabas.client.key_report import CountedPartition, KeyReport, report_of
from barnabas.client.partitioner import LIBRARY_DEFAULTS, PARTITIONERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["key_report"]

_COUNTS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int64()),
        ("without_key", pa.int64()),
        ("size_bytes", pa.int64()),
        ("bound", pa.int64()),
        ("keys", pa.list_(pa.binary())),
        ("key_records", pa.list_(pa.int64())),
        ("key_errors", pa.list_(pa.int64())),
    ]
)
_COUNTS_IN_SPARK = (
    "topic string, partition int, records bigint, without_key bigint, size_bytes bigint, bound bigint, "
    "keys array<binary>, key_records array<bigint>, key_errors array<bigint>"
)


def key_report(
    rows: DataFrame,
    partitions: int,
    *,
    hot_percent: float = 25,
    salts: Sequence[int] = (2, 4, 8),
    partitioner: str | None = None,
    counters: int = 1000,
) -> KeyReport:
    """Count the records of a topic by key, and return what `barnabas topic skew` shows.

    Args:
        rows: the records of one topic, with the columns `key` and `partition`, and for the bytes `value`; as `format("barnabas")` reads
            them. They may also come from a table that has these columns.
        partitions: how many the topic has. Rows alone do not tell: the last partitions may be empty.
        hot_percent: a key is hot from this part of an even partition on.
        salts: the numbers of salts to compute; each at least 2.
        partitioner: the producers'; None takes that which fits the keys best.
        counters: the keys that are counted in each partition. Counts are exact while a partition has no more keys.

    Raises:
        ValueError: there are no rows, or rows of several topics; a row is in a partition that the topic does not have; or an argument is
            not valid.
    """
    if partitioner is not None and partitioner not in PARTITIONERS:
        raise ValueError(f"{partitioner!r} is not one of {', '.join(PARTITIONERS)}")
    if partitions < 1 or counters < 1 or any(number < 2 for number in salts):
        raise ValueError("partitions and counters must be at least 1, and each number of salts at least 2")
    columns = set(rows.columns)
    if missing := {"key", "partition"} - columns:
        raise ValueError(f"the rows have no column {sorted(missing)[0]}")
    key = F.col("key").cast("binary")
    sizes = [key, *([F.col("value").cast("binary")] if "value" in columns else [])]
    needed = rows.select(
        (F.col("topic") if "topic" in columns else F.lit("")).alias("topic"),
        F.col("partition").cast("int").alias("partition"),
        key.alias("key"),
        sum((F.coalesce(F.octet_length(each), F.lit(0)) for each in sizes), F.lit(0))
        .cast("bigint")
        .alias("size_bytes"),
    )
    parts = needed.mapInArrow(counting(counters), _COUNTS_IN_SPARK).collect()
    found = merged((part.asDict() for part in parts), partitions, counters)
    return report_of(found, hot_percent, sorted(set(salts)), [partitioner] if partitioner else LIBRARY_DEFAULTS)


def counting(counters: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task: batches of topic, partition, key and size_bytes become one batch of counts.

    The batch has a row for each partition that the task read.
    """

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[tuple[str, int], CountedPartition] = {}
        for batch in batches:
            grouped = pa.Table.from_batches([batch]).group_by(["topic", "partition", "key"])
            sums = grouped.aggregate([("size_bytes", "sum"), ("size_bytes", "count")])
            names = ("topic", "partition", "key", "size_bytes_sum", "size_bytes_count")
            for topic, partition, key, size_bytes, records in zip(
                *(sums.column(name).to_pylist() for name in names), strict=True
            ):
                where = (topic, partition)
                if where not in found:
                    found[where] = CountedPartition(counters)
                found[where].add(key, size_bytes, records)
        if found:
            counts = [_row(topic, partition, each) for (topic, partition), each in found.items()]
            yield pa.RecordBatch.from_pylist(counts, _COUNTS)

    return count


def merged(parts: Iterable[dict[str, Any]], partitions: int, counters: int) -> list[CountedPartition]:
    """Return the counts of each partition, from those of all tasks; raise ValueError as `key_report` does."""
    found = [CountedPartition(counters) for _ in range(partitions)]
    topics = set()
    for part in parts:
        topics.add(part["topic"])
        if len(topics) > 1:
            raise ValueError(f"the rows are of several topics, such as {' and '.join(sorted(topics))}: filter one")
        number = part["partition"]
        if number is None or not 0 <= number < partitions:
            raise ValueError(f"a row is in partition {number}, and the topic is said to have {partitions} partitions")
        whole = found[number]
        whole.records += part["records"]
        whole.without_key += part["without_key"]
        whole.size_bytes += part["size_bytes"]
        counts = zip(part["keys"], part["key_records"], part["key_errors"], strict=True)
        whole.keys.merge((HeavyKey(bytes(key), records, error) for key, records, error in counts), part["bound"])
    if not topics:
        raise ValueError("there are no rows, so no key has a share")
    return found


def _row(topic: str, partition: int, found: CountedPartition) -> dict[str, Any]:
    keys = found.keys.all()
    return {
        "topic": topic,
        "partition": partition,
        "records": found.records,
        "without_key": found.without_key,
        "size_bytes": found.size_bytes,
        "bound": found.keys.bound,
        "keys": [each.key for each in keys],
        "key_records": [each.records for each in keys],
        "key_errors": [each.error for each in keys],
    }
