"""Dead letters of share groups: records that were rejected, or delivered too often, are written to another topic (KIP-1191).

    __dlq.errors.topic, .partition, .offset      where the record was
    __dlq.errors.group, .delivery.count          the group, and how often the record was delivered
    __dlq.errors.message                         the reason

- A group names its topic (errors.deadletterqueue.topic.name). The topic must allow letters (errors.deadletterqueue.group.enable), its
  name must start with errors.deadletterqueue.topic.name.prefix, and share.version must be 2. A missing topic is created if
  errors.deadletterqueue.auto.create.topics.enable is true.
- A letter is written to the partition of the record's own index, modulo the partitions of the topic. It has headers, and with
  errors.deadletterqueue.copy.record.enable also the record's key and value if they can be read and are small enough.
- A letter that cannot be written is logged and given up; the group continues.
- Letters are written at least once: after a crash between the letter and the archived state the letter is written again.
- The leader of the letter's partition may be another broker (`remote_letters`).

Sources: KIP-1191; Kafka's `ShareGroupDLQStateManager`, `ShareGroupDLQRecordFetcher`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.coordinator.coordinator_log import size_of
from barnabas.log.large_batch import is_large
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsResponse
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import BATCH_OVERHEAD, iter_batches
from barnabas.replication.awaited_commit import AwaitedCommit
from barnabas.replication.partition import ACKS_ALL, Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.share.settings import GroupSettings
from barnabas.steps import sleep
from barnabas.turns import next_turn

if TYPE_CHECKING:
    from barnabas.metadata.topics_image import TopicImage
    from barnabas.share.remote_letters import RemoteLetters

__all__ = ["REJECTED", "TOO_OFTEN", "ClusterSettings", "DeadLetterWriter"]

logger = logging.getLogger(__name__)

REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."

ATTEMPTS = 5
FIRST_BACKOFF_MS = 1_000
MAX_BACKOFF_MS = 30_000
COMMIT_TIMEOUT_MS = 30_000
FETCH_BYTES = 1 << 20

_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED)

KeyAndValue = tuple[bytes | None, bytes | None]


class ClusterSettings(Protocol):
    """The settings of the cluster that decide whether dead letters are written, as of now."""

    def allows_dead_letters(self) -> bool:
        """Return whether share.version is 2 or more."""
        ...

    def auto_creates(self) -> bool:
        """Return errors.deadletterqueue.auto.create.topics.enable."""
        ...

    def prefix(self) -> str:
        """Return errors.deadletterqueue.topic.name.prefix."""
        ...

    def is_enabled_on(self, topic: str) -> bool:
        """Return the topic's errors.deadletterqueue.group.enable."""
        ...

    def create(self, topic: str) -> Awaitable[CreateTopicsResponse]:
        """Create the topic; raises KafkaError."""
        ...


class DeadLetterWriter:
    """Writes dead letters; one for a broker.

    Args:
        remote: appends to partitions that other brokers lead; None without other brokers.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        groups: GroupSettings,
        cluster: ClusterSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        remote: RemoteLetters | None = None,
    ) -> None:
        self.replicas = replicas
        self.remote = remote
        self.groups = groups
        self.cluster = cluster
        self.loop = loop
        self.now_ms = now_ms

    def __repr__(self) -> str:
        return "<DeadLetterWriter>"

    def image_of(self, topic: str) -> TopicImage | None:
        """Return a topic by name, None if it does not exist."""
        image = self.replicas.image
        return None if image is None else image.topics.by_name.get(topic)

    def topic_of(self, group_id: str) -> str:
        """Return the group's topic; empty if it names none."""
        return str(self.groups.value(group_id, "errors.deadletterqueue.topic.name") or "")

    def is_enabled(self, group_id: str) -> bool:
        """Return whether the group names a topic and the cluster allows it."""
        return bool(self.topic_of(group_id)) and self.cluster.allows_dead_letters()

    async def write(
        self, group_id: str, source: Partition, first: int, last: int, delivery_count: int, *, rejected: bool
    ) -> None:
        """Write letters for a range of offsets if possible; never raises."""
        letters = _Letters(self, group_id, source, first, last, delivery_count, REJECTED if rejected else TOO_OFTEN)
        try:
            await letters.write()
        except KafkaError as error:
            logger.error("%r are not written: %s", letters, error.message)
        except Exception:
            logger.exception("%r are not written", letters)


