"""Fetch sessions: a consumer that follows many partitions names only what changed (KIP-227). Data plane.

    session id  epoch   meaning
    0 or any    -1      no session; one named is closed
    0 or any     0      open one (one named is closed first) and answer all partitions
    n            k      the k-th incremental request of session n: partitions named are added or altered, those forgotten are
                        dropped, all others stay; the answer holds only partitions with records, an error, or a moved high
                        watermark or log start

- Epochs go 1, 2, … 2^31 - 1, 1. Another epoch than the expected one is INVALID_FETCH_SESSION_EPOCH, an id that is not in the
  cache FETCH_SESSION_ID_NOT_FOUND; both make the client open a new session.
- A session speaks in topic names (before version 13) or in topic ids, never both: FETCH_SESSION_TOPIC_ID_ERROR.
- Only partitions that are `ready` are read: new ones, those named by the request, those last answered with records or an error, and
  those to which something happened since (the replica tells its observers). An idle one costs nothing, so a fetch costs as much
  as there is news, not as much as there are partitions. One thing is told late: a log start that retention moves is noticed
  with the partition's next news.
- A partition that was answered with records moves to the end of the ready ones, so that under a byte limit the others come first.
- The cache has a fixed number of slots. A full cache gives a new session the slot of the one least recently used if that was
  idle for two minutes, else that of the smallest session older than two minutes if the new one has more partitions or belongs
  to a follower and that one does not; else there is no session and the answer's session id is 0.

Source: Kafka's `FetchSession.scala` (FetchSessionCache, FetchContext and its four kinds, CachedPartition).
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.replication.fetch_reader import FetchPartition, FetchRead
from barnabas.replication.partition import Partition

__all__ = ["FetchContext", "FetchSession", "FetchSessionCache"]

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
SESSION_ID_MAX = 2**31 - 1
EVICTION_MS = 120_000


def next_epoch(epoch: int) -> int:
    """The epoch of the request after `epoch`."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == SESSION_ID_MAX else epoch + 1


def session_key(wanted: FetchPartition) -> Hashable:
    """What identifies a partition within its session."""
    return (wanted.topic if wanted.topic_id == ZERO_UUID else wanted.topic_id, wanted.index)


class FetchSession:
    """One consumer's partitions.

    Attributes:
        epoch: the epoch the next request must carry.
        ready: the partitions that the next request must look at, in order.
        cached_size: number of partitions when last used, which decides evictions.
    """

    __slots__ = (
        "cached_size",
        "created_ms",
        "epoch",
        "is_privileged",
        "last_used_ms",
        "partitions",
        "ready",
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

    def __repr__(self) -> str:
        return f"<FetchSession {self.session_id} epoch={self.epoch} partitions={len(self.partitions)}>"

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[Hashable]) -> None:
        """Add, alter and drop partitions as an incremental request says."""
        partitions = self.partitions
        for new in wanted:
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
            gone = partitions.pop(key, None)
            if gone is not None:
                self._unfollow(gone)

    def follow(self, wanted: FetchPartition, partition: Partition) -> None:
        """Be told what happens to a replica."""
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
        """The session has lost its slot: no replica may remember it."""
        for wanted in self.partitions.values():
            self._unfollow(wanted)

    def note_sent(self, wanted: FetchPartition, data: FetchResponse.PartitionData, has_records: bool) -> None:
        """Remember what the client knows now, and let the others go first after a turn with records."""
        # After an error the partition is mentioned again as soon as it is well, whatever its offsets.
        failed = data.error_code or data.diverging_epoch.epoch >= 0
        wanted.sent_high_watermark = -1 if failed else data.high_watermark
        wanted.sent_log_start_offset = data.log_start_offset
        if has_records and wanted.session is self:
            self.ready.pop(wanted, None)
            self.ready[wanted] = None


