"""The consumer of the source: committed records of many partitions, from the positions of their copies, without a group.

It resets no position by itself: an offset that the source has deleted is an error that the mirror explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from barnabas.mirror.notes import Where
from barnabas.retries.committed_records import READER_SETTINGS, record_of
from barnabas.retries.record import Record

SOURCE_SETTINGS: dict[str, Any] = {
    **READER_SETTINGS,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 100,
    # All that a mirror holds in memory is one transaction, and these.
    "queued.max.messages.kbytes": 32_768,
    "topic.metadata.refresh.interval.ms": 10_000,
}
"""The settings of the source's consumer; it also needs a `group.id`, but joins no group."""
BATCH_RECORDS = 2000
_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


@dataclass
class Arrived:
    """Records and positions that one look at the source found.

    Attributes:
        records: those of a partition in their order.
        ends: a partition has no committed record between its last one and this offset.
        lost: partitions whose position the source does not have.
        unknown: whether a topic or partition is not known, or no longer.
    """

    records: list[Record] = field(default_factory=list)
    ends: dict[Where, int] = field(default_factory=dict)
    lost: list[Where] = field(default_factory=list)
    unknown: bool = False


class SourceRecords:
    """Reads partitions.

    Args:
        consumer: with `SOURCE_SETTINGS`.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def __repr__(self) -> str:
        return "<SourceRecords>"

    def read_from(self, positions: Mapping[Where, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        self._consumer.assign([TopicPartition(*where, offset) for where, offset in positions.items()])

    def look(self, seconds: float) -> Arrived:
        """Return what arrives within this time.

        Raises:
            KafkaException: a partition cannot be read.
        """
        found = Arrived()
        for message in self._consumer.consume(BATCH_RECORDS, seconds):
            error = message.error()
            if error is None:
                found.records.append(record_of(message))
            else:
                self._note(found, message, error)
        return found

    def _note(self, found: Arrived, message: Message, error: KafkaError) -> None:
        where = (str(message.topic()), int(message.partition() or 0))
        if error.code() == KafkaError._PARTITION_EOF:
            found.ends[where] = int(message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            found.lost.append(where)
        elif error.code() in _GONE:
            found.unknown = True
        elif error.fatal() or not (error.retriable() or error.code() < 0):
            raise KafkaException(error)

    def log_end(self, where: Where) -> int | None:
        """Return where a partition's committed records end, as the last fetch said; None before the first one."""
        known: Any = self._consumer.get_watermark_offsets(TopicPartition(*where), cached=True)
        return None if known is None or known[1] == OFFSET_INVALID or known[1] < 0 else int(known[1])
