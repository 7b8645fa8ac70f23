"""GroupCoordinator: the front of the groups of this broker (control plane).

It finds the partition of a group, runs the operation on that partition's shard through the runtime, and turns what the runtime
answers into the response of the API. A group's partition is Java's hash of its id modulo the number of partitions of
`__consumer_offsets`, as every client and every other broker computes it.

Errors of the log are not what clients of groups know, so they are translated (`rebalance.append_error`): a partition that is gone or
has too few replicas is COORDINATOR_NOT_AVAILABLE, a lost leadership NOT_COORDINATOR.

The code of the groups themselves is imported with the first partition led: most of a broker's starts are without it.

Sources: Kafka class `GroupCoordinatorService`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.coordinator_log import CoordinatorLog, RecordSerde
from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime, Loop
from barnabas.coordinator.future_steps import answered, gathered
from barnabas.coordinator.partition_for import partition_for
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.compression import Compression

if TYPE_CHECKING:
    from barnabas.coordinator.result import CoordinatorResult
    from barnabas.group.group_shard import GroupCoordinatorShard
    from barnabas.metadata.topics_image import TopicsDelta
    from barnabas.protocol.messages import (
        DeleteGroupsResponse,
        DescribeGroupsResponse,
        HeartbeatRequest,
        HeartbeatResponse,
        JoinGroupRequest,
        JoinGroupResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        ListGroupsRequest,
        ListGroupsResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        OffsetFetchRequest,
        OffsetFetchResponse,
        SyncGroupRequest,
        SyncGroupResponse,
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
    )
    from barnabas.transaction.marker_writer import Marker

R = TypeVar("R")

GROUP_METADATA_TOPIC = "__consumer_offsets"


class GroupCoordinator:
    """The group coordinator of one broker."""

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        log: CoordinatorLog,
        *,
        loop: Loop,
        now_ms: Callable[[], int],
        rng: random.Random,
        partition_count: Callable[[], int] | None = None,
        image: Callable[[], MetadataImage] = MetadataImage,
        group_configs: GroupConfigs | None = None,
    ) -> None:
        """Make a coordinator that leads nothing yet.

        Args:
            log: the partitions of `__consumer_offsets`.
            rng: for member ids.
            partition_count: how many partitions the topic has (default: as configured).
            image: the committed metadata as of now.
            group_configs: the settings that groups may have of their own.
        """
        self._config = config
        self._loop = loop
        self._partition_count = partition_count or (lambda: config.offsets_topic_num_partitions)

        def new_shard(partition: int, timer: CoordinatorTimer) -> GroupCoordinatorShard:
            # A broker without groups starts without their code.
            from barnabas.group.group_environment import GroupEnvironment
            from barnabas.group.group_shard import GroupCoordinatorShard
            from barnabas.group.rebalance_history import RebalanceHistory

            return GroupCoordinatorShard(
                GroupEnvironment(
                    partition=partition,
                    config=config,
                    group_configs=group_configs or GroupConfigs(),
                    timer=timer,
                    now_ms=now_ms,
                    rng=rng,
                    image=image,
                    history=RebalanceHistory(config.rebalance_history_size, now_ms),
                )
            )

        self._runtime: CoordinatorRuntime[GroupCoordinatorShard] = CoordinatorRuntime(
            name="group",
            log=log,
            serde=RecordSerde("group"),
            new_shard=new_shard,
            loop=loop,
            now_ms=now_ms,
            write_timeout_ms=config.offsets_commit_timeout_ms,
            max_batch_bytes=config.max_batch_bytes,
            compression=Compression(config.offsets_topic_compression_codec),
        )

    def __repr__(self) -> str:
        return f"GroupCoordinator(active={self._runtime.active_partitions()})"

    # -- elections ---------------------------------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group_id, self._partition_count())

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker leads a partition of `__consumer_offsets`."""
        self._runtime.on_elected(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """This broker leads the partition no more."""
        self._runtime.on_resigned(partition, epoch)

    def on_topics_changed(self, delta: TopicsDelta) -> None:
        """Tell the groups that topics were created, changed or deleted."""
        for future in self._runtime.schedule_write_all(lambda shard: shard.on_topics_changed(delta)):
            future.add_done_callback(lambda done: done.exception())  # A partition that is going takes its groups along.

    def on_topics_deleted(self, topics: Mapping[str, bytes]) -> None:
        """Forget the offsets of deleted topics (name to id)."""
        for future in self._runtime.schedule_write_all(lambda shard: shard.on_topics_deleted(dict(topics))):
            future.add_done_callback(lambda done: done.exception())  # What is not written now expires later.

    def close(self) -> None:
        """Give up all groups; members that wait are told to look for another coordinator."""
        self._runtime.close()

    def active_shards(self) -> list[GroupCoordinatorShard]:
        """The shards that answer, for whoever counts groups and their lag."""
        return self._runtime.active_shards()

    @property
    def consumer_assignors(self) -> tuple[str, ...]:
        """The assignors that members of consumer groups may ask for, by name."""
        return self._config.group_consumer_assignors

    # -- any operation -----------------------------------------------------------------------------------------------

    def write(
        self, group_id: str, operation: Callable[[GroupCoordinatorShard], CoordinatorResult[R]]
    ) -> asyncio.Future[R]:
        """Run an operation on the shard of a group; the future fails with KafkaError (see `append_error`)."""
        return self._runtime.schedule_write(self.partition_of(group_id), operation)

    def read(self, group_id: str, operation: Callable[[GroupCoordinatorShard], R]) -> asyncio.Future[R]:
        """Compute an answer from the shard of a group; the future fails with KafkaError."""
        return self._runtime.schedule_read(self.partition_of(group_id), operation)

    # -- the classic protocol ----------------------------------------------------------------------------------------

    def join_group(
        self, request: JoinGroupRequest, version: int, client_id: str, client_host: str
    ) -> asyncio.Future[JoinGroupResponse]:
        """JoinGroup: the answer comes when the rebalance is complete."""
        response: asyncio.Future[JoinGroupResponse] = self._loop.create_future()
        if not request.group_id:
            response.set_result(_join_error(request.member_id, ErrorCode.INVALID_GROUP_ID))
            return response
        config = self._config
        if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
            response.set_result(_join_error(request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT))
            return response

        def reply(answer: JoinGroupResponse) -> None:
            if not response.done():
                response.set_result(answer)

        from barnabas.group.classic.join_group import Joining

        joining = Joining(request, version, client_id, client_host, reply)
        written = self._runtime.schedule_write(
            self.partition_of(request.group_id), lambda shard: shard.join_group(joining)
        )
        self._reply_on_error(written, lambda code: reply(_join_error("", code)))
        return response

    def sync_group(self, request: SyncGroupRequest) -> asyncio.Future[SyncGroupResponse]:
        """SyncGroup: the answer comes when the leader's assignment is written."""
        response: asyncio.Future[SyncGroupResponse] = self._loop.create_future()
        if not request.group_id:
            response.set_result(messages.SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return response

        def reply(answer: SyncGroupResponse) -> None:
            if not response.done():
                response.set_result(answer)

        written = self._runtime.schedule_write(
            self.partition_of(request.group_id), lambda shard: shard.sync_group(request, reply)
        )
        self._reply_on_error(written, lambda code: reply(messages.SyncGroupResponse(error_code=code)))
        return response

    @staticmethod
    def _reply_on_error(written: asyncio.Future[None], reply: Callable[[ErrorCode], None]) -> None:
        def check(done: asyncio.Future[None]) -> None:
            error = done.exception()
            if isinstance(error, KafkaError):
                reply(append_error(error))
            elif error is not None:
                raise error

        if written.done():
            check(written)
        else:
            written.add_done_callback(check)

    def heartbeat(self, request: HeartbeatRequest) -> asyncio.Future[HeartbeatResponse]:
        """Heartbeat; while the group is being loaded it always succeeds, so that members stay calm."""

        def on_error(error: KafkaError) -> HeartbeatResponse:
            loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return messages.HeartbeatResponse(error_code=ErrorCode.NONE if loading else append_error(error))

        if not request.group_id:
            return self._done(messages.HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        future = self._runtime.schedule_write(
            self.partition_of(request.group_id), lambda shard: shard.heartbeat(request)
        )
        return answered(self._loop, future, _same, on_error)

    def leave_group(self, request: LeaveGroupRequest) -> asyncio.Future[LeaveGroupResponse]:
        """LeaveGroup, with an outcome for each member named."""

        def on_error(error: KafkaError) -> LeaveGroupResponse:
            code = append_error(error)
            if code is not ErrorCode.UNKNOWN_MEMBER_ID:
                return messages.LeaveGroupResponse(error_code=code)
            members = [
                messages.LeaveGroupResponse.MemberResponse(
                    member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code
                )
                for member in request.members
            ]
            return messages.LeaveGroupResponse(members=members)

        if not request.group_id:
            return self._done(messages.LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        future = self._runtime.schedule_write(
            self.partition_of(request.group_id), lambda shard: shard.leave_group(request)
        )
        return answered(self._loop, future, _same, on_error)

    # -- offsets -----------------------------------------------------------------------------------------------------

    def offset_commit(self, request: OffsetCommitRequest, version: int) -> asyncio.Future[OffsetCommitResponse]:
        """OffsetCommit of topics that exist; an error of the whole request is given to each partition."""
        future = self._runtime.schedule_write(
            self.partition_of(request.group_id), lambda shard: shard.commit_offsets(request, version)
        )
        return answered(self._loop, future, _same, lambda error: offset_commit_error(request, append_error(error)))

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int, guard: object
    ) -> asyncio.Future[TxnOffsetCommitResponse]:
        """TxnOffsetCommit of topics that exist.

        Args:
            guard: proves that the transaction includes the group's partition.

        Returns: a future; it fails with KafkaError, which then goes for every partition.
        """
        return self._runtime.schedule_transactional_write(
            self.partition_of(request.group_id),
            request.producer_id,
            request.producer_epoch,
            lambda shard: shard.commit_transactional_offsets(request, version),
            guard,
        )

    def complete_transaction(self, partition: int, marker: Marker, batch: bytearray) -> asyncio.Future[None]:
        """Write a transaction's marker into a partition of `__consumer_offsets`, and settle its pending offsets.

        Args:
            batch: the marker as it goes into the log.

        Returns: a future; it fails with KafkaError.
        """
        return self._runtime.complete_transaction(
            partition,
            marker.producer_id,
            batch=batch,
            committed=marker.commit,
            transaction_version=marker.transaction_version,
        )

    def offset_fetch(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> asyncio.Future[OffsetFetchResponse.OffsetFetchResponseGroup]:
        """The committed offsets of one group."""

        def on_error(error: KafkaError) -> OffsetFetchResponse.OffsetFetchResponseGroup:
            code = append_error(error)
            if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                code = ErrorCode.NOT_COORDINATOR  # Consumers before 3.9 do not know the other as retriable here.
            return messages.OffsetFetchResponse.OffsetFetchResponseGroup(group_id=request.group_id, error_code=code)

        future = self._runtime.schedule_read(
            self.partition_of(request.group_id), lambda shard: shard.fetch_offsets(request, require_stable)
        )
        return answered(self._loop, future, _same, on_error)

    def offset_delete(self, request: OffsetDeleteRequest) -> asyncio.Future[OffsetDeleteResponse]:
        """OffsetDelete."""
        if not request.group_id:
            return self._done(messages.OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        future = self._runtime.schedule_write(
            self.partition_of(request.group_id), lambda shard: shard.delete_offsets(request)
        )
        return answered(
            self._loop, future, _same, lambda error: messages.OffsetDeleteResponse(error_code=append_error(error))
        )

    # -- administration ----------------------------------------------------------------------------------------------

    def describe_groups(
        self, group_ids: Sequence[str], version: int
    ) -> asyncio.Future[list[DescribeGroupsResponse.DescribedGroup]]:
        """Describe groups, in the order asked."""

        def one(group_id: str) -> asyncio.Future[DescribeGroupsResponse.DescribedGroup]:
            future = self._runtime.schedule_read(
                self.partition_of(group_id), lambda shard: shard.describe_groups([group_id], version)[0]
            )
            return answered(
                self._loop,
                future,
                _same,
                lambda error: messages.DescribeGroupsResponse.DescribedGroup(
                    group_id=group_id, error_code=append_error(error)
                ),
            )

        return gathered(self._loop, [one(group_id) for group_id in group_ids], list)

    def list_groups(self, request: ListGroupsRequest) -> asyncio.Future[ListGroupsResponse]:
        """List the groups of this broker, by state and type."""
        states = frozenset(state.lower().strip() for state in request.states_filter)
        types = frozenset(kind.lower() for kind in request.types_filter)

        def one(
            future: asyncio.Future[list[ListGroupsResponse.ListedGroup]],
        ) -> asyncio.Future[list[ListGroupsResponse.ListedGroup]]:
            def unless_elsewhere(error: KafkaError) -> list[ListGroupsResponse.ListedGroup]:
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return []
                raise error

            return answered(self._loop, future, _same, unless_elsewhere)

        listed = [one(future) for future in self._runtime.schedule_read_all(lambda s: s.list_groups(states, types))]
        return answered(
            self._loop,
            gathered(self._loop, listed, lambda parts: [group for part in parts for group in part]),
            lambda groups: messages.ListGroupsResponse(groups=groups),
            lambda error: messages.ListGroupsResponse(error_code=append_error(error)),
        )

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> asyncio.Future[list[DeleteGroupsResponse.DeletableGroupResult]]:
        """Delete groups with their offsets, in the order asked; a group named twice is deleted once."""
        Result = messages.DeleteGroupsResponse.DeletableGroupResult

        def one(group_id: str) -> asyncio.Future[DeleteGroupsResponse.DeletableGroupResult]:
            future = self._runtime.schedule_write(
                self.partition_of(group_id), lambda shard: shard.delete_groups([group_id])
            )
            return answered(
                self._loop,
                future,
                lambda results: results[0],
                lambda error: Result(group_id=group_id, error_code=append_error(error)),
            )

        return gathered(self._loop, [one(group_id) for group_id in dict.fromkeys(group_ids)], list)

    def _done(self, response: R) -> asyncio.Future[R]:
        future: asyncio.Future[R] = self._loop.create_future()
        future.set_result(response)
        return future


def offset_commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition of a commit."""
    topics = [
        messages.OffsetCommitResponse.OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                messages.OffsetCommitResponse.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return messages.OffsetCommitResponse(topics=topics)


def _join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return messages.JoinGroupResponse(member_id=member_id, error_code=error)


def _same(value: R) -> R:
    return value
