"""The replicas of this broker: the entry of every read and write of records.

    metadata delta ──► replica_changes ► HostedTopic ──► Partition ──► PartitionLog
    Produce        ──► append                              │
    coordinators   ──► append_internal, read_internal      ├─► new bytes notify delayed fetches
    Fetch          ──► fetch ─► long poll                  └─► a moved high watermark notifies delayed produces

- A partition without a replica here is NOT_LEADER_OR_FOLLOWER, one that is not in the metadata UNKNOWN_TOPIC_OR_PARTITION.
- A topic that is created again under its old name has another id. The old replica is deleted first, holders of a reference see
  `is_deleted`, and no fetch reads records of the old topic from the new one.
- A delta is applied in the order of the topics (`replica_changes`), and the loop has its turns meanwhile: a request may see a part of the
  partitions changed.
- Waiting requests do not block: they are futures in a `Purgatory`, and the append that they wait for completes them.

Source: Kafka's `ReplicaManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.log.append_checks import Opened, RecordsToOpen
from barnabas.log.errors import KafkaStorageError, is_of_a_bad_disk
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import AppendInfo, AppendOrigin, PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError, StaleMetadataError
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.records.record_batch import iter_batches
from barnabas.repeated_lines import RepeatedLines
from barnabas.replication.awaited_commit import DelayedCommit
from barnabas.replication.awaited_deletion import AwaitedDeletion
from barnabas.replication.awaited_offset import AwaitedOffset, all_settled
from barnabas.replication.fetch_reader import FetchParams, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.fetches import Fetches
from barnabas.replication.hosted_topic import HostedTopic
from barnabas.replication.partition import ACKS_ALL, Partition
from barnabas.replication.purgatory import Purgatory
from barnabas.replication.replica_quota import UNBOUNDED, ReplicaQuota
from barnabas.replication.replica_selector import replica_in_rack
from barnabas.replication.topic_traffic import TopicTraffic

if TYPE_CHECKING:
    from barnabas.log.log_directories import Directory, Logs
    from barnabas.log.transaction_verification import VerificationGuard
    from barnabas.metadata.cluster_image import BrokerRegistration
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.replication.directory_moves import DirectoryMoves
    from barnabas.replication.replica_fetcher_loop import ReplicaFetcherLoop
    from barnabas.replication.replica_fetcher_manager import FetcherId
    from barnabas.replication.replicated_partitions import ReplicatedPartitions

__all__ = ["ReplicaManager"]

logger = logging.getLogger(__name__)

INTERNAL_READ_BYTES = 1 << 20
EXPECTED_APPEND_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Appends with these errors do not count as failed produce requests, and their responses lack the log start, as in Kafka."""


