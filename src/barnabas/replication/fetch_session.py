"""One fetch session and its partitions, which its next request reads.

- Only `ready` partitions are read: new ones, those in the request, those with records or an error in the last response, and those that
  have changed since (the replica marks its observers). Idle ones cost nothing: the cost of a fetch is that of the changed partitions. A
  log start that retention moves is not such a change; the response has it with the partition's next one.
- A partition with records moves to the end of the ready ones, so that under a byte limit the others are next.

`fetch_session_cache` has the sessions of a broker, their epochs and their responses.

Source: Kafka's `FetchSession`, `CachedPartition`; KIP-227.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import ZERO_UUID, Uuid
from barnabas.replication.partition import Partition, PartitionObserver
from barnabas.turns import RECORD, pace

__all__ = ["FetchPartition", "FetchSession", "session_key"]


class FetchPartition(PartitionObserver):
    """One partition of a Fetch request, and in a session the offsets of its last response.

    Attributes:
        topic: None if the request has an unknown topic id.
        partition: the replica, looked up at the first read and again after it is deleted.
        session: the session it belongs to, which changes of the replica wake.
        sent_high_watermark, sent_log_start_offset: from the session's last response; -1 puts the partition into the next one.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str | None,
        topic_id: Uuid,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition: Partition | None = None
        self.session: FetchSession | None = None
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    def __repr__(self) -> str:
        name = f"{self.topic or self.topic_id.hex()}-{self.index}"
        return f"<FetchPartition partition={name} fetch_offset={self.fetch_offset}>"

    def note_change(self, *, also_followers: bool) -> FetchSession | None:
        session = self.session
        if session is None:
            return None
        session.ready[self] = None
        return session if also_followers or not session.is_privileged else None


def session_key(wanted: FetchPartition) -> Hashable:
    """Return the key of a partition in its session."""
    return (wanted.topic if wanted.topic_id == ZERO_UUID else wanted.topic_id, wanted.index)


class FetchSession:
    """One consumer's partitions.

    Attributes:
        epoch: of the next request.
        ready: the partitions that the next request reads, in order.
        cached_size: number of partitions at the last use, which decides evictions.
        rights: the version of the access control lists by which its partitions were read.
        is_closed: it has lost its slot, possibly while a request of it waited for a turn.
    """

    __slots__ = (
        "cached_size",
        "created_ms",
        "epoch",
        "is_closed",
        "is_privileged",
        "last_used_ms",
        "partitions",
        "ready",
        "rights",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, is_privileged: bool, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.is_privileged = is_privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        self.partitions: dict[Hashable, FetchPartition] = {}
        self.ready: dict[FetchPartition, None] = {}
        self.cached_size = 0
        self.is_closed = False
        self.rights = -1

    def __repr__(self) -> str:
        return f"<FetchSession id={self.session_id} epoch={self.epoch} partitions={len(self.partitions)}>"

    async def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[Hashable]) -> None:
        """Add, change and drop partitions as an incremental request demands; nothing more once the session is closed."""
        partitions = self.partitions
        for new in wanted:
            await pace(RECORD)
            if self.is_closed:
                return
            key = session_key(new)
            known = partitions.get(key)
            if known is None:
                partitions[key] = new
                new.session = self
                self.ready[new] = None
                if new.partition is not None:
                    self.follow(new, new.partition)
                continue
            self.ready.setdefault(known)
            known.fetch_offset = new.fetch_offset
            known.max_bytes = new.max_bytes
            known.current_leader_epoch = new.current_leader_epoch
            known.last_fetched_epoch = new.last_fetched_epoch
            known.log_start_offset = new.log_start_offset
        for key in forgotten:
            await pace(RECORD)
            gone = partitions.pop(key, None)
            if gone is not None:
                self._unfollow(gone)

    def note_rights(self, version: int) -> None:
        """Read every partition again after a change of the access control lists."""
        if self.rights != version:
            self.rights = version
            for wanted in self.partitions.values():
                self.ready.setdefault(wanted)

    def follow(self, wanted: FetchPartition, partition: Partition) -> None:
        """Observe a replica: its changes make `wanted` ready."""
        if partition.observers is None:
            partition.observers = {}
        partition.observers[wanted] = None

    def _unfollow(self, wanted: FetchPartition) -> None:
        wanted.session = None
        self.ready.pop(wanted, None)
        partition = wanted.partition
        if partition is not None and partition.observers is not None:
            partition.observers.pop(wanted, None)

    def close(self) -> None:
        """Observe no replica any more: the session has lost its slot."""
        self.is_closed = True
        for wanted in self.partitions.values():
            self._unfollow(wanted)

    def note_sent(self, wanted: FetchPartition, data: FetchResponse.PartitionData, has_records: bool) -> None:
        """Remember the offsets in the response; after records move the partition behind the others."""
        # After an error the next response without one must include the partition, whatever its offsets.
        failed = data.error_code or data.diverging_epoch.epoch >= 0
        wanted.sent_high_watermark = -1 if failed else data.high_watermark
        wanted.sent_log_start_offset = data.log_start_offset
        if has_records and wanted.session is self:
            self.ready.pop(wanted, None)
            self.ready[wanted] = None
