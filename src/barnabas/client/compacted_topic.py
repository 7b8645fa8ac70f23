"""A small table in a compacted topic of one partition: the last value of each key, kept as long as the cluster.

    table = CompactedTopic(cluster, "__barnabas_cuts")
    table.put("before-release", b"…", now_ms)
    table.items()                                   # {"before-release": b"…"}

It is meant for what people name by hand: `items` reads the whole partition. Compaction keeps the last record of each key for ever, where
the offsets that a group commits expire after `offsets.retention.minutes`.

Invariants:

- `put` returns when every replica in sync has the record; a record without a value deletes the key.
- A request that failed is sent again. The same record twice is the same table.
- Two writers of one key at the same moment: the record that the leader appends last counts.

Limits: no transactions; records of aborted ones are not expected here.
"""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import result
from barnabas.client.partition_records import append_batch, records_between
from barnabas.client.topics import NewTopic, create_if_absent
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch

_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.1"}


class CompactedTopic:
    """The table in one topic; `put` creates the topic if it does not exist."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._wanted = NewTopic(topic, 1, configs=_SETTINGS)

    def __repr__(self) -> str:
        return f"<CompactedTopic {self._partition.topic}>"

    def items(self) -> dict[str, bytes]:
        """Return the value of each key, sorted; nothing if the topic does not exist.

        Raises:
            KafkaError: the partition cannot be read.
        """
        found: dict[str, bytes] = {}
        try:
            offset, end = (self._end_of_log(position) for position in (EARLIEST, LATEST))
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return found
            raise
        for record in records_between(self._cluster, self._partition, offset, end):
            key = (record.key or b"").decode()
            if record.value is None:
                found.pop(key, None)
            else:
                found[key] = record.value
        return dict(sorted(found.items()))

    def put(self, key: str, value: bytes | None, now_ms: int) -> None:
        """Set the value of a key, or delete the key with None.

        Raises:
            KafkaError: the record may not be stored.
        """
        self._cluster.retry(lambda: create_if_absent(self._cluster, self._wanted))
        batch = build_batch([(now_ms, key.encode(), value, ())])
        self._cluster.retry(lambda: append_batch(self._cluster, self._partition, batch))

    def _end_of_log(self, position: int) -> int:
        return result(list_offsets(self._cluster, {self._partition: position})[self._partition]).offset
