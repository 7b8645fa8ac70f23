"""StreamsGroup: the members of a Kafka Streams application, to which the coordinator assigns tasks.

    group epoch       grows when members, the topology, its topics or the assignment settings change
    assignment epoch  the group epoch for which the target assignment was computed
    member epoch      the assignment epoch that a member has reached

    Empty ──join──> NotReady ──topology and its topics are there──> Assigning ──target computed──> Reconciling ──> Stable
                                                                       ^───────── a new epoch ────────────────────────┘

State that is in the log moves in `replay` only, through the methods of the first half of the class. The rest may be lost: the configured
topology, reported task offsets, a request to shut down, the epoch of the endpoints, the deadline for checking topics.

Invariants:
- the owners of tasks (`owners`) are those of `members`, assigned and pending revocation;
- a configured topology is valid only for the topology and metadata hash it was made from (`configured_topology`), so a heartbeat
  whose records are refused leaves nothing wrong behind.

Sources: KIP-1071, KIP-1251 (assignment epochs fence commits); Kafka class `StreamsGroup`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.epoch_group import EpochGroup
from barnabas.group.group import GroupType, OffsetCommitter, PartitionCheck
from barnabas.group.streams import records
from barnabas.group.streams.endpoints import EndpointPartitions
from barnabas.group.streams.member import MemberTaskOffsets, StreamsGroupMember
from barnabas.group.streams.reconciliation import TaskOwners
from barnabas.group.streams.tasks import TasksTuple, TasksTupleWithEpochs, without_epochs
from barnabas.group.streams.topic_configuration import ConfiguredTopology
from barnabas.group.streams.topology import StreamsTopology
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupDescribeResponse

MEMBER_EPOCHS_SINCE = 9
"""The first version of OffsetCommit with member epochs."""
NOT_VALIDATED = -1
NO_ASSIGNMENT_EPOCH = -1


class StreamsGroupState(Enum):
    """As Kafka's tools show it."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsGroup(EpochGroup[StreamsGroupMember]):
    """One streams group."""

    type = GroupType.STREAMS
    protocol_type = "streams"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = NOT_VALIDATED
        self.assignment_configs: Mapping[str, str] = {}
        self.topology: StreamsTopology | None = None
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.target_assignment: dict[str, TasksTuple] = {}
        self._active: dict[tuple[str, int], str] = {}
        self._standby: dict[tuple[str, int], frozenset[str]] = {}
        self._warmup: dict[tuple[str, int], frozenset[str]] = {}
        self._state: StreamsGroupState | None = None
        # What may be lost.
        self._configured: ConfiguredTopology | None = None
        self.task_offsets: dict[str, MemberTaskOffsets] = {}
        self.shutdown_requested_by: str | None = None
        self.endpoint_epoch = 0
        self.endpoints = EndpointPartitions()

    # State that replay moves

    def set_metadata(
        self, epoch: int, metadata_hash: int, validated_topology_epoch: int, assignment_configs: Mapping[str, str]
    ) -> None:
        """The group has reached an epoch."""
        self.group_epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.assignment_configs = assignment_configs
        self._state = None

    def set_topology(self, topology: StreamsTopology | None) -> None:
        """Set the topology; None if the group is being deleted."""
        self.topology = topology
        self._state = None

    def set_assignment_metadata(self, epoch: int, timestamp_ms: int) -> None:
        """Set the group epoch of the target assignment."""
        self.assignment_epoch = epoch
        self.assignment_timestamp_ms = timestamp_ms
        self._state = None

    def update_target_assignment(self, member_id: str, tasks: TasksTuple) -> None:
        """Set a member's target."""
        self.target_assignment[member_id] = tasks

    def remove_target_assignment(self, member_id: str) -> None:
        """A member has no target."""
        self.target_assignment.pop(member_id, None)

    def update_member(self, member: StreamsGroupMember) -> None:
        """Add or change a member."""
        old = self.members.get(member.member_id)
        self._forget_owner(old)
        if old is not None and old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)
        self.members[member.member_id] = member
        for tasks in (member.assigned, member.pending_revocation):
            self._remember_owner(tasks, member.process_id)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.endpoints.forget(member.member_id)
        self._state = None

    def remove_member(self, member_id: str) -> None:
        """Remove a member if it exists."""
        old = self.members.pop(member_id, None)
        self._forget_owner(old)
        if old is not None and old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]
        self.task_offsets.pop(member_id, None)
        self.endpoints.forget(member_id)
        if not self.members:
            self.shutdown_requested_by = None
        self._state = None

    def _remember_owner(self, tasks: TasksTupleWithEpochs, process_id: str) -> None:
        for name, epochs in tasks.active.items():
            self._active.update(((name, index), process_id) for index in epochs)
        for own, owners in ((tasks.standby, self._standby), (tasks.warmup, self._warmup)):
            for name, indexes in own.items():
                for task in ((name, index) for index in indexes):
                    owners[task] = owners.get(task, frozenset()) | {process_id}

    def _forget_owner(self, member: StreamsGroupMember | None) -> None:
        if member is None:
            return
        for tasks in (member.assigned, member.pending_revocation):
            for name, epochs in tasks.active.items():
                for index in epochs:
                    # An earlier record of the same step may have given the task to another process.
                    if self._active.get((name, index)) == member.process_id:
                        del self._active[name, index]
            for own, owners in ((tasks.standby, self._standby), (tasks.warmup, self._warmup)):
                for name, indexes in own.items():
                    for task in ((name, index) for index in indexes):
                        owners[task] = owners.get(task, frozenset()) - {member.process_id}
                        if not owners[task]:
                            del owners[task]

    # Its present state

    @property
    def state(self) -> StreamsGroupState:
        if self._state is None:
            self._state = self._compute_state()
        return self._state

    def _compute_state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def state_name(self) -> str:
        return self.state.value

    def is_subscribed_to_topic(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.source_topics

    def static_member(self, instance_id: str) -> StreamsGroupMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def owners(self) -> TaskOwners:
        """Return which processes have which tasks."""
        return TaskOwners(
            active=lambda name, index: self._active.get((name, index)),
            standby=lambda name, index: self._standby.get((name, index), frozenset()),
            warmup=lambda name, index: self._warmup.get((name, index), frozenset()),
        )

    def describe(self, assignor: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        """For StreamsGroupDescribe."""
        assert self.topology is not None, f"{self!r} has no topology"
        configured = self.configured_topology
        ready = configured is not None and configured.is_ready
        return StreamsGroupDescribeResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name(),
            group_epoch=self.group_epoch,
            assignment_epoch=self.assignment_epoch,
            topology=configured.describe() if configured is not None and ready else self.topology.describe(),
            members=[
                member.describe(
                    self.target_assignment.get(member_id), self.task_offsets.get(member_id, MemberTaskOffsets())
                )
                for member_id, member in self.members.items()
            ],
            assignor_name=assignor,
        )

    # Checks

    def validate_offset_commit(self, committer: OffsetCommitter) -> PartitionCheck | None:
        """Accept a commit at the member's epoch; at an older one only for tasks assigned by then.

        Raises: KafkaError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, UNSUPPORTED_VERSION.
        """
        epoch = committer.epoch
        if epoch < 0 and not self.members:
            return None  # An administrator's commit.
        if committer.is_transactional and committer.names_no_member:
            return None  # A producer that sends no group metadata.
        member = self.member(committer.member_id)
        if not committer.is_transactional and committer.version < MEMBER_EPOCHS_SINCE:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise KafkaError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.",
            )
        if self.topology is None:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "Topology is not available for offset commit validation.")
        return self._assignment_epoch_check(self.topology, member, epoch)

    @staticmethod
    def _assignment_epoch_check(topology: StreamsTopology, member: StreamsGroupMember, epoch: int) -> PartitionCheck:
        def check(topic: str, topic_id: bytes, partition: int) -> ErrorCode:
            subtopology = topology.source_topics.get(topic)
            if subtopology is None:
                return ErrorCode.STALE_MEMBER_EPOCH
            for tasks in (member.assigned, member.pending_revocation):
                assigned_in = tasks.active.get(subtopology.subtopology_id, {}).get(partition)
                if assigned_in is not None:
                    return ErrorCode.NONE if epoch >= assigned_in else ErrorCode.STALE_MEMBER_EPOCH
            return ErrorCode.STALE_MEMBER_EPOCH

        return check

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        expected = self.member(member_id or "").member_epoch
        if member_epoch != expected:
            raise KafkaError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"The received member epoch {member_epoch} does not match the expected member epoch {expected}.",
            )

    def validate_offset_delete(self) -> None:
        """Accept always, as Kafka does; partitions of consumed topics are rejected one by one."""

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        group_id, members = self.group_id, self.members
        return [
            *(records.current_assignment_tombstone(group_id, member_id) for member_id in members),
            *(records.target_assignment_tombstone(group_id, member_id) for member_id in members),
            records.target_assignment_metadata_tombstone(group_id),
            *(records.member_metadata_tombstone(group_id, member_id) for member_id in members),
            records.group_metadata_tombstone(group_id),
            records.topology_tombstone(group_id),
        ]

    # What may be lost

    @property
    def configured_topology(self) -> ConfiguredTopology | None:
        """The configured topology, if it is of the present topology and topics."""
        known = self._configured
        if known is None or self.topology is None or known.topology_epoch != self.topology.epoch:
            return None
        return known if known.metadata_hash == self.metadata_hash else None

    def set_configured_topology(self, configured: ConfiguredTopology) -> None:
        self._configured = configured
        self.endpoints.clear()

    def active_holdings(self) -> dict[str, frozenset[tuple[str, int]]]:
        """The active tasks that each member has, for the history of rebalances."""
        return {
            member_id: frozenset(
                (name, index) for name, indexes in without_epochs(member.assigned.active).items() for index in indexes
            )
            for member_id, member in self.members.items()
        }