class ReplicaManager:
    """All replicas of one broker.

    Args:
        log_manager: opens and deletes the logs.
        now_ms: wall clock, epoch milliseconds.
        node_id: this broker.
        log_config_for: returns a topic's settings in an image.
        lag_time_max_ms: replica.lag.time.max.ms.

    Attributes:
        topics, topics_by_id: the topics with a replica here.
        fetches: the Fetch requests that read these replicas.
        image: the metadata as of the last delta.
        names_replicas_by_rack: leaders send consumers to replicas in their own rack.
        replicated_partitions: keeps the replicas of several brokers alike; None before the first such partition.
        make_replicated: makes `replicated_partitions`; None for tests of one broker.
        leader_quota, follower_quota: the limits of replication, as a leader and as a follower.
        fetchers_per_leader: num.replica.fetchers.
        own_broker_epoch: returns the epoch of this broker's registration, which the image may not have yet.
        departed_traffic: the traffic of deleted topics.
        is_closed: set by `close`.
        on_disk_failure: stops this broker; None where no other broker could take its place.
        moves: the moves of replicas between directories; None for a broker with one.
        place, on_bad_write: choose the directory of a replica, and take it offline; None for a broker with one (`directory_failures`).
    """

    def __init__(
        self,
        log_manager: Logs,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        node_id: int,
        log_config_for: Callable[[str, MetadataImage], LogConfig],
        lag_time_max_ms: int = 30_000,
    ) -> None:
        self.topics: dict[str, HostedTopic] = {}
        self.topics_by_id: dict[bytes, HostedTopic] = {}
        self.image: MetadataImage | None = None
        self.log_manager = log_manager
        self.node_id = node_id
        self.lag_time_max_ms = lag_time_max_ms
        self.departed_traffic = TopicTraffic()
        self.fetches = Fetches(self, loop)
        self.delayed_fetches = self.fetches.delayed
        self.delayed_produces = Purgatory("produce", loop)
        self.delayed_deletions = Purgatory("delete records", loop)
        self.names_replicas_by_rack = False
        self.make_replicated: Callable[[ReplicaManager], ReplicatedPartitions] | None = None
        self.own_broker_epoch: Callable[[], int] | None = None
        self.on_disk_failure: Callable[[KafkaStorageError], None] | None = None
        self.place: Callable[[Partition, PartitionRegistration], None] | None = None
        self.on_bad_write: Callable[[Partition, KafkaStorageError], None] | None = None
        self.moves: DirectoryMoves | None = None
        self.leader_quota: ReplicaQuota = UNBOUNDED
        self.follower_quota: ReplicaQuota = UNBOUNDED
        self.fetchers_per_leader = 1
        self.is_closed = False
        self.replicated_partitions: ReplicatedPartitions | None = None
        self._loop = loop
        self._lines = RepeatedLines(loop)
        self._now_ms = now_ms
        self._log_config_for = log_config_for
        self._fetch_watchers = self.delayed_fetches.watchers
        for directory in log_manager.directories:
            if isinstance(directory, LogManager):
                directory.on_retained = self._retained

    def __repr__(self) -> str:
        partitions = sum(len(topic.partitions) for topic in self.topics.values())
        return f"<ReplicaManager node={self.node_id} topics={len(self.topics)} partitions={partitions}>"

    # Metadata

    def replicate(self, partition: Partition) -> None:
        """Lead or follow a partition as its registration now says, if other brokers have replicas."""
        if partition.lost is not None:
            return
        if self.replicated_partitions is None and self.make_replicated is not None and len(partition.replicas) > 1:
            self.replicated_partitions = self.make_replicated(self)
        if self.replicated_partitions is not None:
            self.replicated_partitions.changed(partition)

    def notify_changed(self, partition: Partition) -> None:
        """Wake the requests that wait on a partition: its leader, ISR, settings or existence have changed."""
        self.fetches.wake(partition, -1)
        self.delayed_produces.notify(partition)
        self.delayed_deletions.notify(partition)

    def close(self) -> None:
        """End the fetches from other brokers and the proposals to the controller; apply nothing more."""
        self.is_closed = True
        if self.moves is not None:
            self.moves.close()
        if self.replicated_partitions is not None:
            self.replicated_partitions.close()
        self._lines.close()

    @property
    def fetchers(self) -> Mapping[FetcherId, ReplicaFetcherLoop]:
        """The fetches from other brokers."""
        return {} if self.replicated_partitions is None else self.replicated_partitions.fetchers.fetchers

    def resize_fetchers(self, fetchers_per_leader: int) -> None:
        """Change the number of fetchers for each leader."""
        self.fetchers_per_leader = fetchers_per_leader
        if self.replicated_partitions is not None:
            self.replicated_partitions.fetchers.resize(fetchers_per_leader)

    def config_of(self, name: str) -> LogConfig:
        """Return a topic's settings as of now; it need not have a replica here."""
        assert self.image is not None
        return self._log_config_for(name, self.image)

    async def set_strays_aside(self) -> list[tuple[str, int]]:
        """Set aside the logs of partitions that the metadata does not assign to this broker; once, after the first image.

        Returns:
            Topic and index of each such log.
        """

        def is_assigned(topic: str, index: int, topic_id: bytes | None) -> bool:
            hosted = self.topics.get(topic)
            return hosted is not None and index in hosted.partitions and topic_id == hosted.topic_id

        return await self.log_manager.set_strays_aside(is_assigned)

    # For the partitions

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def broker_epoch(self, broker_id: int) -> int:
        if broker_id == self.node_id and self.own_broker_epoch is not None:
            return self.own_broker_epoch()
        broker = self._broker(broker_id)
        return -1 if broker is None else broker.epoch

    def is_in_service(self, broker_id: int) -> bool:
        broker = self._broker(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def _broker(self, broker_id: int) -> BrokerRegistration | None:
        return None if self.image is None else self.image.cluster.brokers.get(broker_id)

    def open_log(self, partition: Partition) -> PartitionLog:
        topic = partition.topic
        try:
            return self.log_manager.get_or_create(topic.name, partition.index, topic.topic_id, topic.config)
        except KafkaStorageError as error:
            # A replica that is alone in the ISR stays its leader, and each request for the partition tries again.
            root = self.log_manager.directory_of(topic.name, partition.index).root_dir
            line = f"The log of {partition.name} in {root} cannot be opened: {error.message}"
            self._lines.log(logger, logging.ERROR, partition.name, line)
            raise

    def size_of(self, partition: Partition) -> int:
        """Return the bytes of a replica's segments; 0 for a log that does not exist yet, which this does not create."""
        log = partition.open_log or self.log_manager.get(partition.topic.name, partition.index)
        return 0 if log is None else log.size_in_bytes

    def describe_volumes(self) -> Iterator[tuple[Directory, int, int]]:
        """Yield the data directories, each with its volume's total and free bytes, -1 if they are unknown."""
        for directory in self.log_manager.directories:
            try:
                usage = directory.disk_usage()
            except OSError:
                yield directory, -1, -1
            else:
                yield directory, usage.total, usage.free

    # Looking up

    def partition(self, topic: str, index: int) -> Partition:
        """Return the replica of a partition.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER if only other brokers have replicas.
        """
        hosted = self.topics.get(topic)
        found = None if hosted is None else hosted.partitions.get(index)
        if found is None:
            raise self._no_replica(topic, index)
        return found

    def hosted_partition(self, key: tuple[str, int]) -> Partition | None:
        """Return the replica of a partition; None if it is not here."""
        hosted = self.topics.get(key[0])
        return None if hosted is None else hosted.partitions.get(key[1])

    def registration_of(self, key: tuple[str, int]) -> PartitionRegistration | None:
        """Return what the metadata has for a partition; None if it does not exist."""
        return None if self.image is None else self.image.topics.partition(*key)

    def _no_replica(self, topic: str, index: int) -> KafkaError:
        if self.image is not None and self.image.topics.partition(topic, index) is not None:
            return StaleMetadataError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Leader not local for partition {topic}-{index} on broker {self.node_id}",
            )
        return StaleMetadataError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic or partition {topic}-{index} does not exist"
        )

    def partition_for_fetch(self, wanted: FetchPartition) -> Partition:
        """Return the replica for a Fetch request, by topic id if the request has one.

        Raises:
            KafkaError: as `partition`, and UNKNOWN_TOPIC_ID for an unknown id, INCONSISTENT_TOPIC_ID if the topic's name has
                another id now.
        """
        found = self._find_for_fetch(wanted)
        if wanted.session is not None:
            wanted.session.follow(wanted, found)
        return found

    def _find_for_fetch(self, wanted: FetchPartition) -> Partition:
        topic_id = wanted.topic_id
        if topic_id == ZERO_UUID:
            if wanted.topic is None:
                raise StaleMetadataError(ErrorCode.UNKNOWN_TOPIC_ID)
            return self.partition(wanted.topic, wanted.index)
        hosted = self.topics_by_id.get(topic_id)
        if hosted is not None:
            wanted.topic = hosted.name
            found = hosted.partitions.get(wanted.index)
            if found is not None:
                return found
            raise self._no_replica(hosted.name, wanted.index)
        if wanted.topic is None:
            wanted.topic = None if self.image is None else self.image.topics.name_of(topic_id)
            if wanted.topic is None:
                raise StaleMetadataError(ErrorCode.UNKNOWN_TOPIC_ID)
            raise self._no_replica(wanted.topic, wanted.index)
        if wanted.topic in self.topics:
            raise StaleMetadataError(ErrorCode.INCONSISTENT_TOPIC_ID)
        raise self._no_replica(wanted.topic, wanted.index)

    def disk_failed(self, partition: Partition, error: KafkaStorageError) -> None:
        """Give up a directory, or stop this broker, after a failed write to a partition that others lead or can lead.

        If this broker went on, the partitions that it leads would take no records until someone made room, and producers to the
        partitions that it follows would wait until it left their ISR. A leader alone in the ISR cannot be replaced, so it continues and
        serves reads.
        """
        if self.on_bad_write is not None:
            self.on_bad_write(partition, error)
        else:
            self.stop_for_disk(error)

    def stop_for_disk(self, error: KafkaStorageError) -> None:
        """Stop this broker, once."""
        stop, self.on_disk_failure = self.on_disk_failure, None
        if stop is not None:
            stop(error)

    def high_watermark_moved(self, partition: Partition) -> None:
        """Wake the producers that wait for the commit, and the consumers that wait for records.

        Followers learn of it from the answer to their next fetch, or when their waiting fetch expires. If they were woken now, they would
        fetch twice as often (KAFKA-9731).
        """
        self.delayed_produces.notify(partition)
        self.fetches.wake(partition, -1, also_followers=False)

    def log_synced(self, partition: Partition) -> None:
        self.delayed_produces.notify(partition)

    def follower_fetched(self, partition: Partition, replica_id: int, *, has_moved: bool) -> None:
        """Wake the requests that wait for this follower, and propose that it joins the ISR if it may."""
        if has_moved:
            self.high_watermark_moved(partition)
        if partition in self.delayed_deletions.watchers:
            self.delayed_deletions.notify(partition)
        if self.replicated_partitions is not None and replica_id not in partition.state.maximal_isr:
            self.replicated_partitions.try_to_expand(partition, replica_id)

    def follower_advanced(self, partition: Partition) -> None:
        """Wake the consumers that read here: this follower has fetched records, or knows more of them to be committed."""
        self.fetches.wake(partition, -1)

    def preferred_read_replica(self, partition: Partition, fetch_offset: int, params: FetchParams) -> int:
        """Return the replica that a consumer should read from instead of this leader, or -1."""
        assert self.image is not None
        brokers = self.image.cluster.brokers
        return replica_in_rack(partition, params.rack, fetch_offset, brokers, params.listener)

    def holds_back(self, partition: Partition) -> bool:
        """Return whether the followers of a partition that are not in sync must wait for the leader's quota."""
        quota = self.leader_quota
        return quota.is_throttled(partition.topic.name, partition.index) and quota.is_exceeded()

    def replicated(self, read: Reading) -> None:
        """Count the bytes that a follower gets, in sync or not."""
        for wanted, data in read.results:
            records = data.records
            # Records are a slice of the log; a partition without records has empty bytes.
            if records is None or isinstance(records, bytes | bytearray | memoryview):
                continue
            assert wanted.partition is not None, "records without a partition"
            if self.leader_quota.is_throttled(wanted.partition.topic.name, wanted.index):
                self.leader_quota.record(records.size)

    def log_start_moved(self, partition: Partition) -> None:
        """Mark the partition as changed in fetch sessions: records were deleted."""
        self.fetches.wake(partition, 0)

    def _retained(self, key: tuple[str, int]) -> None:
        """Let the followers of a partition know soon that retention has moved its log start, also without a write."""
        topic = self.topics.get(key[0])
        partition = None if topic is None else topic.partitions.get(key[1])
        if partition is not None:
            self.log_start_moved(partition)

    # Writing

    def append(
        self, topic: str, index: int, records: memoryview, acks: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendInfo:
        """Append to a partition that this broker leads; see `append_to`."""
        return self.append_to(self.partition(topic, index), records, acks, origin)

    def append_to(
        self,
        partition: Partition,
        records: memoryview,
        acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        opened: Opened | None = None,
    ) -> AppendInfo:
        """Append whole batches and wake the fetches that wait for them.

        Args:
            records: writable; offset and leader epoch are set in place.
            acks: -1 demands enough in-sync replicas; `await_commits` waits for them.
            opened: as `PartitionLog.append_as_leader`.

        Raises:
            RecordsToOpen: only with `opened`.
            KafkaError: nothing was appended.
        """
        traffic = partition.topic.traffic
        traffic.produces += 1
        try:
            info = partition.append_as_leader(records, acks, origin, guard, transaction_version, opened)
        except KafkaError as error:
            if error.code not in EXPECTED_APPEND_ERRORS:
                traffic.failed_produces += 1
            if self.on_bad_write is not None and isinstance(error, KafkaStorageError) and is_of_a_bad_disk(error):
                self.on_bad_write(partition, error)
            raise
        except RecordsToOpen:
            traffic.produces -= 1  # The caller appends again.
            raise
        traffic.bytes_in += len(records)
        traffic.messages_in += info.last_offset - info.base_offset + 1
        if partition.observers or partition in self._fetch_watchers:
            # A marker is small, but all records behind it become readable.
            self.fetches.wake(partition, -1 if origin is AppendOrigin.COORDINATOR else len(records))
        return info

    async def await_commits(self, commits: Sequence[AwaitedOffset], timeout_ms: int) -> None:
        """Wait until the outcome of each append is known; after `timeout_ms` it is REQUEST_TIMED_OUT."""
        await all_settled(commits, self.delayed_produces, timeout_ms)

    async def await_deletions(self, deletions: Sequence[AwaitedDeletion], timeout_ms: int) -> None:
        """As `await_commits`, for deleted records."""
        await all_settled(deletions, self.delayed_deletions, timeout_ms)

    def append_internal(
        self,
        topic: str,
        index: int,
        batch: bytearray,
        *,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[int]:
        """Append a coordinator's batch; the future resolves with its last offset once it is committed.

        The future fails if this broker no longer leads the partition, and with REQUEST_TIMED_OUT after a time limit.

        Args:
            guard, transaction_version: as `Partition.append_as_leader`.
            timeout_ms: None for no time limit.

        Raises:
            KafkaError: nothing was appended.
        """
        partition = self.partition(topic, index)
        info = self.append_to(
            partition, memoryview(batch), ACKS_ALL, AppendOrigin.COORDINATOR, guard, transaction_version
        )
        last_offset = info.last_offset
        if partition.log.high_watermark > last_offset:  # A sole replica commits as it appends.
            future: asyncio.Future[int] = self._loop.create_future()
            future.set_result(last_offset)
            return future
        return self._commit_of(partition, last_offset, timeout_ms)

    def _commit_of(self, partition: Partition, last_offset: int, timeout_ms: int | None) -> asyncio.Future[int]:
        operation = DelayedCommit(self._loop, partition, last_offset)
        operation.notified(0)
        if not operation.is_finished:
            self.delayed_produces.watch(operation, (partition,), timeout_ms)
        return operation.future

    def committed_offset_internal(self, topic: str, index: int) -> int:
        """Return the high watermark of a partition.

        Raises:
            KafkaError: the replica is not here, or its log cannot be opened.
        """
        return self.partition(topic, index).log.high_watermark

    def commit_of_internal(self, topic: str, index: int, last_offset: int) -> asyncio.Future[int]:
        """Return the future that `append_internal` would return for an append up to `last_offset`.

        Raises:
            KafkaError: the replica is not here.
        """
        return self._commit_of(self.partition(topic, index), last_offset, None)

    def is_writable_internal(self, topic: str, index: int) -> bool:
        """Return whether this broker leads the partition and has enough in-sync replicas for `append_internal`."""
        hosted = self.topics.get(topic)
        partition = None if hosted is None else hosted.partitions.get(index)
        return partition is not None and partition.is_leader and not partition.is_under_min_isr

    def read_internal(self, topic: str, index: int, from_offset: int) -> Iterator[memoryview]:
        """Yield the batches of a partition one by one, from `from_offset` or the log start to the log end.

        A coordinator also reads above the high watermark, because it reads only once, and the records there may be committed a moment
        later. It uses them when they are committed (`commit_of_internal`).

        Raises:
            KafkaError: the replica is not here, or reading the log failed.
        """
        log = self.partition(topic, index).log
        offset = max(from_offset, log.log_start_offset)
        end = log.log_end_offset
        while offset < end:
            chunk = memoryview(log.read(offset, INTERNAL_READ_BYTES, max_offset=end, min_one=True).read())
            before = offset
            for position, header in iter_batches(chunk):
                offset = header.next_offset
                yield chunk[position : position + header.size]
            if offset <= before:
                return
