"""Share sessions: which partitions a member of a share group reads from this broker. Data plane.

    epoch   meaning, in ShareFetch and ShareAcknowledge
    0       open a session (an older one of the member is replaced); ShareFetch only, and without acknowledgements
    k       the k-th request of the session; partitions named are added, those forgotten are dropped, all others stay
    -1      the last request: what the member holds is released

- A session belongs to a group's member and to the connection that opened it. When the connection closes the member is taken to be
  gone, and what it holds is released, unless the session has been opened again elsewhere.
- Epochs go 1, 2, … 2^31 - 1, 1. Another epoch than the expected one is INVALID_SHARE_SESSION_EPOCH, a session that is not there
  SHARE_SESSION_NOT_FOUND, one more than group.share.max.share.sessions SHARE_SESSION_LIMIT_REACHED.
- Partitions are rotated by the epoch, so that under a byte limit each comes first in turn.

Sources: KIP-932; Kafka's `ShareSessionCache`, `ShareSession`, `ShareSessionContext`, `SharePartitionManager.newContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch

__all__ = ["ShareSession", "ShareSessionCache", "TopicPartitionId"]


class TopicPartitionId(NamedTuple):
    """A partition of a topic by id."""

    topic_id: bytes
    partition: int


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class SharedPartition:
    """A partition in a session.

    Attributes:
        topic: the topic's name when it was named; None for an id that had none.
        must_answer: mention it in the next answer even without records: it is new, or was answered with an error.
    """

    __slots__ = ("id", "must_answer", "topic")

    def __init__(self, partition_id: TopicPartitionId, topic: str | None, must_answer: bool) -> None:
        self.id = partition_id
        self.topic = topic
        self.must_answer = must_answer

    def __repr__(self) -> str:
        return f"<SharedPartition {self.topic}-{self.id.partition}>"


class ShareSession:
    """One member's partitions.

    Attributes:
        epoch: what the next request must carry.
    """

    __slots__ = ("connection_id", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, connection_id: str) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[TopicPartitionId, SharedPartition] = {}

    def __repr__(self) -> str:
        return f"<ShareSession {self.key} epoch={self.epoch} partitions={len(self.partitions)}>"

    def add(self, partition_id: TopicPartitionId, topic: str | None, *, must_answer: bool) -> None:
        """Read a partition too; one that is known stays as it is."""
        if partition_id not in self.partitions:
            self.partitions[partition_id] = SharedPartition(partition_id, topic, must_answer)

    def note_answered(self, partition_id: TopicPartitionId, *, has_records: bool, has_error: bool) -> bool:
        """Decide whether a partition's part of an answer is worth sending, and let the others go first after records."""
        shared = self.partitions.get(partition_id)
        if shared is None:
            return True
        must_answer = shared.must_answer or has_records or has_error
        shared.must_answer = has_error
        if has_records:
            del self.partitions[partition_id]
            self.partitions[partition_id] = shared
        return must_answer


class ShareSessionCache:
    """The share sessions of one broker.

    Args:
        slots: group.share.max.share.sessions.

    Attributes:
        on_member_gone: told when a connection closes whose session is still open.
        on_group_empty: told when the last session of a group has ended with its connection.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[str, ShareSession] = {}
        self._members: dict[str, int] = {}
        self.on_member_gone: Callable[[str, str], None] = lambda group_id, member_id: None
        self.on_group_empty: Callable[[str], None] = lambda group_id: None

    def __len__(self) -> int:
        return len(self._sessions)

    def __repr__(self) -> str:
        return f"<ShareSessionCache {len(self._sessions)}/{self._slots}>"

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        return self._sessions.get(SessionKey(group_id, member_id))

    def open(
        self,
        group_id: str,
        member_id: str,
        partitions: Iterable[tuple[TopicPartitionId, str | None]],
        connection_id: str,
    ) -> ShareSession:
        """Begin a session, instead of the one that the member has.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        self.remove(group_id, member_id)
        if len(self._sessions) >= self._slots:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(SessionKey(group_id, member_id), connection_id)
        for partition_id, topic in partitions:
            session.add(partition_id, topic, must_answer=False)
        self._sessions[session.key] = session
        self._of_connection[connection_id] = session
        self._members[group_id] = self._members.get(group_id, 0) + 1
        return session

    def advance(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session that a request continues, or ends; a continued one expects the next epoch afterwards.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(group_id, member_id)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return session
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, group_id: str, member_id: str) -> ShareSession | None:
        """End a session; returns it if there was one."""
        session = self._sessions.pop(SessionKey(group_id, member_id), None)
        if session is not None:
            self._members[group_id] -= 1
        return session

    def connection_closed(self, connection_id: str) -> None:
        """Whoever read over this connection reads no more."""
        session = self._of_connection.pop(connection_id, None)
        if session is None:
            return
        group_id = session.key.group_id
        if self._sessions.get(session.key) is session:
            self.on_member_gone(*session.key)
            self.remove(*session.key)
        if not self._members.get(group_id):
            self._members.pop(group_id, None)
            self.on_group_empty(group_id)
