"""A member of a consumer group, as its records show it.

    MemberMetadata     its description: subscription, assignor, rack, timeouts
    CurrentAssignment  its progress: epochs, state, assigned partitions, partitions to revoke

A member is replaced, never altered: a request works on copies, which are dropped if the log refuses the records.

    STABLE                   has its target assignment, at the group's assignment epoch (or behind, until its next heartbeat)
    UNREVOKED_PARTITIONS     must revoke partitions before it reaches the next epoch
    UNRELEASED_PARTITIONS    waits for partitions that others have to revoke
    UNKNOWN                  written by a newer broker: the member must rejoin

Partitions carry the epoch at which they were assigned, so that a commit from an older epoch can be judged (KIP-1251).

Source: Kafka classes `ConsumerGroupMember`, `MemberState`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from barnabas.group.epoch_group import LEAVE_EPOCH
from barnabas.protocol.messages import ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue

AssignmentWithEpochs = Mapping[bytes, Mapping[int, int]]
"""Topic id to partition index to the epoch at which the partition was assigned."""

NO_PARTITIONS: AssignmentWithEpochs = {}


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


class ClassicMemberMetadata(NamedTuple):
    """The fields of a classic member in a consumer group.

    Attributes:
        protocols: name and metadata, in the member's order of preference.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember:
    """One member.

    Attributes:
        member_epoch: 0 before its first assignment, -2 while a static member is away.
        previous_member_epoch: the epoch before; a member that lost a response repeats it.
        rebalance_timeout_ms: how long it may take to revoke partitions; -1 if unknown.
        subscribed_topic_regex: None or empty without one.
        classic: only of a member that speaks the classic protocol.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: AssignmentWithEpochs = field(default_factory=dict)
    pending_revocation: AssignmentWithEpochs = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    def __repr__(self) -> str:
        return f"<ConsumerGroupMember {self.member_id} epoch={self.member_epoch} {self.state.name}>"

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def regex(self) -> str:
        """The expression it subscribes to; empty without one."""
        return self.subscribed_topic_regex or ""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has reached the target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch at which the partition was assigned; None if the member does not own the partition."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if epoch is None else epoch

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
        """Return the member after a MemberMetadata record."""
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicMemberMetadata(
                classic.session_timeout_ms, tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols)
            ),
        )

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        """Return the value of the MemberMetadata record."""
        Classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.subscribed_topic_names),
            subscribed_topic_regex=self.subscribed_topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None
            if self.classic is None
            else Classic(
                session_timeout_ms=self.classic.session_timeout_ms,
                supported_protocols=[
                    ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                    for name, metadata in self.classic.protocols
                ],
            ),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
        """Return the member after a CurrentAssignment record."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_read(value.assigned_partitions, value.member_epoch),
            pending_revocation=_read(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> ConsumerGroupMember:
        """Return the member after the tombstone of its CurrentAssignment: it is about to be removed."""
        return replace(
            self,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )

    def assignment_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Return the value of the CurrentAssignment record."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state.value,
            assigned_partitions=_written(self.assigned),
            partitions_pending_revocation=_written(self.pending_revocation),
        )


def with_epoch(assignment: Mapping[bytes, Iterable[int]], epoch: int) -> AssignmentWithEpochs:
    """Partitions that are all assigned at one epoch."""
    return {topic_id: dict.fromkeys(sorted(partitions), epoch) for topic_id, partitions in assignment.items()}


_TopicPartitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions


def _read(topics: list[_TopicPartitions], member_epoch: int) -> AssignmentWithEpochs:
    """Partitions with their epochs; a record of before KIP-1251 has none, and the member's stands for them."""
    found = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def _written(assignment: AssignmentWithEpochs) -> list[_TopicPartitions]:
    return [
        _TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in assignment.items()
    ]
