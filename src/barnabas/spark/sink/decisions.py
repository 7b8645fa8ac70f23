"""The sink's decisions, in the compacted topic `__barnabas_sink`: which batch of a query is the last one written.

    key    the sink's name: transactionalIdPrefix and query id
    value  {"version": 2, "query": …, "batch": 17, "run": …, "rows": 60000, "digest": …, "topic": "orders",
            "two_phase": true,
            "transactions": [["orders/…/0", 4711, 3], …],          transactional id, producer id, epoch
            "aborted": []}

Version 1 has only query, batch, run, rows and transactions. The rows of a batch are not compared with it.

A decision is final once its record is committed: a driver that finds it commits these transactions and no others.

Drivers take turns by the transactional id that is the sink's name. `claim` bumps its epoch, which fences every driver
that claimed before, and returns when their decisions are complete or aborted. Then it begins a transaction with a claim
record, and `write` puts the decision into the same one. So between `claim` and a successful `write` no other driver has
decided anything.

`read` reads up to the claim record. A leader that was deposed and does not know it answers a fetch, but it cannot hold
that record: all replicas in sync have acknowledged it. A read that does not find the claim is repeated.

`read` does not use the last stable offset: another query's open transaction would hide records before it. It reads to
the high watermark and drops what a marker aborts.

When all transactions of a decision are committed, `note_done` says so in a record of its own (`decision_scan` lists the
keys). From then on no driver asks their coordinators, which forget idle ids after `transactional.id.expiration.ms`.

Source: the coordinator of Flink's sink, and Delta's `txnAppId` with `txnVersion`, keep the same pair of facts.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.client.cluster import Cluster
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import results
from barnabas.client.partition_records import append_batch, fetch_records
from barnabas.client.patience import insist
from barnabas.client.producer import EncodedRecords, Producer
from barnabas.client.producer_transactions import Transaction, end_transactions
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.records.builder import build_batch, encode_record
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decision_scan import TOKEN, DecisionScan, claim_key, done_key
from barnabas.spark.sink.decision_topic import LOOK_BACK, PARTITION, TOPIC, create_decision_topic

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# The driver's transactions hold a claim and at most one decision.
_TRANSACTION_TIMEOUT_MS = 60_000
_VERSION = 2
NO_BATCH = -1


def new_token() -> bytes:
    """Return what tells a claim from all others."""
    return secrets.token_bytes(16)


@dataclass(frozen=True, slots=True)
class Decision:
    """The last batch of a query that is written, and its transactions.

    Attributes:
        digest: of the rows (`digest`); None in version 1, which does not say what the batch was.
        topic: the option, None if the column `topic` says where each row goes.
        two_phase: whether none of the transactions has a timeout.
        aborted: transactions that the writer of the record aborts after it: no later decision may have them.
        is_done: whether all of them are known to be committed, by another record.
    """

    query: str
    batch: int
    run: str
    rows: int
    transactions: tuple[Transaction, ...]
    digest: int | None = None
    topic: str | None = None
    two_phase: bool = False
    aborted: tuple[Transaction, ...] = ()
    is_done: bool = False

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
            "aborted": self.aborted,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def nothing(cls, query: str) -> Decision:
        """Return what stands for no decision, in a record that only says what is aborted."""
        return cls(query, NO_BATCH, "", 0, ())

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
            tuple(Transaction(*each) for each in fields.get("aborted", ())),
        )


class DecisionLog:
    """One sink's records in the topic.

    Args:
        name: the sink's name.
        timeout_ms: each call repeats its requests so long.
        new_token: returns bytes that no other claim has.
    """

    def __init__(
        self, cluster: Cluster, name: str, timeout_ms: int, *, new_token: Callable[[], bytes] = new_token
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._timeout_ms = timeout_ms
        self._token = new_token()
        self._is_claimed = False
        self._producer = Producer(
            cluster,
            transactional_id=name,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            delivery_timeout_ms=timeout_ms,
        )

    def __repr__(self) -> str:
        return f"<DecisionLog name={self._name} is_claimed={self._is_claimed}>"

    def claim(self) -> None:
        """Fence every other driver of this sink; create the topic if there is none.

        Raises:
            KafkaError: no coordinator or leader answers, the topic cannot be created, or another driver has claimed since.
        """
        create_decision_topic(self._cluster, self._timeout_ms)
        self._producer.begin()
        self._append(encode_record(0, 0, claim_key(self._name), None, [(TOKEN, self._token)]))
        self._is_claimed = True

    def read(self) -> Decision | None:
        """Return the last decision before the claim, or None if the sink had decided nothing. Call `claim` first.

        Raises:
            KafkaError: the partition cannot be read, or no broker that answers has the claim.
            ValueError: a newer release wrote the record.
        """
        scan = insist(self._cluster, self._scan, self._timeout_ms)
        if scan.decision is None:
            return None
        found = Decision.from_json(scan.decision)
        return replace(found, is_done=scan.done >= found.batch)

    def write(self, decision: Decision) -> None:
        """Make a decision durable. After an exception it may have been made: `claim` and `read` tell.

        Raises:
            KafkaError: PRODUCER_FENCED or INVALID_PRODUCER_EPOCH if another driver has claimed since.
            QueryError: the batch has too many tasks for the topic's max.message.bytes.
        """
        value = decision.to_json()
        try:
            self._append(encode_record(0, 0, self._name.encode(), value))
        except KafkaError as error:
            if error.code in _TOO_LARGE:
                tasks = len(decision.transactions)
                raise QueryError(
                    f"the decision of batch {decision.batch} has {len(value)} bytes for {tasks} tasks, and the brokers"
                    f" reject it: raise max.message.bytes of {TOPIC}, or write with fewer tasks (coalesce)"
                ) from None
            raise
        self._is_claimed = False
        transaction = self._producer.transaction
        outcomes = end_transactions(self._cluster, [transaction], commit=True, timeout_ms=self._timeout_ms)
        if (failure := outcomes[transaction]) is not None:
            raise failure

    def release(self) -> None:
        """Give up a claim without a decision. If that fails, the broker does it after the transaction's timeout."""
        if self._is_claimed:
            self._is_claimed = False
            with contextlib.suppress(KafkaError):
                self._producer.abort()

    def note_done(self, batch: int) -> None:
        """Record that all transactions of a decided batch are committed.

        Raises:
            KafkaError: the record may not be there; then a driver asks the coordinators again.
        """
        value = json.dumps({"version": _VERSION, "batch": batch}, separators=(",", ":")).encode()
        records = build_batch([(_now_ms(), done_key(self._name), value, ())])
        insist(self._cluster, lambda: append_batch(self._cluster, PARTITION, records), self._timeout_ms)

    def _append(self, record: bytes) -> None:
        timestamp = _now_ms()
        self._producer.send(PARTITION, EncodedRecords(record, 1, timestamp, timestamp))
        self._producer.flush()

    def _scan(self) -> DecisionScan:
        offsets = (results(list_offsets(self._cluster, {PARTITION: each})) for each in (EARLIEST, LATEST))
        first, end = (found[PARTITION].offset for found in offsets)
        for look_back in (*LOOK_BACK, end):
            begin = max(first, end - look_back)
            scan = self._scan_range(begin, end)
            if begin == first or (scan.is_complete and scan.decision is not None):
                break
        if not scan.is_complete:
            raise _not_the_leader()
        return scan

    def _scan_range(self, begin: int, end: int) -> DecisionScan:
        scan = DecisionScan(self._name, self._token)
        offset = begin
        while offset < end and not scan.is_complete:
            try:
                records = fetch_records(self._cluster, PARTITION, offset)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise _not_the_leader() from None
                raise
            offset = scan.add(records, offset)
        return scan


def _not_the_leader() -> KafkaError:
    return error_for(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the broker that leads {TOPIC} lacks records that were acknowledged"
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
