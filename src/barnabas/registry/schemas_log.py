r"""The topic `_schemas`: created, read, and written by the registry that holds its claim.

**The claim.** A registry that wants to write takes the next epoch of one transactional id (InitProducerId) and appends a NOOP record
with it. From then on the partition's leader rejects records of every earlier epoch (INVALID_PRODUCER_EPOCH), because the partition has
seen a later one. So when the registry has read up to its own NOOP record, it knows everything that was ever written, and no other
registry adds to that unless it takes the claim itself:

    A: claim ──NOOP(5)── read to it ── decide ── append(5) ──────────────────────────── append(5): rejected
    B:                                             claim ──NOOP(6)── read to it ── decide ── append(6)

Records are appended with sequences, outside a transaction: a repeated request adds nothing twice, and a reader of any isolation level
sees them. No registry waits for another one, or for the end of a dead one's session.

**What a claim outlives.** A broker forgets the epochs of a partition after a day without a record (`producer.id.expiration.ms`), and the
coordinator forgets a transactional id after a week (`transactional.id.expiration.ms`). So a registry takes its claim again after some
hours, before it writes (`writing`).

Limits: Confluent's registry takes no claim. It may open the topic before or afterwards, and not write at the same time.

Sources: KIP-98 (fencing), InitProducerId (22), Produce (0); kafka.storage ProducerAppendInfo.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.configs import ConfigResource, ResourceType, describe_configs
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import outcome_of, result
from barnabas.client.partition_records import fetch_once, produce_request
from barnabas.client.patience import insist
from barnabas.client.producer_transactions import ProducerIdentity, init_producer_id
from barnabas.client.topics import create_if_absent, describe_topics, replicated
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.records.record import check_records
from barnabas.records.record_batch import SEQUENCE_MASK, iter_batches
from barnabas.registry.stored_records import StoredRecord, noop_record

__all__ = ["DEFAULT_TOPIC", "BadSchemasTopic", "ClaimLost", "SchemasLog"]

DEFAULT_TOPIC = "_schemas"
_SETTINGS = {"cleanup.policy": "compact"}
_CLEANUP = "cleanup.policy"
_TRANSACTION_TIMEOUT_MS = 60_000
_FETCH_BYTES = 4 << 20
# From version 13 on Produce names topics by id.
_HIGHEST_WITH_NAMES = 12
_LOST = frozenset(
    (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )
)


class ClaimLost(Exception):
    """Another registry has taken the claim; nothing was appended."""


class BadSchemasTopic(Exception):
    """The topic exists, and a registry cannot keep its state there; the text is one line."""


class SchemasLog:
    """The topic, for one thread.

    Args:
        topic: its name.
        now_ms: a seam for tests; epoch milliseconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str = DEFAULT_TOPIC,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._claim_id = f"barnabas-registry-{topic}"
        self._now_ms = now_ms
        self._identity: ProducerIdentity | None = None
        self._sequence = 0

    def __repr__(self) -> str:
        return f"<SchemasLog {self._partition.topic} claimed={self._identity is not None}>"

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()

    def open(self) -> None:
        """Create the topic if it does not exist, compacted and with one partition.

        Raises:
            BadSchemasTopic: it exists with more partitions, or would lose records by age.
            KafkaError: it cannot be created.
        """
        topic = self._partition.topic
        brokers = len(self._cluster.retry(lambda: self._cluster.metadata(topics=[])).brokers)
        wanted = replicated(topic, 1, brokers, _SETTINGS)
        self._cluster.retry(lambda: create_if_absent(self._cluster, wanted))
        found = result(describe_topics(self._cluster, [topic])[topic])
        if len(found.partitions) != 1:
            raise BadSchemasTopic(f"topic {topic} has {len(found.partitions)} partitions, and a registry needs one")
        resource = ConfigResource(ResourceType.TOPIC, topic)
        policy = {each.name: each.value for each in result(describe_configs(self._cluster, [resource])[resource])}
        if policy.get(_CLEANUP) != "compact":
            raise BadSchemasTopic(
                f"topic {topic} has cleanup.policy={policy.get(_CLEANUP)}, and a registry would lose schemas: "
                f"barnabas topic alter {topic} --set cleanup.policy=compact"
            )

    def topic_id(self) -> Uuid:
        """Return the id of the topic, which a topic of the same name that is made later does not have.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION if it does not exist, or no broker answers.
        """
        topic = self._partition.topic
        return result(describe_topics(self._cluster, [topic])[topic]).topic_id

    def bounds(self) -> tuple[int, int]:
        """Return the offsets of the first record and behind the last one.

        Raises:
            KafkaError: no leader answers.
        """
        first, end = (self._offset(position) for position in (EARLIEST, LATEST))
        return first, end

    def end(self) -> int:
        """Return the offset behind the last record; errors as in `bounds`."""
        return self._offset(LATEST)

    def _offset(self, position: int) -> int:
        return result(list_offsets(self._cluster, {self._partition: position})[self._partition]).offset

    def poll(self, offset: int, max_wait_ms: int) -> tuple[list[StoredRecord], int]:
        """Return the records from an offset on, and the offset behind them; wait for the first one.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE if the topic was made again, or no leader answers.
        """
        connection = self._cluster.connection(result(self._cluster.leaders([self._partition])[self._partition]))
        fetched = result(
            fetch_once(connection, self._partition, offset, max_bytes=_FETCH_BYTES, max_wait_ms=max_wait_ms)
        )
        found: list[StoredRecord] = []
        for position, header in iter_batches(fetched):
            for record in () if header.is_control else check_records(fetched, position):
                if record.offset >= offset and record.key is not None:
                    found.append((bytes(record.key), None if record.value is None else bytes(record.value)))
            offset = max(offset, header.next_offset)
        return found, offset

    def forget(self) -> None:
        """Look for the leader again, at the next question."""
        self._cluster.forget()

    def claim(self, max_id: int, name: str) -> int:
        """Take the claim; return the offset of its record.

        Args:
            max_id: the largest id that this registry knows.
            name: of this registry.

        Raises:
            ClaimLost: another registry has taken it meanwhile.
            KafkaError: no coordinator or leader answers, or the registry may not.
        """
        self._identity = None
        timeout_ms = self._cluster.timeout_ms
        self._identity = init_producer_id(self._cluster, self._claim_id, _TRANSACTION_TIMEOUT_MS, timeout_ms=timeout_ms)
        self._sequence = 0
        return self.append([noop_record(max_id, name)])

    def append(self, records: Sequence[StoredRecord]) -> int:
        """Append records as one batch, and return the last one's offset when all replicas in sync have them.

        Raises:
            ClaimLost: another registry has taken the claim; nothing is appended.
            KafkaError: it is not known whether they are appended; the claim is given up, so a later claim finds out.
        """
        assert self._identity is not None, "claim() comes first"
        now_ms = self._now_ms()
        batch = build_batch(
            [(now_ms, key, value, ()) for key, value in records],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=self._sequence,
        )
        try:
            base_offset = insist(
                self._cluster, lambda: self._append_once(batch, len(records)), self._cluster.timeout_ms
            )
        except KafkaError as error:
            self._identity = None
            if error.code in _LOST:
                raise ClaimLost from None
            raise
        self._sequence = (self._sequence + len(records)) & SEQUENCE_MASK
        return base_offset + len(records) - 1

    def _append_once(self, batch: bytearray, count: int) -> int:
        connection = self._cluster.connection(result(self._cluster.leaders([self._partition])[self._partition]))
        request = produce_request([(self._partition, batch)], timeout_ms=self._cluster.timeout_ms)
        response = connection.request(request, highest=_HIGHEST_WITH_NAMES)
        (answer,) = response.responses[0].partition_responses
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The leader has the batch, and no longer knows where. No other registry has written since, or the epoch would be rejected.
            return self.end() - count
        if error := outcome_of(answer.error_code, answer.error_message):
            raise error
        return int(answer.base_offset)
