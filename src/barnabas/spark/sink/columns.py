"""The columns of a row that is written, and where each row goes.

| column      | type                                        |                                                       |
|-------------|---------------------------------------------|-------------------------------------------------------|
| `value`     | string or binary                            | required                                              |
| `key`       | string or binary                            |                                                       |
| `headers`   | array<struct<key: string, value: binary>>   |                                                       |
| `topic`     | string                                      | unless the option `topic` names one for all rows      |
| `partition` | int                                         | null: the key decides, as in Java's producer          |
| `timestamp` | timestamp                                   | null: the time of writing                             |

They are those of Spark's own Kafka sink, and `timestamp`. Other columns are ignored, as there. Rows without key and
partition go to one partition after the other, as many together as Spark hands over in one piece.

Source: org.apache.spark.sql.kafka010.KafkaWriter; Java's BuiltInPartitioner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.spark.sink.digest import UInt64Array, column_mark, topic_mark
from barnabas.spark.sink.encoder import Int64Array, RecordColumns
from barnabas.spark.sink.key_hash import murmur2
from barnabas.words.printable import printable

# Of the columns that mark a row.
_TIMESTAMP, _PARTITION = 1, 2
_HEADER = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


class RowRouter:
    """Sorts rows by partition.

    Args:
        topic: for every row; None for the column's.
        partition_count: returns the number of a topic's partitions.
        first: where rows without key and partition begin, any number.
        now_ms: the current time.
    """

    def __init__(
        self, topic: str | None, partition_count: Callable[[str], int], first: int, now_ms: Callable[[], int]
    ) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._next = first
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"<RowRouter topic={self._topic}>"

    def route(self, rows: pa.RecordBatch) -> Iterator[tuple[TopicPartition, RecordColumns]]:
        """Yield the rows of each partition, in their order.

        Raises:
            ValueError: a row has no topic, or a partition that its topic has not; the message is for the user.
            KafkaError: a topic does not exist.
        """
        if not rows.num_rows:
            return
        records = self._records(rows)
        for topic, chosen in self._topics(rows):
            of_topic = records if chosen is None else records.take(chosen)
            if self._topic is None:
                of_topic = of_topic._replace(
                    marks=_added(of_topic.marks, np.full(len(of_topic.values), topic_mark(topic)))
                )
            given = _column(rows, "partition", pa.int32())
            if given is not None and chosen is not None:
                given = given.take(pa.array(chosen))
            partitions = self._partitions(topic, of_topic, given)
            for partition in np.unique(partitions):
                members = np.flatnonzero(partitions == partition)
                whole = len(members) == len(partitions)
                yield TopicPartition(topic, int(partition)), of_topic if whole else of_topic.take(members)

    def _records(self, rows: pa.RecordBatch) -> RecordColumns:
        count = rows.num_rows
        keys = _column(rows, "key", pa.binary())
        marks: UInt64Array | None = None
        timestamps = np.full(count, self._now_ms(), np.int64)
        given = _column(rows, "timestamp", None)
        if given is not None and given.null_count < count:
            given = given.cast(pa.timestamp("us", given.type.tz), safe=False).view(pa.int64())
            known = np.asarray(given.is_valid())
            timestamps[known] = np.asarray(given.fill_null(0))[known] // 1000
            marks = column_mark(timestamps, known, _TIMESTAMP)
        partitions = _column(rows, "partition", pa.int32())
        if partitions is not None and partitions.null_count < count:
            known = np.asarray(partitions.is_valid())
            marks = _added(marks, column_mark(np.asarray(partitions.fill_null(0)).astype(np.int64), known, _PARTITION))
        values = _column(rows, "value", pa.binary())
        assert values is not None, "the driver has checked the schema"
        return RecordColumns(
            pa.nulls(count, pa.binary()) if keys is None else keys,
            values,
            _column(rows, "headers", _HEADER),
            timestamps,
            marks,
        )

    def _topics(self, rows: pa.RecordBatch) -> Iterator[tuple[str, Int64Array | None]]:
        if self._topic is not None:
            yield self._topic, None
            return
        topics = _column(rows, "topic", pa.string())
        assert topics is not None, "the driver has checked the schema"
        if topics.null_count:
            raise ValueError("null topic present in the data. Use the topic option for setting a topic.")
        coded = topics.dictionary_encode()
        indexes = np.asarray(coded.indices)
        for index, topic in enumerate(coded.dictionary.to_pylist()):
            yield topic, None if len(coded.dictionary) == 1 else np.flatnonzero(indexes == index)

    def _partitions(self, topic: str, records: RecordColumns, given: pa.Array | None) -> Int64Array:
        count = self._partition_count(topic)
        keyless = np.asarray(records.keys.is_null())
        if keyless.all():
            partitions = np.full(len(records.values), self._next % count, np.int64)
        else:
            partitions = (murmur2(records.keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % count
            partitions[keyless] = self._next % count
        self._next += 1
        if given is not None:
            known = np.asarray(given.is_valid())
            chosen = np.asarray(given.fill_null(0))
            wrong = known & ((chosen < 0) | (chosen >= count))
            if wrong.any():
                raise ValueError(
                    f"topic {printable(topic)} has partitions 0 to {count - 1}, and a row is for {chosen[wrong][0]}:"
                    " correct the column partition, or leave it out"
                )
            partitions[known] = chosen[known]
        return partitions


def _added(marks: UInt64Array | None, more: UInt64Array) -> UInt64Array:
    return more if marks is None else marks + more


def _column(rows: pa.RecordBatch, name: str, wanted: pa.DataType | None) -> Any:
    """Return a column in the wanted type, None if there is none. Spark's names have no case."""
    for index, field in enumerate(rows.schema):
        if field.name.lower() == name:
            column = rows.column(index)
            return column if wanted is None or column.type == wanted else _cast(column, wanted)
    return None


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), wanted)
    return pc.cast(column, wanted)
