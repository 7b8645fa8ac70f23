"""What Spark was told by the sink in one run, and what its topics held in the end. The checks see only this."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.producer_transactions import Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.spark.sink.decisions import Decision
from tests.simulation.history import Partition


class Reported(NamedTuple):
    """A batch whose commit returned without an error.

    Attributes:
        values: its rows, as this driver planned them.
        transactions: those that its tasks left open; the sink may have skipped them.
    """

    driver: str
    sink: str
    batch: int
    values: tuple[str, ...]
    transactions: frozenset[Transaction]


class Failed(NamedTuple):
    """A batch that failed with an error that Spark shows its user.

    Attributes:
        was_alone: whether no other driver of the sink lived meanwhile, and no task of one.
        differs: whether its rows are not those that were planned for this number before.
        is_old: whether its checkpoint had been restored to an older one.
        code: the error code of a KafkaError.
        was_reported: whether a commit of this batch had returned before.
        may_forget: whether brokers forget idle transactional ids, and transactions have timeouts.
    """

    driver: str
    sink: str
    batch: int
    error: str
    was_alone: bool
    differs: bool
    is_old: bool
    code: ErrorCode | None
    was_reported: bool
    may_forget: bool


class Entry(NamedTuple):
    """One record of a partition's log, or a marker, which has an outcome in place of a key and a value."""

    offset: int
    producer_id: int
    epoch: int
    key: bytes | None
    value: bytes | None
    is_commit: bool | None = None


@dataclass
class SinkHistory:
    """Attributes:
    reported, failed: in the order in which it happened.
    wanted: the values of each topic that a reader should find once.
    undecided: values that may be there, or not, because no commit of their batch returned.
    logs: what each partition holds in the end, aborted records too.
    committed: what a reader of committed records finds in each topic.
    decisions: those of each sink, in the order of the log.
    held_back: partitions whose last stable offset stays behind.
    counts: how often each kind of thing happened.
    """

    reported: list[Reported] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    wanted: dict[str, list[str]] = field(default_factory=dict)
    undecided: dict[str, list[str]] = field(default_factory=dict)
    logs: dict[Partition, list[Entry]] = field(default_factory=dict)
    committed: dict[str, Counter[str]] = field(default_factory=dict)
    decisions: dict[str, list[Decision]] = field(default_factory=dict)
    held_back: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
