"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A group that is migrating has members of both protocols. To a classic member the coordinator shows a classic group: the epoch is
its generation, its heartbeat returns REBALANCE_IN_PROGRESS during a rebalance, and its assignment looks as if a leader had made it.
The member gives partitions back by joining again without them.

    JoinGroup   reads its subscription and owned partitions from the consumers' own message; one step of its reconciliation
    SyncGroup   returns its assignment
    Heartbeat   renews its session; REBALANCE_IN_PROGRESS if a join would take it further

Source: Kafka class `GroupMetadataManager` (`classicGroupJoinToConsumerGroup` and its kin); KIP-848, "Migration".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.consumer_protocol import read_subscription, version_of
from barnabas.group.classic.group import CONSUMER_PROTOCOL_TYPE
from barnabas.group.classic.join_group import MEMBER_ID_REQUIRED_SINCE, Joining
from barnabas.group.classic.member import SyncReply
from barnabas.group.consumer.current_assignment import Owned
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.consumer.heartbeat import (
    check_instance,
    check_size,
    new_member_id,
    replace_static_member,
)
from barnabas.group.consumer.member import ClassicMemberMetadata, ConsumerGroupMember, MemberState
from barnabas.group.consumer.migration import GroupMigration, assignment_bytes
from barnabas.group.consumer.rebalance import ConsumerGroupRebalance, Records, RegexUpdate
from barnabas.group.consumer.timers import ConsumerGroupTimers
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.rebalance_history import members_left, with_reason
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

logger = logging.getLogger(__name__)


