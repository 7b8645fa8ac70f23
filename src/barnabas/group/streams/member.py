"""A member of a streams group: one stream thread of one application instance.

    metadata      the description of the member           StreamsGroupMemberMetadataValue
    assignment    its epoch, state and tasks              StreamsGroupCurrentMemberAssignmentValue

A member is a value; a change makes a new one, which becomes the group's by the replay of its records.

Sources: KIP-1071; Kafka classes `StreamsGroupMember`, `MemberState`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from barnabas.group.epoch_group import JOIN_EPOCH, LEAVE_EPOCH
from barnabas.group.sender import Sender
from barnabas.group.streams.tasks import (
    EMPTY_TASKS_WITH_EPOCHS,
    Tasks,
    TasksTuple,
    TasksTupleWithEpochs,
    TasksWithEpochs,
    tasks_of,
)
from barnabas.protocol.messages import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupMemberMetadataValue,
)


class MemberState(IntEnum):
    """How far a member is from its target assignment."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """It must give up tasks before it gets others."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that others have not given up yet."""
    UNKNOWN = 127
    """Written by a newer broker; the member must give up its tasks and join again."""


def state_of(value: int) -> MemberState:
    return MemberState(value) if value in MemberState._value2member_map_ else MemberState.UNKNOWN


Endpoint = tuple[str, int]
"""Host and port where a member answers interactive queries (`application.server`)."""


@dataclass(frozen=True, slots=True)
class StreamsGroupMember:
    """One member; epochs and -1 timeouts as in Kafka."""

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: TasksTupleWithEpochs = EMPTY_TASKS_WITH_EPOCHS
    pending_revocation: TasksTupleWithEpochs = EMPTY_TASKS_WITH_EPOCHS

    def __repr__(self) -> str:
        return f"<StreamsGroupMember {self.member_id} epoch={self.member_epoch} {self.state.name} {self.assigned}>"

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """True when the member has what the target assignment of that epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def moved_to(
        self,
        member_epoch: int,
        state: MemberState,
        assigned: TasksTupleWithEpochs,
        pending_revocation: TasksTupleWithEpochs = EMPTY_TASKS_WITH_EPOCHS,
    ) -> StreamsGroupMember:
        """The member in its next epoch."""
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def updated_by(self, request: StreamsGroupHeartbeatRequest, sender: Sender) -> StreamsGroupMember:
        """Return the member as changed by a heartbeat; null means unchanged (on joining, no endpoint means none)."""
        endpoint = None if request.user_endpoint is None else (request.user_endpoint.host, request.user_endpoint.port)
        joining = request.member_epoch == JOIN_EPOCH
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=sender.client_id,
            client_host=sender.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch if request.topology is None else request.topology.epoch,
            process_id=self.process_id if request.process_id is None else request.process_id,
            user_endpoint=self.user_endpoint if endpoint is None and not joining else endpoint,
            client_tags=self.client_tags
            if request.client_tags is None
            else {tag.key: tag.value for tag in request.client_tags},
        )

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsGroupMember:
        """The member as a metadata record describes it."""
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsGroupMember:
        """The member as an assignment record describes it."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=state_of(value.state),
            assigned=TasksTupleWithEpochs(
                _with_epochs(value.active_tasks, value.member_epoch),
                tasks_of(value.standby_tasks),
                tasks_of(value.warmup_tasks),
            ),
            pending_revocation=TasksTupleWithEpochs(
                _with_epochs(value.active_tasks_pending_revocation, value.member_epoch),
                tasks_of(value.standby_tasks_pending_revocation),
                tasks_of(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_assignment(self) -> StreamsGroupMember:
        """The member after the tombstone of its assignment."""
        return replace(
            self,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=EMPTY_TASKS_WITH_EPOCHS,
            pending_revocation=EMPTY_TASKS_WITH_EPOCHS,
        )

    def describe(self, target: TasksTuple | None, offsets: MemberTaskOffsets) -> StreamsGroupDescribeResponse.Member:
        """The member for StreamsGroupDescribe."""
        Response = StreamsGroupDescribeResponse
        active = {name: frozenset(partitions) for name, partitions in self.assigned.active.items()}
        return Response.Member(
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=None
            if self.user_endpoint is None
            else Response.Endpoint(host=self.user_endpoint[0], port=self.user_endpoint[1]),
            client_tags=[Response.KeyValue(key=key, value=value) for key, value in self.client_tags.items()],
            task_offsets=_described_offsets(offsets.offsets),
            task_end_offsets=_described_offsets(offsets.end_offsets),
            assignment=_described(TasksTuple(active, self.assigned.standby, self.assigned.warmup)),
            target_assignment=_described(target or TasksTuple()),
        )


@dataclass(frozen=True, slots=True)
class MemberTaskOffsets:
    """How far a member has restored the state of its tasks, and how far there is to go: offset sums by task. Not in the log."""

    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    end_offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def updated_by(self, request: StreamsGroupHeartbeatRequest) -> MemberTaskOffsets:
        """With what a heartbeat reports.

        Raises:
            ValueError: a task is named twice.
        """
        return MemberTaskOffsets(
            self.offsets if request.task_offsets is None else _offsets(request.task_offsets),
            self.end_offsets if request.task_end_offsets is None else _offsets(request.task_end_offsets),
        )


def _offsets(reported: Sequence[StreamsGroupHeartbeatRequest.TaskOffset]) -> dict[str, dict[int, int]]:
    result: dict[str, dict[int, int]] = {}
    for task in reported:
        of_subtopology = result.setdefault(task.subtopology_id, {})
        if task.partition in of_subtopology:
            raise ValueError(
                f"Task offsets contain a duplicate entry for subtopology {task.subtopology_id} "
                f"and partition {task.partition}."
            )
        of_subtopology[task.partition] = task.offset
    return result


def _with_epochs(
    entries: Sequence[StreamsGroupCurrentMemberAssignmentValue.TaskIds], member_epoch: int
) -> TasksWithEpochs:
    """Active tasks of a record; one from before there were assignment epochs means the member's epoch for all."""
    result: dict[str, dict[int, int]] = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is not None and len(epochs) == len(entry.partitions):
            result[entry.subtopology_id] = dict(zip(entry.partitions, epochs, strict=True))
        else:
            result[entry.subtopology_id] = dict.fromkeys(entry.partitions, member_epoch)
    return result


def _described(tasks: TasksTuple) -> StreamsGroupDescribeResponse.Assignment:
    def ids(entries: Tasks) -> list[StreamsGroupDescribeResponse.TaskIds]:
        return [
            StreamsGroupDescribeResponse.TaskIds(subtopology_id=name, partitions=sorted(entries[name]))
            for name in sorted(entries)
        ]

    return StreamsGroupDescribeResponse.Assignment(
        active_tasks=ids(tasks.active), standby_tasks=ids(tasks.standby), warmup_tasks=ids(tasks.warmup)
    )


def _described_offsets(offsets: Mapping[str, Mapping[int, int]]) -> list[StreamsGroupDescribeResponse.TaskOffset]:
    return [
        StreamsGroupDescribeResponse.TaskOffset(subtopology_id=name, partition=index, offset=offsets[name][index])
        for name in sorted(offsets)
        for index in sorted(offsets[name])
    ]
