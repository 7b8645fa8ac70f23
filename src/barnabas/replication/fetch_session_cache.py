"""Fetch sessions: a consumer of many partitions names only the changed ones in a request (KIP-227).

    session id  epoch   meaning
    0 or n      -1      no session; session n is closed
    0 or n       0      close session n, open a new one, and return all partitions
    n            k      the k-th incremental request of session n: the request adds or changes the partitions that it names and
                        drops the forgotten ones; the response has only partitions with records, an error, or a moved high
                        watermark or log start

- Epochs are 1, 2, … 2^31 - 1, 1. An unexpected epoch is INVALID_FETCH_SESSION_EPOCH, an id that is not in the cache
  FETCH_SESSION_ID_NOT_FOUND; after both the client opens a new session.
- A session uses topic names (before version 13) or topic ids, never both: FETCH_SESSION_TOPIC_ID_ERROR.
- The cache has a fixed number of slots. When it is full, a new session replaces the least recently used one if that was idle for two
  minutes, else the smallest one that is older than two minutes and has fewer partitions. A follower's session also replaces a
  consumer's of any age and size. Otherwise there is no new session, and the response has session id 0.

Source: Kafka's `FetchSession.scala` (FetchSessionCache, FetchContext and its four kinds, CachedPartition).
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.fetch_reader import Reading
from barnabas.replication.fetch_session import FetchPartition, FetchSession
from barnabas.turns import RECORD, is_long, pace

__all__ = ["FetchContext", "FetchSessionCache", "grouped"]

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
SESSION_ID_MAX = 2**31 - 1
EVICTION_MS = 120_000


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == SESSION_ID_MAX else epoch + 1


class FetchContext:
    """The session part of one request: the partitions to read, and how to make the response.

    Attributes:
        partitions: to read, in order.
        session: the session of an incremental request, None for a full one.
        error: NONE, or the error of the whole request; `respond` then ignores its arguments.
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

    async def respond(self, read: Reading | None, request_epoch: int) -> FetchResponse:
        """Make the response and update the session.

        Args:
            read: None if `error` is set.
            request_epoch: the session epoch in the request.
        """
        if self.error is not ErrorCode.NONE:
            return FetchResponse(error_code=self.error)
        assert read is not None
        session = self.session
        is_incremental = session is not None
        if session is not None:
            # While this request waited, another connection may have sent a request of this session.
            if session.epoch != next_epoch(request_epoch):
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        elif self._opens is not None:
            session = self._opens(len(self.partitions))
            if session is not None:
                await session.update(self.partitions, ())
                session.cached_size = len(session.partitions)
        topics: list[FetchResponse.FetchableTopicResponse] = []
        has_many = is_long(len(read.results) * RECORD)
        for wanted, data in read.results:
            if has_many:
                await pace(RECORD)
            if session is not None:
                records = data.records
                has_records = records is not None and not isinstance(records, bytes)
                session.note_sent(wanted, data, has_records and is_incremental)
            _add(topics, wanted, data)
        return FetchResponse(session_id=INVALID_SESSION_ID if session is None else session.session_id, responses=topics)

    def respond_empty(self, request_epoch: int) -> FetchResponse:
        """Make a response without partitions, for a client over its quota; the next request reads the same records.

        Args:
            request_epoch: as in `respond`.
        """
        session = self.session
        if session is None:
            return FetchResponse(error_code=self.error)
        if session.epoch != next_epoch(request_epoch):
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        return FetchResponse(session_id=session.session_id)


def grouped(read: Reading) -> list[FetchResponse.FetchableTopicResponse]:
    """Group neighbouring results of one topic, in their order."""
    topics: list[FetchResponse.FetchableTopicResponse] = []
    for wanted, data in read.results:
        _add(topics, wanted, data)
    return topics


def _add(
    topics: list[FetchResponse.FetchableTopicResponse], wanted: FetchPartition, data: FetchResponse.PartitionData
) -> None:
    name, topic_id = wanted.topic or "", wanted.topic_id
    if topics and (topics[-1].topic, topics[-1].topic_id) == (name, topic_id):
        topics[-1].partitions.append(data)
    else:
        topics.append(FetchResponse.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[data]))


class FetchSessionCache:
    """The sessions of one broker.

    Args:
        slots: max.incremental.fetch.session.cache.slots.
        random: for session ids.
    """

    def __init__(self, slots: int, random: random.Random) -> None:
        self._slots = slots
        self._random = random
        # Least recently used first.
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def __repr__(self) -> str:
        return f"<FetchSessionCache sessions={len(self._sessions)} slots={self._slots}>"

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    async def context(
        self,
        session_id: int,
        epoch: int,
        wanted: Collection[FetchPartition],
        forgotten: Collection[Hashable],
        *,
        uses_topic_ids: bool,
        is_follower: bool,
        now_ms: int,
    ) -> FetchContext:
        """Return the context of a request; an incremental request has updated its session then."""
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
        # First, since another request of this session may come while this one gives the loop a turn.
        session.epoch = next_epoch(epoch)
        if wanted or forgotten:
            await session.update(wanted, forgotten)
        if session.is_closed:
            return FetchContext(self, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:
            self._close(session_id)
            return FetchContext(self)
        session.last_used_ms = now_ms
        session.cached_size = len(session.partitions)
        self._sessions.move_to_end(session_id)
        return FetchContext(self, session.partitions.values(), session=session)

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _open(self, size: int, is_privileged: bool, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """Make a session for `size` partitions; return None if there is no slot for it."""
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