class ClassicMembers:
    """Serves the classic protocol's members of the consumer groups of one shard."""

    def __init__(
        self,
        environment: GroupEnvironment,
        rebalance: ConsumerGroupRebalance,
        timers: ConsumerGroupTimers,
        migration: GroupMigration,
    ) -> None:
        self._environment = environment
        self._rebalance = rebalance
        self._timers = timers
        self._migration = migration

    # Joining

    def join(self, joining: Joining) -> CoordinatorResult[None]:
        """Handle JoinGroup; its `reply` is called when the records are committed.

        Raises: KafkaError INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        request = joining.request
        group = self._environment.require(request.group_id, ConsumerGroup)
        self._check_may_join(group)
        is_unknown = not request.member_id
        member_id = request.member_id or new_member_id(self._environment.rng)
        check_size(group, member_id, request.group_instance_id, self._environment.config.group_consumer_max_size)
        if not group.supports_classic_protocols(request.protocol_type, joining.protocols):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
            )
        if is_unknown and request.group_instance_id is None and joining.sender.version >= MEMBER_ID_REQUIRED_SINCE:
            return joining.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        subscription = _subscription(joining)
        records: Records = []
        static = group.static_member(request.group_instance_id)
        old = self._member(group, joining, member_id, static, records)
        new = _updated(joining, subscription, old)
        names_changed = self._rebalance.names_changed(group, old, new, records)
        regex = RegexUpdate.NONE
        if not names_changed:
            regex = self._rebalance.update_regex(group, old, new, records, joining.sender)
        changed = names_changed or regex is not RegexUpdate.NONE
        epoch, homogeneous = group.group_epoch, group.homogeneous
        cause = f"member {member_id} joined or changed its subscription, by the classic protocol" if changed else None
        if changed or group.has_metadata_expired(self._environment.now_ms()):
            epoch, homogeneous = self._rebalance.update_metadata(group, cause, old, new, records)
        owned = self._owned(subscription)
        if static is not None and self._migration.may_downgrade_replacing(group, static):
            return self._downgrade(group, joining, static, new, epoch, changed, owned, records)
        target_epoch, target = self._rebalance.update_target(group, epoch, old, new, homogeneous, records)
        joined = self._rebalance.reconcile(
            group, new, target_epoch, target, subscription_changed=changed, owned=owned, records=records
        )

        def on_append(error: KafkaError | None) -> None:
            if error is None:
                self._timers.cancel_join(group.group_id, joined.member_id)
                self._timers.schedule_session(group.group_id, joined)
                self._timers.schedule_sync(group.group_id, joined, request.rebalance_timeout_ms)
                joining.reply(_joined(joined))

        return CoordinatorResult(None, records, on_append=on_append)

    def _check_may_join(self, group: ConsumerGroup) -> None:
        if self._environment.config.group_consumer_migration_policy.lower() == "disabled":
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the group "
                "migration is disabled.",
            )

    def _member(
        self,
        group: ConsumerGroup,
        joining: Joining,
        member_id: str,
        static: ConsumerGroupMember | None,
        records: Records,
    ) -> ConsumerGroupMember:
        instance_id = joining.request.group_instance_id
        if instance_id is not None and joining.request.member_id:
            return check_instance(static, member_id, instance_id)
        if static is not None:
            return replace_static_member(group, static, member_id, self._timers, records)
        return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Owned:
        by_name = self._environment.image().topics.by_name
        return {
            by_name[owned.topic].topic_id: owned.partitions
            for owned in subscription.owned_partitions
            if owned.topic in by_name
        }

    def _downgrade(
        self,
        group: ConsumerGroup,
        joining: Joining,
        static: ConsumerGroupMember,
        new: ConsumerGroupMember,
        epoch: int,
        changed: bool,
        owned: Owned,
        records: Records,
    ) -> CoordinatorResult[None]:
        """Make the group classic: its last member of the new protocol has returned with the old one."""
        rebalance = None
        if group.assignment_epoch < epoch:
            rebalance = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
        else:
            new = self._rebalance.reconcile(
                group,
                new,
                group.assignment_epoch,
                self._rebalance.target_of(group, new),
                subscription_changed=changed,
                owned=owned,
                records=records,
            )
        written: Callable[[KafkaError | None], None] = self._migration.downgrade_replacing(
            group, static, new, rebalance, records
        )

        def on_append(error: KafkaError | None) -> None:
            written(error)
            if error is None:
                joining.reply(_joined(new))

        return CoordinatorResult(None, records, replay=False, on_append=on_append)

    # The rest of the protocol

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> CoordinatorResult[None]:
        """Handle SyncGroup: return the member's own assignment.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
                REBALANCE_IN_PROGRESS.
        """
        group = self._environment.require(request.group_id, ConsumerGroup)
        member = _known(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        assert member.classic is not None, member
        protocol_name, metadata = member.classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol_name,
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.schedule_join_if_absent(group.group_id, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(member.assigned, version_of(metadata), self._environment.image()),
        )

        def on_append(error: KafkaError | None) -> None:
            if error is None:
                self._timers.cancel_sync(group.group_id, member.member_id)
                self._timers.schedule_session(group.group_id, member)
                reply(response)

        return CoordinatorResult(None, on_append=on_append)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        """Handle Heartbeat.

        Raises: KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        group = self._environment.require(request.group_id, ConsumerGroup)
        member = _known(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._timers.schedule_session(group.group_id, member)
        if (
            member.member_epoch >= group.assignment_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
            and (member.state is not MemberState.UNRELEASED_PARTITIONS or group.waits_for_others(member))
        ):
            return CoordinatorResult(HeartbeatResponse())
        self._timers.schedule_join_if_absent(group.group_id, member)
        return CoordinatorResult(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    def leave(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        """Handle LeaveGroup, for members of either protocol: an administrator may remove any."""
        group = self._environment.require(request.group_id, ConsumerGroup)
        response = LeaveGroupResponse()
        leaving: dict[str, ConsumerGroupMember] = {}
        for identity in request.members:
            error = ErrorCode.NONE
            try:
                if identity.group_instance_id is None:
                    member = group.member(identity.member_id)
                else:
                    static = group.static_member(identity.group_instance_id)
                    named = identity.member_id or ("" if static is None else static.member_id)
                    member = check_instance(static, named, identity.group_instance_id)
                reason = with_reason(identity.reason)
                logger.info("group %s: member %s left%s", group.group_id, member.member_id, reason)
                leaving[member.member_id] = member
            except KafkaError as refused:
                error = refused.code
            response.members.append(
                LeaveGroupResponse.MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
                )
            )
        return self._migration.fence(group, list(leaving.values()), response, members_left(list(leaving)))


def _subscription(joining: Joining) -> ConsumerProtocolSubscription:
    """Return the subscription in the protocol that the member prefers."""
    try:
        return read_subscription(next(iter(joining.protocols.values())))
    except MalformedMessage:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from None


def _updated(
    joining: Joining, subscription: ConsumerProtocolSubscription, member: ConsumerGroupMember
) -> ConsumerGroupMember:
    request = joining.request
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if joining.rebalance_timeout_ms == -1
        else joining.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=joining.sender.client_id,
        client_host=joining.sender.client_host,
        classic=ClassicMemberMetadata(
            request.session_timeout_ms, tuple((name, bytes(metadata)) for name, metadata in joining.protocols.items())
        ),
    )


def _joined(member: ConsumerGroupMember) -> JoinGroupResponse:
    """Return the response to a member that does not lead: the coordinator assigns."""
    assert member.classic is not None, member
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
    )


def _known(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
    """Return the classic member that a request names."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = check_instance(group.static_member(instance_id), member_id, instance_id)
    if not member.uses_classic_protocol:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    return member


def _check_generation(member: ConsumerGroupMember, generation_id: int) -> None:
    if member.member_epoch != generation_id:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch {member.member_epoch} of "
            f"member {member.member_id}.",
        )