class _Letters:
    """The letters of one range that are still to be written."""

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
        self._writer = writer
        self._group_id = group_id
        self._source = source
        self._next = first
        self._last = last
        self._delivery_count = delivery_count
        self._message = message

    def __repr__(self) -> str:
        source = self._source
        return f"<dead letters of {self._group_id}: {source.topic.name}-{source.index} {self._next}..{self._last}>"

    async def write(self) -> None:
        """Write all letters, batch by batch; retry while the topic has no leader here.

        Raises:
            KafkaError: the letters from `_next` on cannot be written.
        """
        attempts = 0
        while self._next <= self._last:
            try:
                topic = self._topic()
                if self._writer.image_of(topic) is None:
                    await self._create(topic)
                    continue
                await self._append(topic)
            except KafkaError as error:
                attempts += 1
                if error.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER or attempts == ATTEMPTS:
                    raise
                await sleep(min(FIRST_BACKOFF_MS << (attempts - 1), MAX_BACKOFF_MS) / 1000, self._writer.loop)
            else:
                attempts = 0
                await next_turn()  # A long range must not hold the loop.

    def _topic(self) -> str:
        """Return the group's topic.

        Raises:
            KafkaError: INVALID_CONFIG if letters may not be written to it.
        """
        cluster = self._writer.cluster
        topic = self._writer.topic_of(self._group_id)
        if not topic:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "the group no longer names a dead letter topic")
        if topic.startswith("__"):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"the name of a dead letter topic must not start with __: {topic}"
            )
        exists = self._writer.image_of(topic) is not None
        if exists and not cluster.is_enabled_on(topic):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"{topic} does not allow dead letters (errors.deadletterqueue.group.enable)"
            )
        if not exists and not cluster.auto_creates():
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{topic} does not exist and may not be created automatically")
        if not topic.startswith(cluster.prefix()):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"the name of {topic} does not start with {cluster.prefix()}")
        return topic

    async def _create(self, topic: str) -> None:
        created = await self._writer.cluster.create(topic)
        code = created.topics[0].error_code
        if code not in _CREATED:
            raise KafkaError(ErrorCode(code), f"{topic} cannot be created")
        if self._writer.image_of(topic) is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic} is not in the metadata yet")

    async def _append(self, topic: str) -> None:
        writer = self._writer
        image = writer.image_of(topic)
        if image is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic} was deleted")
        index = self._source.index % max(1, len(image.partitions))
        batch, last = await self._batch(writer.replicas.config_of(topic).max_message_bytes)
        hosted = writer.replicas.topics.get(topic)
        partition = None if hosted is None else hosted.partitions.get(index)
        if writer.remote is not None and (partition is None or not partition.is_leader):
            await writer.remote.append(topic, image.topic_id, index, batch)
        else:
            await self._append_here(writer.replicas.partition(topic, index), batch)
        self._next = last + 1

    async def _append_here(self, partition: Partition, batch: bytearray) -> None:
        replicas = self._writer.replicas
        info = replicas.append_to(partition, memoryview(batch), ACKS_ALL)
        commit = AwaitedCommit(partition, info.last_offset + 1)
        await replicas.await_commits([commit], COMMIT_TIMEOUT_MS)
        assert commit.error_code is not None
        if commit.error_code is not ErrorCode.NONE:
            raise KafkaError(commit.error_code)

    async def _batch(self, max_bytes: int) -> tuple[bytearray, int]:
        """Return a batch of as many letters as the topic takes, at least one, and the offset of the last."""
        copies = bool(self._writer.groups.value(self._group_id, "errors.deadletterqueue.copy.record.enable"))
        originals, known_to = await self._originals(max_bytes) if copies else ({}, self._last)
        now_ms = self._writer.now_ms()
        letters: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = []
        size = BATCH_OVERHEAD
        for offset in range(self._next, max(self._next, min(self._last, known_to)) + 1):
            key, value = originals.get(offset, (None, None))
            headers = self._headers(offset)
            letter = (now_ms, key, value, headers)
            size += size_of(letter)
            size += sum(len(name) + len(text or b"") + 4 for name, text in headers)
            if letters and size > max_bytes:
                break
            letters.append(letter)
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

    async def _originals(self, max_bytes: int) -> tuple[dict[int, KeyAndValue], int]:
        """Return keys and values from the next offset on, up to about `max_bytes`, and the offset up to which they are known.

        A record that is larger, or can no longer be read, is left out: its letter has only headers.
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
                    batch = chunk[position : position + header.size]
                    if is_large(header):
                        records = await self._writer.loop.run_in_executor(None, _small_records, batch, max_bytes)
                    else:
                        records = _small_records(batch, max_bytes)
                    for key, value, at in records:
                        if not offset <= at <= self._last:
                            continue
                        length = size_of((0, key, value, ()))
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
            logger.warning("%r: cannot read the records: %s", self, error.message)
        return found, self._last


def _small_records(batch: memoryview, max_bytes: int) -> list[tuple[bytes | None, bytes | None, int]]:
    """Return key, value and offset of a batch's records; nothing for a batch that is too large when decompressed."""
    try:
        return [
            (record.key, record.value, record.offset)
            for record in iter_records(batch, max_bytes=max(max_bytes, len(batch)))
        ]
    except KafkaError as error:
        logger.info("Cannot copy a batch into dead letters: %s", error.message)
        return []
