"""Moving a group with members from the classic protocol to the consumer protocol and back.

    upgrade     the first ConsumerGroupHeartbeat joins a classic group of consumers: its members become members of the consumer
                group, and their assignments become their targets
    downgrade   the last member of the new protocol leaves, is fenced, or returns as a static member with the old protocol: the group
                becomes classic again, and its members must rejoin

`group.consumer.migration.policy` says which of the two are allowed. The generation continues the group epoch, and the reverse, so that no
member sees a number twice.

An upgrade is records alone. A downgrade changes memory directly, since the classic protocol keeps its timers and rebalances there, and is
undone if the log refuses its records.

Source: Kafka class `GroupMetadataManager` (`convertToConsumerGroup`, `convertToClassicGroup`, `consumerGroupFenceMembers`); KIP-848.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.classic.consumer_protocol import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from barnabas.group.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup, ClassicGroupState
from barnabas.group.classic.groups import ClassicGroups
from barnabas.group.classic.member import ClassicGroupMember
from barnabas.group.classic.records import group_metadata_record
from barnabas.group.consumer import records as records_of
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.consumer.member import ClassicMemberMetadata, ConsumerGroupMember, with_epoch
from barnabas.group.consumer.timers import ConsumerGroupTimers
from barnabas.group.group_environment import GroupEnvironment, TopicSubscribers
from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import ConsumerProtocolAssignment, JoinGroupResponse, SyncGroupResponse

logger = logging.getLogger(__name__)

R = TypeVar("R")

UPGRADES = ("upgrade", "bidirectional")
DOWNGRADES = ("downgrade", "bidirectional")


class GroupMigration:
    """Converts groups of one shard, and removes members, which may convert theirs."""

    def __init__(self, environment: GroupEnvironment, classic: ClassicGroups, timers: ConsumerGroupTimers) -> None:
        self._environment = environment
        self._classic = classic
        self._timers = timers
        self._policy = environment.config.group_consumer_migration_policy.lower()

    def fence(
        self, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], response: R, cause: str
    ) -> CoordinatorResult[R]:
        """Remove members; the group becomes classic if its last members of the new protocol are among them."""
        if not members:
            return CoordinatorResult(response)
        if self._may_downgrade_without(group, members):
            records = group.tombstones()
            classic = self._classic_group(group, members, None)
            undo = self._become_classic(group, classic, records, f"Downgrade from the consumer protocol: {cause}")
            return CoordinatorResult(response, records, replay=False, on_append=undo)
        records = []
        for member in members:
            records += records_of.removal_of_member(group.group_id, member.member_id)
        leaving = Counter(member.regex for member in members if member.regex)
        deleted = [regex for regex, count in leaving.items() if group.regex_subscribers[regex] == count]
        records += [records_of.regex_tombstone(group.group_id, regex) for regex in deleted]
        environment = self._environment
        counts = group.counts_without(members, deleted)
        metadata_hash = group.compute_metadata_hash(counts, environment.topic_hashes, environment.image())
        epoch = group.group_epoch + 1
        environment.history.because(group.group_id, epoch, cause, members[0].member_id, members[0].client_id)
        logger.info("group %s: epoch %d: %s", group.group_id, epoch, cause)
        records.append(records_of.epoch_record(group.group_id, epoch, metadata_hash))
        if len(members) == len(group.members):
            # No member is left to wait for: the next one to join is assigned immediately.
            records.append(records_of.target_epoch_record(group.group_id, epoch, 0))
        for member in members:
            self._timers.cancel_all(group.group_id, member.member_id)
        return CoordinatorResult(response, records)

    def upgrade(self, classic: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """The consumer group that a classic group becomes, and the records that make it so.

        Raises: KafkaError GROUP_ID_NOT_FOUND if the upgrade is not allowed or not possible.
        """
        self._check_upgrade(classic)
        group = self._consumer_group(classic)
        busy = ErrorCode.REBALANCE_IN_PROGRESS
        for member in classic.members.values():
            classic.complete_join(member, JoinGroupResponse(member_id=member.member_id, error_code=busy))
            classic.complete_sync(member, SyncGroupResponse(error_code=busy))
        records += [*classic.tombstones(), *group.creation_records()]
        for converted in group.members.values():
            self._timers.schedule_session(group.group_id, converted)
        logger.info("group %s: upgraded to the consumer protocol", group.group_id)
        return group

    def _check_upgrade(self, classic: ClassicGroup) -> None:
        if self._policy not in UPGRADES:
            reason = "online upgrade is disabled"
        elif not classic.uses_consumer_group_protocol:
            reason = "the group does not use the consumer embedded protocol"
        elif len(classic.members) > self._environment.config.group_consumer_max_size:
            reason = "the group size exceeds the consumer group maximum size"
        else:
            return
        raise _cannot_upgrade(classic, reason)

    def _consumer_group(self, classic: ClassicGroup) -> ConsumerGroup:
        """Return a group of the same members, each stable at the classic generation with its assignment."""
        environment = self._environment
        group = ConsumerGroup(classic.group_id, TopicSubscribers())
        group.set_group_epoch(classic.generation_id, 0)
        group.set_target_assignment_metadata(classic.generation_id, 0)
        image = environment.image()
        protocol = classic.protocol_name or classic.select_protocol()
        for member in classic.members.values():
            try:
                assignment = _assignment_of(member, image)
                subscription = read_subscription(member.metadata(protocol))
            except MalformedMessage:
                raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed") from None
            if assignment is None:
                raise _cannot_upgrade(
                    classic,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                    "default assignor before re-attempting the upgrade",
                )
            group.update_target_assignment(member.member_id, assignment)
            group.update_member(
                ConsumerGroupMember(
                    member_id=member.member_id,
                    member_epoch=classic.generation_id,
                    previous_member_epoch=classic.generation_id,
                    instance_id=member.group_instance_id,
                    rack_id=subscription.rack_id or None,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    subscribed_topic_names=frozenset(subscription.topics),
                    assigned=with_epoch(assignment, classic.generation_id),
                    classic=ClassicMemberMetadata(member.session_timeout_ms, tuple(member.protocols.items())),
                )
            )
        group.metadata_hash = group.compute_metadata_hash(group.subscribed_topic_names, environment.topic_hashes, image)
        return group

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: ConsumerGroupMember) -> bool:
        """Return whether the group becomes classic when this static member returns with the classic protocol."""
        return (
            not replaced.uses_classic_protocol
            and group.all_classic_except([replaced])
            and self._policy in DOWNGRADES
            and len(group.members) <= self._environment.config.group_max_size
        )

    def _may_downgrade_without(self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember]) -> bool:
        left = len(group.members) - len(leaving)
        return (
            group.all_classic_except(leaving)
            and 0 < left <= self._environment.config.group_max_size
            and self._policy in DOWNGRADES
        )

    def downgrade_replacing(
        self,
        group: ConsumerGroup,
        replaced: ConsumerGroupMember,
        joining: ConsumerGroupMember,
        rebalance: str | None,
        records: list[CoordinatorRecord],
    ) -> Callable[[KafkaError | None], None]:
        """Make the group classic, with a static member under its new id.

        Args:
            records: the step's; those of the downgrade are added.
            rebalance: why the members must rejoin, None when they need not.

        Returns: what to call when the records are written or refused.
        """
        records += group.tombstones_replacing(replaced.member_id, joining.member_id)
        classic = self._classic_group(group, [replaced], joining)
        return self._become_classic(group, classic, records, rebalance)

    def _classic_group(
        self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember], joining: ConsumerGroupMember | None
    ) -> ClassicGroup:
        classic = ClassicGroup(
            group.group_id,
            now_ms=self._environment.now_ms(),
            state=ClassicGroupState.STABLE,
            generation_id=group.group_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
        )
        gone = {member.member_id for member in leaving}
        staying = [member for member_id, member in group.members.items() if member_id not in gone]
        image = self._environment.image()
        for member in [*staying, *([] if joining is None else [joining])]:
            assert member.classic is not None, member
            target_id = leaving[0].member_id if member is joining else member.member_id
            protocols = dict(member.classic.protocols)
            classic.add(
                ClassicGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.classic.session_timeout_ms,
                    protocol_type=CONSUMER_PROTOCOL_TYPE,
                    protocols=protocols,
                )
            )
            target = group.target_assignment.get(target_id, NO_ASSIGNMENT)
            first = next(iter(protocols.values()))
            classic.members[member.member_id].assignment = assignment_bytes(target, version_of(first), image)
        classic.protocol_name = classic.select_protocol()
        classic.subscribed_topics = classic.compute_subscribed_topics()
        return classic

    def _become_classic(
        self, group: ConsumerGroup, classic: ClassicGroup, records: list[CoordinatorRecord], rebalance: str | None
    ) -> Callable[[KafkaError | None], None]:
        assignments = {member.member_id: member.assignment for member in classic.members.values()}
        records.append(group_metadata_record(classic, assignments))
        groups = self._environment.groups
        groups[group.group_id] = classic
        self._classic.rebalance.note_held(group.group_id, self._environment.named(group.target_assignment))
        for member in classic.members.values():
            self._classic.rebalance.reschedule_heartbeat(classic, member)
        if rebalance is not None:
            self._classic.rebalance.prepare(classic, rebalance)
        self._classic.growth.watch(classic)
        logger.info("group %s: downgraded to the classic protocol", group.group_id)

        def on_append(error: KafkaError | None) -> None:
            if error is None:
                group.unsubscribe_all()
                for member_id in group.members:
                    self._timers.cancel_all(group.group_id, member_id)
            elif groups.get(group.group_id) is classic:
                self._classic.rebalance.cancel_all(classic)
                groups[group.group_id] = group

        return on_append


def assignment_bytes(assignment: Mapping[bytes, object], version: int, image: MetadataImage) -> bytes:
    """Encode an assignment in the consumers' own message, without deleted topics.

    Args:
        assignment: topic id to partition indexes, as a set or a mapping.
    """
    parts = []
    for topic_id, partitions in assignment.items():
        name = image.topics.name_of(topic_id)
        if name is not None:
            assert isinstance(partitions, (frozenset, dict)), partitions
            parts.append(ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=sorted(partitions)))
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), version)


def _assignment_of(member: ClassicGroupMember, image: MetadataImage) -> Assignment | None:
    """Return the assignment of a classic member; None if it has user data, which would be lost."""
    if not member.assignment:
        return NO_ASSIGNMENT
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        return None
    found = {}
    for topic in assignment.assigned_partitions:
        known = image.topics.by_name.get(topic.topic)
        if known is not None:
            found[known.topic_id] = frozenset(topic.partitions)
    return found


def _cannot_upgrade(classic: ClassicGroup, reason: str) -> KafkaError:
    logger.info("group %s: not upgraded: %s", classic.group_id, reason)
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )
