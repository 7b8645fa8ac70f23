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

from collections.abc import Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import outcome_of, result
from barnabas.client.topics import NewTopic, create_topics
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.records.builder import build_batch
from barnabas.records.record import check_records
from barnabas.records.record_batch import iter_batches

_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.1"}
_HIGHEST_WITH_NAMES = 12
_FETCH_BYTES = 4 << 20
_FETCH_WAIT_MS = 500


class CompactedTopic:
    """The table in one topic; `put` creates the topic if it does not exist."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)

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
        while offset < end:
            records = self._fetch(offset)
            for position, header in iter_batches(records):
                offset = max(offset, header.next_offset)
                for record in () if header.is_control else check_records(records, position):
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
        self._create()
        batch = build_batch([(now_ms, key.encode(), value, ())])
        request_class = messages.ProduceRequest
        data = request_class.PartitionProduceData(index=self._partition.partition, records=memoryview(batch))
        topic = request_class.TopicProduceData(name=self._partition.topic, partition_data=[data])
        request = request_class(acks=-1, timeout_ms=self._cluster.timeout_ms, topic_data=[topic])

        def ask(
            connection: BlockingConnection, batch: list[TopicPartition]
        ) -> Mapping[TopicPartition, KafkaError | None]:
            answer = connection.request(request, highest=_HIGHEST_WITH_NAMES).responses[0].partition_responses[0]
            return dict.fromkeys(batch, outcome_of(answer.error_code, answer.error_message))

        result(self._cluster.ask_each([self._partition], self._cluster.leaders, ask)[self._partition])

    def _create(self) -> None:
        topic = self._partition.topic
        if topic in self._cluster.retry(lambda: self._cluster.metadata([topic])).topics:
            return
        created = create_topics(self._cluster, [NewTopic(topic, 1, configs=_SETTINGS)])[topic]
        if isinstance(created, KafkaError) and created.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise created

    def _end_of_log(self, position: int) -> int:
        return result(list_offsets(self._cluster, {self._partition: position})[self._partition]).offset

    def _fetch(self, offset: int) -> memoryview:
        """Return batches from an offset on, at least one.

        Raises:
            KafkaError: REQUEST_TIMED_OUT if the leader returns none until the deadline.
        """
        request_class = messages.FetchRequest
        asked = request_class.FetchPartition(
            partition=self._partition.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
        )
        request = request_class(
            max_wait_ms=_FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            topics=[request_class.FetchTopic(topic=self._partition.topic, partitions=[asked])],
        )

        def ask(
            connection: BlockingConnection, batch: list[TopicPartition]
        ) -> Mapping[TopicPartition, bytes | KafkaError]:
            response = connection.request(request, highest=_HIGHEST_WITH_NAMES)
            (answer,) = response.responses[0].partitions
            error = outcome_of(response.error_code) or outcome_of(answer.error_code)
            # A new leader may not know yet that these records are committed.
            waiting = error_for(ErrorCode.REQUEST_TIMED_OUT, f"no records of {self._partition} from offset {offset} on")
            return dict.fromkeys(batch, error or answer.records or waiting)

        return memoryview(
            result(self._cluster.ask_each([self._partition], self._cluster.leaders, ask)[self._partition])
        )
