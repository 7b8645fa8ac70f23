"""Brokers whose logs are on simulated disks, with the leader's side of Fetch and ListOffsets: what the tests of followers share."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendOrigin, PartitionLog
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from barnabas.records.record_batch import iter_batches
from barnabas.replication.fetch_reader import FetchParams, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.fetch_session_cache import FetchSessionCache
from barnabas.replication.hosted_topic import HostedTopic
from barnabas.replication.offset_lookup import lookup_offset
from barnabas.replication.partition import Partition
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once
from tests.replication.hosting import batch, topic_id

FETCH_VERSION = 18
EVERYTHING = 1 << 30


class Node:
    """One broker with replicas of one topic; it is their host, and its fetch sessions' lookup."""

    lag_time_max_ms = 10_000

    def __init__(self, node_id: int, partitions: int = 1, config: Callable[[], LogConfig] = LogConfig) -> None:
        self.node_id = node_id
        self.now_ms = 0
        self.disk_failures: list[Partition] = []
        self.syncs: list[Partition] = []
        self.disk = SimDisk()
        self.topic = HostedTopic("orders", topic_id(1), lambda _: config())
        self.sessions = FetchSessionCache(10, random.Random(node_id))
        for index in range(partitions):
            self.topic.partitions[index] = Partition(self.topic, index, node_id, self)

    # As the replicas' host

    def open_log(self, partition: Partition) -> PartitionLog:
        name = f"/{self.topic.name}-{partition.index}"
        return PartitionLog(self.disk, name, self.topic.config, now_ms=lambda: self.now_ms)

    def monotonic_ms(self) -> int:
        return self.now_ms

    def broker_epoch(self, broker_id: int) -> int:
        return 100 + broker_id

    def is_in_service(self, broker_id: int) -> bool:
        return True

    def high_watermark_moved(self, partition: Partition) -> None:
        self._wake(partition)

    def log_synced(self, partition: Partition) -> None:
        self.syncs.append(partition)

    def disk_failed(self, partition: Partition, error: KafkaStorageError) -> None:
        self.disk_failures.append(partition)

    def follower_fetched(self, partition: Partition, replica_id: int, *, has_moved: bool) -> None:
        if has_moved:
            self._wake(partition)

    def preferred_read_replica(self, partition: Partition, fetch_offset: int, params: FetchParams) -> int:
        return -1

    def holds_back(self, partition: Partition) -> bool:
        return False

    def partition_for_fetch(self, wanted: FetchPartition) -> Partition:
        if wanted.topic_id != self.topic.topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        found = self.topic.partitions[wanted.index]
        if wanted.session is not None:
            wanted.session.follow(wanted, found)
        return found

    def _wake(self, partition: Partition) -> None:
        for observer in partition.observers or ():
            observer.note_change(also_followers=True)

    # What a test does

    def replica(self, index: int = 0) -> Partition:
        return self.topic.partitions[index]

    def log(self, index: int = 0) -> PartitionLog:
        return self.replica(index).log

    def lead(self, registration: PartitionRegistration, index: int = 0) -> Partition:
        """Apply a registration, which names this broker or another one as the leader; return the replica."""
        partition = self.replica(index)
        partition.update(registration)
        self._wake(partition)
        return partition

    def append(self, *values: bytes, index: int = 0) -> int:
        partition = self.replica(index)
        info = partition.append_as_leader(batch(*values, timestamp=self.now_ms), 1, AppendOrigin.CLIENT)
        self._wake(partition)
        return info.base_offset

    def delete_before(self, offset: int, index: int = 0) -> None:
        self.log(index).delete_records_before(offset)
        self._wake(self.replica(index))

    def batches(self, index: int = 0) -> dict[int, bytes]:
        """Return each batch of a log by its base offset."""
        return batches_of(self.log(index))

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Answer at once; records are slices of the log's files, as they are when somebody reads them."""
        request = FetchRequest.decode(request.encode(FETCH_VERSION), FETCH_VERSION)
        wanted = [
            FetchPartition(
                self.topic.name,
                topic.topic_id,  # type: ignore[arg-type]
                asked.partition,
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
                asked.log_start_offset,
            )
            for topic in request.topics
            for asked in topic.partitions
        ]
        forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
        asked_for = self.sessions.context(
            request.session_id,
            request.session_epoch,
            wanted,
            forgotten,
            uses_topic_ids=True,
            is_follower=True,
            now_ms=self.now_ms,
        )
        context = at_once(asked_for)
        if context.error:
            return at_once(context.respond(None, request.session_epoch))
        replica = request.replica_state
        params = FetchParams(
            FETCH_VERSION, replica.replica_id, 0, 1, request.max_bytes, 0, context.session is not None, False,
            replica.replica_epoch,
        )  # fmt: skip
        ready = list(context.partitions) if context.session is None else list(context.session.ready)
        reading = Reading(params, self)
        for each in ready:
            if reading.read(each):
                assert context.session is not None, "only a session has idle partitions"
                context.session.ready.pop(each, None)
        return at_once(context.respond(reading, request.session_epoch))

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = ListOffsetsResponse()
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                answer = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=asked.partition_index)
                partition = self.replica(asked.partition_index)
                try:
                    partition.check_leader(asked.current_leader_epoch)
                    answer.offset = lookup_offset(partition, asked.timestamp, None).offset
                except KafkaError as error:
                    answer.error_code = int(error.code)
                answers.append(answer)
            response.topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return response


def batches_of(log: PartitionLog) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, EVERYTHING, max_offset=log.log_end_offset).read()
        if not data:
            break
        for position, header in iter_batches(data):
            found[header.base_offset] = data[position : position + header.size]
            offset = header.next_offset
    return found


def over_the_wire(response: FetchResponse, version: int = FETCH_VERSION) -> FetchResponse:
    """Return an answer as it arrives: its records are read now.

    Raises:
        KafkaError: the log has been truncated meanwhile, and the connection breaks off.
    """
    for topic in response.responses:
        for data in topic.partitions:
            read: Callable[[], Any] | None = getattr(data.records, "read", None)
            if read is not None:
                data.records = read()
    return FetchResponse.decode(response.encode(version), version)


def registration(
    leader: int = 1,
    epoch: int = 0,
    *,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    partition_epoch: int | None = None,
) -> PartitionRegistration:
    return PartitionRegistration(
        replicas, replicas if isr is None else isr, leader, epoch, epoch if partition_epoch is None else partition_epoch
    )
