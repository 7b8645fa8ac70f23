"""Dead letters of share groups: records that were rejected, or delivered too often, written to another topic (KIP-1191). Data plane.

    __dlq.errors.topic, .partition, .offset      where the record was
    __dlq.errors.group, .delivery.count          whose it was, and how often it was delivered
    __dlq.errors.message                         why

- A group names its topic (errors.deadletterqueue.topic.name). The topic must allow it (errors.deadletterqueue.group.enable), its name
  begin with errors.deadletterqueue.topic.name.prefix, and share.version be 2. A topic that is missing is made if
  errors.deadletterqueue.auto.create.topics.enable says so.
- The record goes to the partition of its own index, modulo the partitions of the topic; with errors.deadletterqueue.copy.record.enable with
  its key and value, if they can be read and are small enough, otherwise with headers alone.
- Whatever happens, the group goes on: a letter that cannot be written is logged and given up.
- Delivery is at least once: after a crash between the letter and the archived state the letter is written again.

Limits: the topic's partition must be led by this broker.

Sources: KIP-1191; Kafka's `ShareGroupDLQStateManager`, `ShareGroupDLQRecordFetcher`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import BATCH_OVERHEAD, iter_batches
from barnabas.replication.delayed_produce import AwaitedCommit
from barnabas.replication.partition import ACKS_ALL, Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.share.settings import GroupSettings

__all__ = ["REJECTED", "TOO_OFTEN", "ClusterSettings", "DeadLetterWriter"]

logger = logging.getLogger(__name__)

REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."

ATTEMPTS = 5
FIRST_BACKOFF_MS = 1_000
MAX_BACKOFF_MS = 30_000
COMMIT_TIMEOUT_MS = 30_000
FETCH_BYTES = 1 << 20
RECORD_OVERHEAD_MAX = 21  # length, attributes, two deltas, two lengths and a header count, at their longest

_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED)

KeyAndValue = tuple[bytes | None, bytes | None]


class ClusterSettings(Protocol):
    """What the cluster allows, as of now."""

    def allows_dead_letters(self) -> bool:
        """share.version is 2 or more."""
        ...

    def auto_creates(self) -> bool:
        """errors.deadletterqueue.auto.create.topics.enable."""
        ...

    def prefix(self) -> str:
        """errors.deadletterqueue.topic.name.prefix."""
        ...

    def is_enabled_on(self, topic: str) -> bool:
        """The topic's errors.deadletterqueue.group.enable."""
        ...

    def create(self, topic: str) -> asyncio.Future[Any]:
        """Make the topic; a CreateTopicsResponse."""
        ...


class DeadLetterWriter:
    """Writes dead letters; one for a broker."""

    def __init__(
        self,
        replicas: ReplicaManager,
        groups: GroupSettings,
        cluster: ClusterSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
    ) -> None:
        self.replicas = replicas
        self.groups = groups
        self.cluster = cluster
        self.loop = loop
        self.now_ms = now_ms

    def __repr__(self) -> str:
        return "<DeadLetterWriter>"

    def topic_of(self, group_id: str) -> str:
        """The group's topic; empty without one."""
        return str(self.groups.value(group_id, "errors.deadletterqueue.topic.name") or "")

    def is_enabled(self, group_id: str) -> bool:
        """Whether the group names a topic and the cluster allows it."""
        return bool(self.topic_of(group_id)) and self.cluster.allows_dead_letters()

    def write(
        self, group_id: str, source: Partition, first: int, last: int, delivery_count: int, *, rejected: bool
    ) -> asyncio.Future[None]:
        """Write letters for a range of offsets; done when all is tried, never fails."""
        letters = _Letters(self, group_id, source, first, last, delivery_count, REJECTED if rejected else TOO_OFTEN)
        letters.go_on()
        return letters.future


class _Letters:
    """The letters of one range, on their way."""

    def __init__(
        self,
        writer: DeadLetterWriter,
        group_id: str,
        source: Partition,
        first: int,
        last: int,
        delivery_count: int,
        message: str,
    ) -> None:
        self.future: asyncio.Future[None] = writer.loop.create_future()
        self._writer = writer
        self._group_id = group_id
        self._source = source
        self._next = first
        self._last = last
        self._delivery_count = delivery_count
        self._message = message
        self._attempts = 0

    def __repr__(self) -> str:
        source = self._source
        return f"<dead letters of {self._group_id}: {source.topic.name}-{source.index} {self._next}..{self._last}>"

    def go_on(self) -> None:
        """Write the next batch, or find that all is written."""
        if self.future.done():
            return
        if self._next > self._last:
            self.future.set_result(None)
            return
        try:
            topic = self._topic()
            if topic not in self._writer.replicas.topics:
                self._create(topic)
            else:
                self._append(topic)
        except KafkaError as error:
            self._failed(error)

    def _topic(self) -> str:
        """The topic, if it may be written to. Raises: KafkaError."""
        cluster = self._writer.cluster
        topic = self._writer.topic_of(self._group_id)
        if not topic:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "the group names no dead letter topic any more")
        if topic.startswith("__"):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"a dead letter topic may not begin with __: {topic}")
        exists = topic in self._writer.replicas.topics
        if exists and not cluster.is_enabled_on(topic):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"{topic} does not allow dead letters (errors.deadletterqueue.group.enable)"
            )
        if not exists and not cluster.auto_creates():
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{topic} does not exist, and may not be made automatically")
        if not topic.startswith(cluster.prefix()):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{topic} does not begin with {cluster.prefix()}")
        return topic

    def _create(self, topic: str) -> None:
        def created(done: asyncio.Future[Any]) -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, KafkaError):
                self._failed(error)
                return
            code = done.result().topics[0].error_code
            if code not in _CREATED:
                self._failed(KafkaError(ErrorCode(code), f"{topic} cannot be made"))
            elif topic in self._writer.replicas.topics:
                self.go_on()
            else:
                self._later(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} is not there yet"))

        self._writer.cluster.create(topic).add_done_callback(created)

    def _append(self, topic: str) -> None:
        replicas = self._writer.replicas
        hosted = replicas.topics[topic]
        partition = replicas.partition(topic, self._source.index % max(1, len(hosted.partitions)))
        batch, last = self._batch(hosted.config.max_message_bytes)
        info = replicas.append_to(partition, memoryview(batch), ACKS_ALL)

        def settled(commits: Sequence[AwaitedCommit]) -> None:
            code = commits[0].error_code
            if code is ErrorCode.NONE:
                self._next = last + 1
                self._attempts = 0
                # Not at once: a long range must not hold the loop.
                self._writer.loop.call_soon(self.go_on)
            else:
                assert code is not None
                self._failed(KafkaError(code))

        replicas.await_commits([AwaitedCommit(partition, info.last_offset + 1)], COMMIT_TIMEOUT_MS, settled)

    def _failed(self, error: KafkaError) -> None:
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._later(error)
        else:
            logger.error("%r are not written: %s", self, error.message)
            if not self.future.done():
                self.future.set_result(None)

    def _later(self, error: KafkaError) -> None:
        self._attempts += 1
        if self._attempts >= ATTEMPTS:
            logger.error("%r are not written after %d attempts: %s", self, ATTEMPTS, error.message)
            if not self.future.done():
                self.future.set_result(None)
            return
        delay_ms = min(FIRST_BACKOFF_MS << (self._attempts - 1), MAX_BACKOFF_MS)
        self._writer.loop.call_later(delay_ms / 1000, self.go_on)

    # -- the batch ---------------------------------------------------------------------------------------------------

    def _batch(self, max_bytes: int) -> tuple[bytearray, int]:
        """As many letters as the topic takes in one batch, one at least, and the offset of the last."""
        copies = bool(self._writer.groups.value(self._group_id, "errors.deadletterqueue.copy.record.enable"))
        originals, known_to = self._originals(max_bytes) if copies else ({}, self._last)
        now_ms = self._writer.now_ms()
        letters: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = []
        size = BATCH_OVERHEAD
        for offset in range(self._next, max(self._next, min(self._last, known_to)) + 1):
            key, value = originals.get(offset, (None, None))
            headers = self._headers(offset)
            size += RECORD_OVERHEAD_MAX + len(key or b"") + len(value or b"")
            size += sum(len(name) + len(text or b"") + 4 for name, text in headers)
            if letters and size > max_bytes:
                break
            letters.append((now_ms, key, value, headers))
        return build_batch(letters), self._next + len(letters) - 1

    def _headers(self, offset: int) -> list[tuple[str, bytes | None]]:
        fields = {
            "topic": self._source.topic.name,
            "partition": self._source.index,
            "offset": offset,
            "group": self._group_id,
            "delivery.count": self._delivery_count,
            "message": self._message,
        }
        return [(f"__dlq.errors.{name}", str(value).encode()) for name, value in fields.items()]

    def _originals(self, max_bytes: int) -> tuple[dict[int, KeyAndValue], int]:
        """Keys and values from the next offset on, up to about `max_bytes`, and the offset up to which they are known.

        A record larger than that, or one that cannot be read any more, is left out: its letter has headers alone.
        """
        found: dict[int, KeyAndValue] = {}
        size = 0
        offset = self._next
        try:
            log = self._source.log
            while offset <= self._last:
                chunk = memoryview(log.read(offset, FETCH_BYTES, max_offset=log.high_watermark, min_one=True).read())
                before = offset
                for position, header in iter_batches(chunk):
                    if header.base_offset > self._last:
                        return found, self._last
                    for key, value, at in _small_records(chunk[position : position + header.size], max_bytes):
                        if not offset <= at <= self._last:
                            continue
                        length = len(key or b"") + len(value or b"") + RECORD_OVERHEAD_MAX
                        if length > max_bytes:
                            continue
                        if size + length > max_bytes:
                            return found, at - 1
                        found[at] = (key, value)
                        size += length
                    offset = max(offset, header.next_offset)
                if offset == before:
                    break
        except KafkaError as error:
            logger.warning("%r: the records cannot be read: %s", self, error.message)
        return found, self._last


def _small_records(batch: memoryview, max_bytes: int) -> list[tuple[bytes | None, bytes | None, int]]:
    """Key, value and offset of a batch's records; none of a batch that is too large when decompressed."""
    try:
        return [
            (record.key, record.value, record.offset)
            for record in iter_records(batch, max_bytes=max(max_bytes, len(batch)))
        ]
    except KafkaError as error:
        logger.info("A batch is left out of dead letters: %s", error.message)
        return []