class FetchContext:
    """How one request is answered: which partitions are read, and what becomes of the results.

    Attributes:
        partitions: what to read, in order.
        session: the session that an incremental request continues; partitions without news are left out then.
        error: NONE, or why nothing can be read; `respond` then ignores what it is given.
    """

    __slots__ = ("_cache", "_opens", "error", "partitions", "session")

    def __init__(
        self,
        cache: FetchSessionCache,
        partitions: Collection[FetchPartition] = (),
        *,
        session: FetchSession | None = None,
        opens: Callable[[int], FetchSession | None] | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partitions = partitions
        self.error = error
        self._cache = cache
        self.session = session
        self._opens = opens

    def respond(self, read: FetchRead | None, request_epoch: int) -> FetchResponse:
        """Make the response and move the session on.

        Args:
            request_epoch: the session epoch of the request.
        """
        if self.error is not ErrorCode.NONE:
            return FetchResponse(error_code=self.error)
        assert read is not None
        session = self.session
        is_incremental = session is not None
        if session is not None:
            # Another request of this session may have come on another connection while this one waited.
            if session.epoch != next_epoch(request_epoch):
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        elif self._opens is not None:
            session = self._opens(len(self.partitions))
            if session is not None:
                session.update(self.partitions, ())
                session.cached_size = len(session.partitions)
        if session is not None:
            for wanted, data in read.results:
                records = data.records
                has_records = records is not None and not isinstance(records, bytes)
                session.note_sent(wanted, data, has_records and is_incremental)
        return FetchResponse(
            session_id=INVALID_SESSION_ID if session is None else session.session_id, responses=grouped(read)
        )

    def respond_empty(self, request_epoch: int) -> FetchResponse:
        """Make a response without partitions, for a client over its quota; what was read stays to be sent.

        Args:
            request_epoch: as in `respond`.
        """
        session = self.session
        if session is None:
            return FetchResponse(error_code=self.error)
        if session.epoch != next_epoch(request_epoch):
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        return FetchResponse(session_id=session.session_id)


def grouped(read: FetchRead) -> list[FetchResponse.FetchableTopicResponse]:
    """The results in their order, neighbours of one topic under one heading."""
    topics: list[FetchResponse.FetchableTopicResponse] = []
    heading: tuple[str | None, bytes] | None = None
    for wanted, data in read.results:
        here = (wanted.topic, wanted.topic_id)
        if here != heading:
            heading = here
            topics.append(
                FetchResponse.FetchableTopicResponse(
                    topic=wanted.topic or "", topic_id=wanted.topic_id, partitions=[data]
                )
            )
        else:
            topics[-1].partitions.append(data)
    return topics


class FetchSessionCache:
    """The sessions of one broker.

    Args:
        slots: max.incremental.fetch.session.cache.slots.
        random: where session ids come from.
    """

    def __init__(self, slots: int, random: random.Random) -> None:
        self._slots = slots
        self._random = random
        # Least recently used first.
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def __repr__(self) -> str:
        return f"<FetchSessionCache {len(self._sessions)}/{self._slots}>"

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def context(
        self,
        session_id: int,
        epoch: int,
        wanted: Collection[FetchPartition],
        forgotten: Iterable[Hashable],
        *,
        uses_topic_ids: bool,
        is_follower: bool,
        now_ms: int,
    ) -> FetchContext:
        """Decide how a request is answered; an incremental one has altered its session when this returns."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != INVALID_SESSION_ID:
                self._close(session_id)
            if epoch == FINAL_EPOCH:
                return FetchContext(self, wanted)
            return FetchContext(self, wanted, opens=lambda size: self._open(size, is_follower, uses_topic_ids, now_ms))
        session = self._sessions.get(session_id)
        if session is None:
            return FetchContext(self, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext(self, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext(self, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(wanted, forgotten)
        if not session.partitions:
            self._close(session_id)
            return FetchContext(self)
        session.epoch = next_epoch(epoch)
        session.last_used_ms = now_ms
        session.cached_size = len(session.partitions)
        self._sessions.move_to_end(session_id)
        return FetchContext(self, session.partitions.values(), session=session)

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _open(self, size: int, is_privileged: bool, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """Make a session for `size` partitions, or None when there is no slot for it."""
        if len(self._sessions) >= self._slots and not self._evict(size, is_privileged, now_ms):
            return None
        session_id = self._random.randint(1, SESSION_ID_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, SESSION_ID_MAX)
        session = FetchSession(session_id, is_privileged, uses_topic_ids, now_ms)
        session.cached_size = size
        self._sessions[session_id] = session
        return session

    def _evict(self, size: int, is_privileged: bool, now_ms: int) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            self._close(oldest.session_id)
            return True
        candidates = [
            (session.is_privileged, session.cached_size, session.session_id)
            for session in self._sessions.values()
            if now_ms - session.created_ms > EVICTION_MS or (is_privileged and not session.is_privileged)
        ]
        if not candidates:
            return False
        smallest = min(candidates)
        if smallest >= (is_privileged, size, 0):
            return False
        self._close(smallest[2])
        return True
