"""SharePartitionManager: the share partitions of this broker, where ShareFetch and ShareAcknowledge enter the room.

    ShareFetch       ──► fetch ──────► SharePartition (reads its state first) ──► DelayedShareFetch
    ShareAcknowledge ──► acknowledge ─►
    a member leaves  ──► release_session

- The first fetch of a group makes a share partition. It stays until it is fenced, its leader changes, or the group's last member
  that reads here is gone.
- An acknowledgement for a share partition that is not here gets UNKNOWN_TOPIC_OR_PARTITION: after an election or a restart no member
  holds a lock.
- When a client closes its connection, its fetch is cancelled and acquires nothing. Its acknowledgements, and the reading of a state
  that its fetch began, continue to their end.

Sources: KIP-932; Kafka's `SharePartitionManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareFetchResponse
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.share.acknowledgement import Acknowledgement
from barnabas.share.fetch import DelayedShareFetch, ShareFetchParams, ShareFetchResults
from barnabas.share.persister import ShareStates
from barnabas.share.sessions import ShareSessionCache, TopicPartitionId
from barnabas.share.settings import ShareSettings
from barnabas.share.share_partition import ENDS_SHARE_PARTITION, SharePartition
from barnabas.share.state_records import SharePartitionKey
from barnabas.steps import gather, in_background, shielded
from barnabas.turns import READ, pace

__all__ = ["AcknowledgeAnswer", "FetchAnswer", "SharePartitionManager"]

logger = logging.getLogger(__name__)

PartitionData = ShareFetchResponse.PartitionData

FetchAnswer = dict[TopicPartitionId, PartitionData]
AcknowledgeAnswer = dict[TopicPartitionId, KafkaError | None]


class SharePartitionManager:
    """All share partitions whose partitions this broker leads.

    Attributes:
        sessions: the sessions of the members that read here.
        settings: the groups' settings.
        records_acquired: how many records members have acquired.
        records_acknowledged: how many records members have acknowledged, by type (`AcknowledgeType`).
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        *,
        persister: ShareStates,
        settings: ShareSettings,
        sessions: ShareSessionCache,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
    ) -> None:
        self.sessions = sessions
        self.settings = settings
        self.records_acquired = 0
        self.records_acknowledged: Counter[int] = Counter()
        self._replicas = replicas
        self._persister = persister
        self._loop = loop
        self._now_ms = now_ms
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        sessions.on_member_gone = self._member_gone
        sessions.on_group_empty = self._group_empty

    def __repr__(self) -> str:
        return f"<SharePartitionManager {len(self._partitions)} share partitions, {len(self.sessions)} sessions>"

    def __len__(self) -> int:
        return len(self._partitions)

    async def fetch(self, params: ShareFetchParams, partitions: Sequence[TopicPartitionId], epoch: int) -> FetchAnswer:
        """Acquire records for a member; wait if no record is available.

        Args:
            partitions: partitions that exist.
            epoch: the session's; decides which partition is read first.

        Returns: the response's parts of the partitions that have records or errors.
        """
        answer: FetchAnswer = {}
        if not partitions or not params.max_records or not params.max_bytes:
            return answer
        turn = epoch % len(partitions) if epoch > 0 else 0
        found = []
        fresh = []
        for partition_id in (*partitions[turn:], *partitions[:turn]):
            await pace(READ)
            try:
                shared = self._share_partition(SharePartitionKey(params.group_id, *partition_id))
                is_fresh = shared.needs_state()
            except KafkaError as error:
                answer[partition_id] = _failed(partition_id, error)
                continue
            if is_fresh:
                in_background(self._initialize(shared, answer), self._loop)
                if partition_id in answer:
                    continue
                fresh.append(shared)
            found.append(shared)
        if found:
            for shared, data in (await self._wait(params, found, fresh)).items():
                self.records_acquired += sum(part.last_offset - part.first_offset + 1 for part in data.acquired_records)
                answer[_id_of(shared)] = data
        return answer

    def _wait(
        self, params: ShareFetchParams, found: Sequence[SharePartition], fresh: Sequence[SharePartition]
    ) -> asyncio.Future[ShareFetchResults]:
        operation = DelayedShareFetch(self._loop, params, found, self._remove_on_error)
        results = _first_results(operation, found, fresh)
        if results is not None:
            operation.finish(results)
        elif params.max_wait_ms <= 0:
            operation.expired()
        else:
            keys: list[Hashable] = [*found, *(shared.partition for shared in found)]
            self._replicas.delayed_fetches.watch(operation, keys, params.max_wait_ms)
        return operation.future

    def _share_partition(self, key: SharePartitionKey) -> SharePartition:
        shared = self._known(key)
        if shared is None:
            hosted = self._replicas.topics_by_id.get(key.topic_id)
            partition = None if hosted is None else hosted.partitions.get(key.partition)
            if partition is None or not partition.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            shared = self._partitions[key] = SharePartition(
                key,
                partition,
                persister=self._persister,
                settings=self.settings,
                loop=self._loop,
                now_ms=self._now_ms,
                on_change=self._replicas.delayed_fetches.notify,
            )
        return shared

    def _known(self, key: SharePartitionKey) -> SharePartition | None:
        shared = self._partitions.get(key)
        if shared is not None and shared.is_stale:
            self._remove(shared)
            return None
        return shared

    async def _initialize(self, shared: SharePartition, answer: FetchAnswer) -> None:
        """Read a share partition's state; if that fails, put the error into the answer and forget the share partition."""
        try:
            await shared.initialize()
        except KafkaError as error:
            answer[_id_of(shared)] = _failed(_id_of(shared), error)
            self._remove(shared)
            return
        # At once, before another state is read (`_first_results`).
        for operation in tuple(self._replicas.delayed_fetches.watchers.get(shared, ())):
            if isinstance(operation, DelayedShareFetch):
                operation.look_again()

    async def acknowledge(
        self, group_id: str, member_id: str, batches: Mapping[TopicPartitionId, Sequence[Acknowledgement]]
    ) -> AcknowledgeAnswer:
        """Apply a member's acknowledgements and write them.

        Returns: an error or None for each partition.
        """
        outcomes = await gather(
            (
                shielded(
                    self._acknowledge(SharePartitionKey(group_id, *partition_id), member_id, acknowledgements),
                    self._loop,
                )
                for partition_id, acknowledgements in batches.items()
            ),
            self._loop,
        )
        return dict(zip(batches, outcomes, strict=True))

    async def _acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> KafkaError | None:
        shared = self._known(key)
        if shared is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            await shared.acknowledge(member_id, acknowledgements)
        except KafkaError as error:
            self._remove_on_error(shared, error)
            return error
        for asked in acknowledgements:
            if len(asked.types) == 1:
                self.records_acknowledged[asked.types[0]] += asked.last - asked.first + 1
            else:
                self.records_acknowledged.update(asked.types)
        return None

    def release_session(self, group_id: str, member_id: str) -> None:
        """End a member's session, if it has one, and release all records that it holds."""
        session = self.sessions.remove(group_id, member_id)
        for partition_id in () if session is None else session.partitions:
            shared = self._known(SharePartitionKey(group_id, *partition_id))
            if shared is not None:
                in_background(self._release(shared, member_id), self._loop)

    async def _release(self, shared: SharePartition, member_id: str) -> None:
        try:
            await shared.release(member_id)
        except KafkaError as error:
            self._remove_on_error(shared, error)

    def _remove_on_error(self, shared: SharePartition, error: KafkaError) -> None:
        if error.code in ENDS_SHARE_PARTITION:
            self._remove(shared)

    def _remove(self, shared: SharePartition) -> None:
        if self._partitions.get(shared.key) is shared:
            del self._partitions[shared.key]
        shared.fence()
        self._replicas.delayed_fetches.notify(shared)

    def _member_gone(self, group_id: str, member_id: str) -> None:
        logger.debug("The connection of member %s of share group %s is gone", member_id, group_id)
        self.release_session(group_id, member_id)

    def _group_empty(self, group_id: str) -> None:
        for shared in [shared for key, shared in self._partitions.items() if key.group_id == group_id]:
            self._remove(shared)

    def topics_deleted(self, topic_ids: Iterable[bytes]) -> None:
        """Forget the share partitions of deleted topics."""
        deleted = frozenset(topic_ids)
        for shared in [shared for key, shared in self._partitions.items() if key.topic_id in deleted]:
            self._remove(shared)

    def close(self) -> None:
        """Stop every timer; nothing is released, as after a crash."""
        for shared in self._partitions.values():
            shared.fence()
        self._partitions.clear()


def _first_results(
    operation: DelayedShareFetch, found: Sequence[SharePartition], fresh: Sequence[SharePartition]
) -> ShareFetchResults | None:
    """Look at the partitions of a fetch in the order in which their states are read.

    Partitions whose state was there before are first, then one by one those whose state this fetch had read (`fresh`), and
    last all together. So a group's first fetch returns the records of one partition, as in Kafka, where each state that is read
    completes the fetch; tests of clients rest on that.
    """
    if fresh:
        new = set(fresh)
        known = [shared for shared in found if shared not in new]
        for among in (known, *([shared] for shared in fresh)):
            results = operation.try_complete(among)
            if results is not None:
                return results
    return operation.try_complete()


def _id_of(shared: SharePartition) -> TopicPartitionId:
    return TopicPartitionId(shared.key.topic_id, shared.key.partition)


def _failed(partition_id: TopicPartitionId, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition_id.partition, error_code=int(error.code), error_message=error.message, records=b""
    )
