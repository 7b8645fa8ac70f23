"""The sink's decisions, in the compacted topic `__barnabas_sink`: which batch of a query is the last one written.

    key    the sink's name: transactionalIdPrefix and query id
    value  {"version": 2, "query": …, "batch": 17, "run": …, "rows": 60000, "digest": …, "topic": "orders",
            "two_phase": true,
            "transactions": [["orders-…-0", 4711, 3], …]}          transactional id, producer id, epoch

Version 1 has no digest, topic and two_phase: a batch that is repeated after an upgrade is not compared.

A decision is final once its record is committed: a driver that finds it commits these transactions and no others.

Drivers take turns by the transactional id that is the sink's name. `claim` bumps its epoch, which fences every driver
that claimed before, and returns when their decisions are complete or aborted. A record is written in a transaction of
that epoch. So between `claim` and a successful `write` no other driver has decided anything.

`read` does not use the last stable offset: another query's open transaction would hide records before it. It reads to
the high watermark and drops what a marker aborts. After `claim` each transaction of this sink has its marker.

Source: the coordinator of Flink's sink, and Delta's `txnAppId` with `txnVersion`, keep the same pair of facts.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import results
from barnabas.client.partition_records import fetch_records
from barnabas.client.patience import insist
from barnabas.client.producer import EncodedRecords, Producer
from barnabas.client.producer_transactions import Transaction, end_transactions
from barnabas.client.topics import create_if_absent, replicated
from barnabas.records.builder import encode_record
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches

TOPIC = "__barnabas_sink"
_PARTITION = TopicPartition(TOPIC, 0)
_TOPIC_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "4194304", "min.cleanable.dirty.ratio": "0.1"}
# The driver's transactions hold one record.
_TRANSACTION_TIMEOUT_MS = 60_000
# The sink's last record is nearly always among the last of the topic.
_LOOK_BACK = (100, 5_000)
_VERSION = 2


@dataclass(frozen=True, slots=True)
class Decision:
    """The last batch of a query that is written, and its transactions.

    Attributes:
        digest: of the rows (`digest`); None in version 1, which does not say what the batch was.
        topic: the option, None if the column `topic` says where each row goes.
        two_phase: whether none of the transactions has a timeout.
    """

    query: str
    batch: int
    run: str
    rows: int
    transactions: tuple[Transaction, ...]
    digest: int | None = None
    topic: str | None = None
    two_phase: bool = False

    def to_json(self) -> bytes:
        """Return the record's value."""
        fields = {
            "version": _VERSION,
            "query": self.query,
            "batch": self.batch,
            "run": self.run,
            "rows": self.rows,
            "digest": self.digest,
            "topic": self.topic,
            "two_phase": self.two_phase,
            "transactions": self.transactions,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Decision:
        """Read a record's value.

        Raises:
            ValueError: a newer release wrote it.
        """
        fields = json.loads(value)
        if fields["version"] > _VERSION:
            raise ValueError(
                f"{TOPIC} has a record of version {fields['version']}, which this release cannot read: upgrade barnabas"
            )
        transactions = tuple(Transaction(*each) for each in fields["transactions"])
        return cls(
            fields["query"],
            fields["batch"],
            fields["run"],
            fields["rows"],
            transactions,
            fields.get("digest"),
            fields.get("topic"),
            fields.get("two_phase", False),
        )


class DecisionLog:
    """One sink's record in the topic.

    Args:
        name: the sink's name.
        timeout_ms: each call repeats its requests so long.
    """

    def __init__(self, cluster: Cluster, name: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._name = name
        self._timeout_ms = timeout_ms
        self._producer = Producer(
            cluster,
            transactional_id=name,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            delivery_timeout_ms=timeout_ms,
        )

    def __repr__(self) -> str:
        return f"<DecisionLog name={self._name}>"

    def claim(self) -> None:
        """Fence every other driver of this sink; create the topic if there is none.

        Raises:
            KafkaError: no coordinator answers, or the topic cannot be created.
        """

        def create() -> None:
            create_if_absent(
                self._cluster, replicated(TOPIC, 1, len(self._cluster.metadata([]).brokers), _TOPIC_SETTINGS)
            )

        insist(self._cluster, create, self._timeout_ms)
        self._producer.begin()

    def read(self) -> Decision | None:
        """Return the last committed decision, None if there is none; only after `claim`.

        Raises:
            KafkaError: the partition cannot be read.
            ValueError: a newer release wrote the record.
        """
        first, end = (self._offset(position) for position in (EARLIEST, LATEST))
        for look_back in (*_LOOK_BACK, end):
            begin = max(first, end - look_back)
            value = self._last_value(begin, end)
            if value is not None:
                return Decision.from_json(value)
            if begin == first:
                break
        return None

    def write(self, decision: Decision) -> None:
        """Make a decision durable. After an exception it may have been made: `claim` and `read` tell.

        Raises:
            KafkaError: PRODUCER_FENCED or INVALID_PRODUCER_EPOCH if another driver has claimed since.
        """
        body = encode_record(0, 0, self._name.encode(), decision.to_json())
        timestamp = time.time_ns() // 1_000_000
        self._producer.send(_PARTITION, EncodedRecords(body, 1, timestamp, timestamp))
        self._producer.flush()
        transaction = self._producer.transaction
        error = end_transactions(self._cluster, [transaction], commit=True, timeout_ms=self._timeout_ms)[transaction]
        if error is not None:
            raise error

    def _offset(self, position: int) -> int:
        found = insist(
            self._cluster, lambda: results(list_offsets(self._cluster, {_PARTITION: position})), self._timeout_ms
        )
        return found[_PARTITION].offset

    def _last_value(self, begin: int, end: int) -> bytes | None:
        key = self._name.encode()
        found: list[tuple[int, bytes | None]] = []
        offset = begin
        while offset < end:
            records = self._fetch(offset)
            for position, header in iter_batches(records):
                offset = max(offset, header.next_offset)
                for record in iter_records(records, position, header=header):
                    if header.is_control:
                        if control_type(record.key) is ControlRecordType.ABORT:
                            found = _without_open(found, header.producer_id)
                        else:
                            found = [
                                (-1, v) if producer == header.producer_id else (producer, v) for producer, v in found
                            ]
                    elif record.key == key:
                        found.append((header.producer_id, record.value))
        return found[-1][1] if found else None

    def _fetch(self, offset: int) -> memoryview:
        return insist(self._cluster, lambda: fetch_records(self._cluster, _PARTITION, offset), self._timeout_ms)


def _without_open(found: list[tuple[int, bytes | None]], producer_id: int) -> list[tuple[int, bytes | None]]:
    """Drop the records of a producer's transaction; -1 marks those whose transaction is committed."""
    return [(producer, value) for producer, value in found if producer != producer_id]
