"""ConsumerGroupHeartbeat: joining, staying in and leaving a consumer group.

    epoch 0     joins, or joins again: an empty classic group becomes a consumer group, one with members is converted (KIP-848)
    epoch > 0   stays: reports changes, and the partitions that it has
    epoch −1    leaves
    epoch −2    leaves for a while, if static: it keeps its partitions until its session ends

The response has an assignment if the assignment has changed, if the member joins, or if the request is full (the member may have lost the
last response).

Fencing: an epoch greater than the known one is always rejected. A smaller one is accepted only if it is the previous one and the member
has no partition that it should not have: then the last response was lost.

Source: Kafka class `GroupMetadataManager.consumerGroupHeartbeat`, `consumerGroupLeave`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import replace

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.consumer import records as records_of
from barnabas.group.consumer.current_assignment import Owned
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.consumer.member import (
    NO_PARTITIONS,
    AssignmentWithEpochs,
    ConsumerGroupMember,
    with_epoch,
)
from barnabas.group.consumer.migration import GroupMigration
from barnabas.group.consumer.rebalance import ConsumerGroupRebalance, Records, RegexUpdate
from barnabas.group.consumer.timers import ConsumerGroupTimers
from barnabas.group.epoch_group import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, joins_again
from barnabas.group.group_environment import GroupEnvironment, TopicSubscribers
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.protocol.primitives import Uuid, uuid_to_str

logger = logging.getLogger(__name__)

HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"

Response = ConsumerGroupHeartbeatResponse


class ConsumerGroupHeartbeat:
    """Handles ConsumerGroupHeartbeat for the groups of one shard."""

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

    def handle(self, request: ConsumerGroupHeartbeatRequest, sender: Sender) -> CoordinatorResult[Response]:
        """Handle a request that is valid in itself.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID,
                FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, INVALID_REGULAR_EXPRESSION.
        """
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        return self._beat(request, sender)

    # Joining and staying

    def _beat(self, request: ConsumerGroupHeartbeatRequest, sender: Sender) -> CoordinatorResult[Response]:
        rebalance, records = self._rebalance, Records()
        joins = request.member_epoch == 0
        group = self._group(request.group_id, records, create=joins)
        member_id = request.member_id or new_member_id(self._environment.rng)
        check_size(group, member_id, request.instance_id, self._environment.config.group_consumer_max_size)
        old = self._member(group, request, member_id, records)
        new = _updated(old, request, sender)
        names_changed = rebalance.names_changed(group, old, new, records)
        regex = rebalance.update_regex(group, old, new, records, sender)
        cause = None
        if names_changed or regex is RegexUpdate.RESOLVED:
            what = "changed its subscription" if group.has_member(member_id) else "joined"
            cause = f"member {member_id} {what}"
        elif rebalance.assignor_changed(group, old, new):
            cause = f"member {member_id} asks for the {new.server_assignor} assignor, and with it most members do"
        epoch, homogeneous = group.group_epoch, group.homogeneous
        if cause is not None or group.has_metadata_expired(self._environment.now_ms()):
            epoch, homogeneous = rebalance.update_metadata(group, cause, old, new, records)
        target_epoch, target = rebalance.update_target(group, epoch, old, new, homogeneous, records)
        reconciled = rebalance.reconcile(
            group,
            new,
            target_epoch,
            target,
            subscription_changed=names_changed or regex is not RegexUpdate.NONE,
            owned=_owned(request),
            records=records,
        )
        self._timers.schedule_session(request.group_id, reconciled)
        response = Response(
            member_id=reconciled.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=self._environment.group_configs.int_value(request.group_id, HEARTBEAT_INTERVAL),
        )
        if joins or _is_full(request) or old.assigned != reconciled.assigned:
            response.assignment = _assignment(reconciled.assigned)
        return CoordinatorResult(response, records)

    def _group(self, group_id: str, records: Records, *, create: bool) -> ConsumerGroup:
        """Return the group; `records` get what creates or converts it."""
        group = self._environment.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            if not create:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            return ConsumerGroup(group_id, TopicSubscribers())
        if create and isinstance(group, ClassicGroup):
            if group.is_empty:
                records += group.tombstones()
                return ConsumerGroup(group_id, TopicSubscribers())
            return self._migration.upgrade(group, records)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def _member(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str, records: Records
    ) -> ConsumerGroupMember:
        """Return the member before the request: known, new, or the successor of a static member."""
        joins = request.member_epoch == 0
        if request.instance_id is None:
            member = group.members.get(member_id)
            if member is None:
                if not joins:
                    return group.member(member_id)  # Raises.
                return ConsumerGroupMember(member_id=member_id)
            _check_epoch(member, request)
            return member
        static = group.static_member(request.instance_id)
        if joins:
            if static is None:
                return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
            if not static.uses_classic_protocol and joins_again(
                static.member_id, static.member_epoch, member_id, request.instance_id
            ):
                return static
            return replace_static_member(group, static, member_id, self._timers, records)
        static = check_instance(static, member_id, request.instance_id)
        _check_epoch(static, request)
        return static

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> CoordinatorResult[Response]:
        group = self._environment.require(request.group_id, ConsumerGroup)
        response = Response(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            static = group.static_member(request.instance_id)
            member = check_instance(static, request.member_id, request.instance_id)
            if request.member_epoch == STATIC_LEAVE_EPOCH:
                return self._leave_for_a_while(group, member)
        logger.info("group %s: member %s left", group.group_id, member.member_id)
        return self._migration.fence(group, [member], response, f"member {member.member_id} left")

    def _leave_for_a_while(self, group: ConsumerGroup, member: ConsumerGroupMember) -> CoordinatorResult[Response]:
        """Keep a static member's assignment until its session, which started with its last heartbeat, ends."""
        logger.info("group %s: static member %s left for a while", group.group_id, member.member_id)
        away = replace(
            member,
            member_epoch=STATIC_LEAVE_EPOCH,
            pending_revocation=NO_PARTITIONS,
            assigned=with_epoch(member.assigned, 0),
        )
        response = Response(member_id=member.member_id, member_epoch=STATIC_LEAVE_EPOCH)
        return CoordinatorResult(response, [records_of.current_record(group.group_id, away)])


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    """Return the partitions that the member says it owns; None if it does not say."""
    partitions = request.topic_partitions
    return None if partitions is None else {topic.topic_id: topic.partitions for topic in partitions}


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the member describes itself in full, as it does if it may have lost the last response."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, sender: Sender
) -> ConsumerGroupMember:
    """Return the member as changed by a request; null means unchanged."""
    names = request.subscribed_topic_names
    if (
        # Most heartbeats only keep the session.
        names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == -1
        and request.rack_id is None
        and request.instance_id in (None, member.instance_id)
        and (sender.client_id, sender.client_host) == (member.client_id, member.client_host)
        and member.classic is None
    ):
        return member
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex
        if request.subscribed_topic_regex is None
        else request.subscribed_topic_regex,
        client_id=sender.client_id,
        client_host=sender.client_host,
        classic=None,
    )


def new_member_id(rng: random.Random) -> str:
    """Return a random member id that no command line takes for an option."""
    while (made := uuid_to_str(Uuid(rng.randbytes(16)))).startswith("-"):
        pass
    return made


def check_size(group: ConsumerGroup, member_id: str, instance_id: str | None, max_size: int) -> None:
    """Reject a new member if the group is full; a static member that returns is not new.

    Raises: KafkaError GROUP_MAX_SIZE_REACHED.
    """
    if instance_id is not None and instance_id in group.static_members:
        return
    if len(group.members) >= max_size and not group.has_member(member_id):
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def check_instance(static: ConsumerGroupMember | None, member_id: str, instance_id: str) -> ConsumerGroupMember:
    """Return the static member that a request names.

    Raises: KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if static is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {static.member_id}.",
        )
    return static


def replace_static_member(
    group: ConsumerGroup,
    static: ConsumerGroupMember,
    member_id: str,
    timers: ConsumerGroupTimers,
    records: Records,
) -> ConsumerGroupMember:
    """Give a static member a new member id; it keeps its assignment and its target."""
    timers.cancel_all(group.group_id, static.member_id)
    new = replace(static, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    records += [
        *records_of.removal_of_member(group.group_id, static.member_id),
        records_of.member_record(group.group_id, new),
        records_of.target_record(group.group_id, member_id, group.target_assignment.get(static.member_id, {})),
        records_of.current_record(group.group_id, new),
    ]
    return new


def _check_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    received = request.member_epoch
    if received in (0, member.member_epoch):
        return
    if received > member.member_epoch:
        what = "greater"
    elif received == member.previous_member_epoch and _is_within(_owned(request), member.assigned):
        return
    else:
        what = "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {what} member epoch ({received}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned | None, assigned: AssignmentWithEpochs) -> bool:
    """Return whether every partition that the member reports is assigned to it; False if it reports none."""
    if owned is None:
        return False
    return all(
        partition in assigned.get(topic_id, {}) for topic_id, partitions in owned.items() for partition in partitions
    )


def _assignment(assigned: AssignmentWithEpochs) -> Response.Assignment:
    partitions: Sequence[Response.TopicPartitions] = [
        Response.TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
        for topic_id, indexes in assigned.items()
    ]
    return Response.Assignment(topic_partitions=list(partitions))
