"""Share sessions: which partitions a member of a share group reads from this broker.

    epoch   meaning, in ShareFetch and ShareAcknowledge
    0       opens a session, in place of the member's older one; ShareFetch only, without acknowledgements
    k       the k-th request of the session; adds the partitions that it names, drops those that it forgets
    -1      the last request: the member's records are released

- A session belongs to a group's member and to the connection that opened it. When that connection closes, the member's records are
  released, unless the member has opened a session on another connection.
- Epochs are 1, 2, … 2^31 - 1, 1, …; another epoch than the expected one gets INVALID_SHARE_SESSION_EPOCH, a missing session
  SHARE_SESSION_NOT_FOUND, a session beyond group.share.max.share.sessions SHARE_SESSION_LIMIT_REACHED.
- The epoch rotates the partitions, so that under a byte limit each is first in turn.

Sources: KIP-932; Kafka's `ShareSessionCache`, `ShareSession`, `ShareSessionContext`, `SharePartitionManager.newContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.fetch_session_cache import FINAL_EPOCH, INITIAL_EPOCH, next_epoch

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
        topic: the topic's name when the partition was added; None for an unknown topic id.
        must_answer: whether the next response has it even without records: it is new, or its last response was an error.
    """

    __slots__ = ("must_answer", "topic")

    def __init__(self, topic: str | None, must_answer: bool) -> None:
        self.topic = topic
        self.must_answer = must_answer

    def __repr__(self) -> str:
        return f"<SharedPartition of {self.topic} must_answer={self.must_answer}>"


class ShareSession:
    """One member's partitions.

    Attributes:
        epoch: the epoch that the next request must carry.
    """

    __slots__ = ("epoch", "key", "partitions")

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[TopicPartitionId, SharedPartition] = {}

    def __repr__(self) -> str:
        return f"<ShareSession {self.key} epoch={self.epoch} partitions={len(self.partitions)}>"

    def add(self, partition_id: TopicPartitionId, topic: str | None, *, must_answer: bool) -> None:
        """Add a partition, unless the session has it."""
        if partition_id not in self.partitions:
            self.partitions[partition_id] = SharedPartition(topic, must_answer)

    def note_answered(self, partition_id: TopicPartitionId, *, has_records: bool, has_error: bool) -> bool:
        """Return whether the response must have a partition; after records, move the partition to the end."""
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
        on_member_gone: called with group and member when a connection closes whose session is still open.
        on_group_empty: called with the group when its last session has ended with its connection.
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
        """Open a session, in place of the member's older one.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        self.remove(group_id, member_id)
        if len(self._sessions) >= self._slots:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(SessionKey(group_id, member_id))
        for partition_id, topic in partitions:
            session.add(partition_id, topic, must_answer=False)
        self._sessions[session.key] = session
        self._of_connection[connection_id] = session
        self._members[group_id] = self._members.get(group_id, 0) + 1
        return session

    def advance(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session that a request continues or ends; a continued one then expects the next epoch.

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
        """End a session; returns it, or None if there was none."""
        session = self._sessions.pop(SessionKey(group_id, member_id), None)
        if session is not None:
            self._members[group_id] -= 1
        return session

    def connection_closed(self, connection_id: str) -> None:
        """End the session of a closed connection."""
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
