"""The share partitions of this broker: where ShareFetch and ShareAcknowledge enter. Data plane.

    ShareFetch       ──► fetch ──────► SharePartition (read its state first) ──► DelayedShareFetch
    ShareAcknowledge ──► acknowledge ─►
    a member leaves  ──► release_session

- A share partition is made by the first fetch of a group and kept until it is fenced, its leader changes, or the last member of
  the group that read here is gone.
- An acknowledgement for a share partition that is not here is UNKNOWN_TOPIC_OR_PARTITION: after a change of leader, or a restart, nobody
  holds a lock any more.

Sources: KIP-932; Kafka's `SharePartitionManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareFetchResponse
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.share.fetch import DelayedShareFetch, ShareFetchParams, ShareFetchResults
from barnabas.share.records import Acknowledgement
from barnabas.share.sessions import ShareSessionCache, TopicPartitionId
from barnabas.share.settings import Persister, ShareSettings
from barnabas.share.share_partition import ENDS_SHARE_PARTITION, SharePartition

__all__ = ["SharePartitionManager"]

logger = logging.getLogger(__name__)

PartitionData = ShareFetchResponse.PartitionData
FetchAnswer = dict[TopicPartitionId, PartitionData]
AcknowledgeAnswer = dict[TopicPartitionId, KafkaError | None]
_Key = tuple[str, TopicPartitionId]


class SharePartitionManager:
    """All share partitions whose partitions this broker leads.

    Attributes:
        sessions: of the members that read here.
        settings: of the groups.
        records_acquired: how many records have been given to members.
        records_acknowledged: how many have been acknowledged, by type (`AcknowledgeType`).
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        *,
        persister: Persister,
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
        self._partitions: dict[_Key, SharePartition] = {}
        sessions.on_member_gone = self._member_gone
        sessions.on_group_empty = self._group_empty

    def __repr__(self) -> str:
        return f"<SharePartitionManager {len(self._partitions)} share partitions, {len(self.sessions)} sessions>"

    def __len__(self) -> int:
        return len(self._partitions)

    # -- fetching ----------------------------------------------------------------------------------------------------

    def fetch(
        self, params: ShareFetchParams, partitions: Sequence[TopicPartitionId], epoch: int
    ) -> asyncio.Future[FetchAnswer]:
        """Acquire records for a member, waiting for some if there are none.

        Args:
            partitions: known to the metadata.
            epoch: of the session; decides which partition comes first.

        Returns:
            The answer's parts of the partitions about which there is something to say.
        """
        answer: FetchAnswer = {}
        if not partitions or not params.max_records or not params.max_bytes:
            return self._done(answer)
        turn = epoch % len(partitions) if epoch > 0 else 0
        found = []
        fresh = []
        for partition_id in (*partitions[turn:], *partitions[:turn]):
            try:
                shared = self._share_partition(params.group_id, partition_id)
                starting = shared.initialize(self._answer_waiting)
                if starting is not None:
                    self._when_initialized(shared, starting, partial(_note_failure, answer, partition_id))
                    if partition_id in answer:
                        continue
                    fresh.append(shared)
            except KafkaError as error:
                answer[partition_id] = _failed(partition_id, error)
                continue
            found.append(shared)
        if not found:
            return self._done(answer)
        operation = DelayedShareFetch(self._loop, params, found, self._on_error)
        results = _first_results(operation, found, fresh)
        if results is None and params.max_wait_ms <= 0:
            operation.expired()
        elif results is not None:
            operation.finish(results)
        else:
            keys: list[Hashable] = [*found, *(shared.partition for shared in found)]
            self._replicas.delayed_fetches.watch(operation, keys, params.max_wait_ms)
        return self._answered(operation, answer)

    def _answered(self, operation: DelayedShareFetch, answer: FetchAnswer) -> asyncio.Future[FetchAnswer]:
        future: asyncio.Future[FetchAnswer] = self._loop.create_future()

        def done(result: asyncio.Future[ShareFetchResults]) -> None:
            if future.done():
                return
            if result.cancelled():
                future.cancel()
                return
            error = result.exception()
            if error is not None:
                future.set_exception(error)
                return
            for shared, data in result.result().items():
                self.records_acquired += sum(part.last_offset - part.first_offset + 1 for part in data.acquired_records)
                answer[_id_of(shared.partition)] = data
            future.set_result(answer)

        if operation.future.done():
            done(operation.future)
        else:
            operation.future.add_done_callback(done)
            # Who waits for the answer may go away: then nothing must be acquired.
            future.add_done_callback(lambda _: operation.future.cancel() if future.cancelled() else None)
        return future

    def _share_partition(self, group_id: str, partition_id: TopicPartitionId) -> SharePartition:
        key = (group_id, partition_id)
        shared = self._partitions.get(key)
        if shared is not None and shared.is_stale:
            self._remove(shared)
            shared = None
        if shared is None:
            hosted = self._replicas.topics_by_id.get(partition_id.topic_id)
            partition = None if hosted is None else hosted.partitions.get(partition_id.partition)
            if partition is None or not partition.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            shared = self._partitions[key] = SharePartition(
                group_id,
                partition,
                persister=self._persister,
                settings=self.settings,
                loop=self._loop,
                now_ms=self._now_ms,
                on_change=self._replicas.delayed_fetches.notify,
            )
        return shared

    def _when_initialized(
        self, shared: SharePartition, starting: asyncio.Future[None], on_failure: Callable[[KafkaError], None]
    ) -> None:
        """Forget a share partition that cannot be read."""

        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            if isinstance(error, KafkaError):
                on_failure(error)
                self._remove(shared)
            elif error is not None:
                raise error

        if starting.done():
            done(starting)
        else:
            starting.add_done_callback(done)

    def _answer_waiting(self, shared: SharePartition) -> None:
        """Let the fetches that wait for a share partition look at once, now that it has been read (`_first_results`)."""
        for operation in tuple(self._replicas.delayed_fetches.watchers.get(shared, ())):
            if isinstance(operation, DelayedShareFetch):
                operation.look_again()

    # -- acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(
        self, group_id: str, member_id: str, batches: Mapping[TopicPartitionId, Sequence[Acknowledgement]]
    ) -> asyncio.Future[AcknowledgeAnswer]:
        """Take a member's word on records; the answer has an error or None for each partition."""
        waits: dict[TopicPartitionId, asyncio.Future[None]] = {}
        for partition_id, acknowledgements in batches.items():
            shared = self._known(group_id, partition_id)
            if shared is None:
                waits[partition_id] = self._unknown()
                continue
            waits[partition_id] = shared.acknowledge(member_id, acknowledgements)
            self._end_on_error(shared, waits[partition_id])
            self._count(acknowledgements, waits[partition_id])
        return self._gathered(waits)

    def _count(self, acknowledgements: Sequence[Acknowledgement], future: asyncio.Future[None]) -> None:
        """Count what has been taken."""

        def done(result: asyncio.Future[None]) -> None:
            if result.cancelled() or result.exception() is not None:
                return
            for asked in acknowledgements:
                if len(asked.types) == 1:
                    self.records_acknowledged[asked.types[0]] += asked.last - asked.first + 1
                else:
                    self.records_acknowledged.update(asked.types)

        if future.done():
            done(future)
        else:
            future.add_done_callback(done)

    def release_session(self, group_id: str, member_id: str) -> asyncio.Future[AcknowledgeAnswer]:
        """End a member's session and take back all that it holds.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND.
        """
        session = self.sessions.remove(group_id, member_id)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        waits = {}
        for partition_id in session.partitions:
            shared = self._known(group_id, partition_id)
            if shared is not None:
                waits[partition_id] = shared.release(member_id)
                self._end_on_error(shared, waits[partition_id])
        return self._gathered(waits)

    def _known(self, group_id: str, partition_id: TopicPartitionId) -> SharePartition | None:
        shared = self._partitions.get((group_id, partition_id))
        if shared is not None and shared.is_stale:
            self._remove(shared)
            return None
        return shared

    def _unknown(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        future.set_exception(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return future

    def _end_on_error(self, shared: SharePartition, future: asyncio.Future[None]) -> None:
        def done(result: asyncio.Future[None]) -> None:
            error = None if result.cancelled() else result.exception()
            if isinstance(error, KafkaError):
                self._on_error(shared, error)

        if future.done():
            done(future)
        else:
            future.add_done_callback(done)

    def _gathered(self, waits: Mapping[TopicPartitionId, asyncio.Future[None]]) -> asyncio.Future[AcknowledgeAnswer]:
        answer: asyncio.Future[AcknowledgeAnswer] = self._loop.create_future()
        left = len(waits)

        def done(_: Any) -> None:
            nonlocal left
            left -= 1
            if left <= 0 and not answer.done():
                answer.set_result({partition_id: _outcome(future) for partition_id, future in waits.items()})

        if not waits:
            done(None)
        for future in waits.values():
            if future.done():
                done(future)
            else:
                future.add_done_callback(done)
        return answer

    # -- ending ------------------------------------------------------------------------------------------------------

    def _on_error(self, shared: SharePartition, error: KafkaError) -> None:
        if error.code in ENDS_SHARE_PARTITION:
            self._remove(shared)

    def _remove(self, shared: SharePartition) -> None:
        key = (shared.group_id, _id_of(shared.partition))
        if self._partitions.get(key) is shared:
            del self._partitions[key]
        shared.fence()
        self._replicas.delayed_fetches.notify(shared)

    def _member_gone(self, group_id: str, member_id: str) -> None:
        logger.debug("The connection of member %s of share group %s is gone", member_id, group_id)
        self.release_session(group_id, member_id)

    def _group_empty(self, group_id: str) -> None:
        for shared in [shared for (group, _), shared in self._partitions.items() if group == group_id]:
            self._remove(shared)

    def topics_deleted(self, topic_ids: Iterable[bytes]) -> None:
        """Forget the share partitions of topics that are gone."""
        gone = frozenset(topic_ids)
        for shared in [shared for (_, at), shared in self._partitions.items() if at.topic_id in gone]:
            self._remove(shared)

    def close(self) -> None:
        """Stop every timer; nothing is released, as after a crash."""
        for shared in self._partitions.values():
            shared.fence()
        self._partitions.clear()

    def _done(self, answer: FetchAnswer) -> asyncio.Future[FetchAnswer]:
        future: asyncio.Future[FetchAnswer] = self._loop.create_future()
        future.set_result(answer)
        return future


def _first_results(
    operation: DelayedShareFetch, found: Sequence[SharePartition], fresh: Sequence[SharePartition]
) -> ShareFetchResults | None:
    """Look at the partitions of a fetch in the order in which they come to be known.

    Those whose state is there already are first, then one after the other those whose state this fetch has had read (`fresh`), and
    last all together. So the first of a group's fetches has the records of one partition, as in Kafka, where each state
    comes by itself and completes the fetch; tests of clients rest on that.
    """
    if fresh:
        new = set(fresh)
        known = [shared for shared in found if shared not in new]
        for among in (known, *([shared] for shared in fresh)):
            results = operation.try_complete(among)
            if results is not None:
                return results
    return operation.try_complete()


def _note_failure(answer: FetchAnswer, partition_id: TopicPartitionId, error: KafkaError) -> None:
    answer[partition_id] = _failed(partition_id, error)


def _id_of(partition: Partition) -> TopicPartitionId:
    return TopicPartitionId(bytes(partition.topic.topic_id), partition.index)


def _outcome(future: asyncio.Future[None]) -> KafkaError | None:
    error = future.exception()
    if error is not None and not isinstance(error, KafkaError):
        raise error
    return error


def _failed(partition_id: TopicPartitionId, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition_id.partition, error_code=int(error.code), error_message=error.message, records=b""
    )
