"""ShareGroupHeartbeat: joining, staying in and leaving a share group.

    epoch 0     joins, or joins again; the first member makes the group
    epoch > 0   stays: reports a changed subscription
    epoch -1    leaves

A heartbeat may change the member's subscription. That grows the group epoch, which asks for a new target assignment, and the member gets
the whole target in the same heartbeat (`rebalance`). It also finds partitions without state: they are noted as initializing, and the
caller initializes them in the share coordinator. The next heartbeat assigns them.

A member whose epoch is neither the known one nor the one before is fenced: FENCED_MEMBER_EPOCH.

Source: Kafka class `GroupMetadataManager.shareGroupHeartbeat`, `shareGroupLeave`; KIP-932.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.epoch_group import JOIN_EPOCH, LEAVE_EPOCH
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.modern_group import Assignment
from barnabas.group.sender import Sender
from barnabas.group.share.group import ShareGroup
from barnabas.group.share.member import ShareGroupMember
from barnabas.group.share.rebalance import Initialization, ShareGroupRebalance
from barnabas.group.share.timers import ShareGroupTimers
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


class HeartbeatOutcome(NamedTuple):
    """The response to a heartbeat, and what to initialize in the share coordinator."""

    response: ShareGroupHeartbeatResponse
    initialization: Initialization | None = None


class ShareGroupHeartbeat:
    """Handles ShareGroupHeartbeat for the groups of one shard."""

    def __init__(self, environment: GroupEnvironment, timers: ShareGroupTimers) -> None:
        self._env = environment
        self._timers = timers

    def handle(self, request: ShareGroupHeartbeatRequest, sender: Sender) -> CoordinatorResult[HeartbeatOutcome]:
        """Handle a request that is valid in itself.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
        """
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request)
        group = self._group_for(request)
        member = self._member_for(group, request)
        updated = replace(
            member,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            client_id=sender.client_id,
            client_host=sender.client_host,
            subscribed_topic_names=member.subscribed_topic_names
            if request.subscribed_topic_names is None
            else frozenset(request.subscribed_topic_names),
        )
        rebalance = ShareGroupRebalance(self._env, group, member, updated)
        rebalance.run()
        self._timers.watch_session(group.group_id, updated.member_id)
        updated = rebalance.member
        response = ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._env.group_configs.int_value(group.group_id, "share.heartbeat.interval.ms"),
        )
        is_full = request.subscribed_topic_names is not None
        if request.member_epoch == JOIN_EPOCH or is_full or updated.assigned != member.assigned:
            response.assignment = _assignment_message(updated.assigned)
        return CoordinatorResult(HeartbeatOutcome(response, rebalance.initialization), rebalance.records)

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group_id = request.group_id
        if request.member_epoch == JOIN_EPOCH and group_id not in self._env.groups:
            group = ShareGroup(group_id, self._env.subscribers)
        else:
            group = self._require(group_id)
        most = self._env.config.group_share_max_size
        if group.member_count >= most and not group.has_member(request.member_id):
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {most} members.",
            )
        return group

    def _require(self, group_id: str) -> ShareGroup:
        if group_id not in self._env.groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return self._env.require(group_id, ShareGroup)

    def _member_for(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareGroupMember:
        epoch = request.member_epoch
        if epoch == JOIN_EPOCH:
            return group.members.get(request.member_id) or ShareGroupMember(member_id=request.member_id)
        member = group.member(request.member_id)
        if epoch > member.member_epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
            )
        if epoch < member.member_epoch and epoch != member.previous_member_epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.member_epoch}), and it does not match the previous member epoch "
                f"({member.previous_member_epoch}). The member must abandon all its partitions and rejoin.",
            )
        return member

    def _leave(self, request: ShareGroupHeartbeatRequest) -> CoordinatorResult[HeartbeatOutcome]:
        group = self._env.require(request.group_id, ShareGroup)
        member = group.member(request.member_id)
        response = ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE_EPOCH)
        return CoordinatorResult(HeartbeatOutcome(response), self._timers.removal(group, member, "it left"))


def _assignment_message(assigned: Assignment) -> ShareGroupHeartbeatResponse.Assignment:
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ShareGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
