"""ClassicGroup: the members, the generation and the state of a group of the classic protocol.

                       ┌──────────── all left ────────────┐
                       v                                  │
        ┌────────── EMPTY ── first join ──> PREPARING_REBALANCE <── join, leave, timeout ──┐
        │                                    │        ^                                     │
        v                            all joined    join, leave, timeout                     │
      DEAD <── unloaded, from all            v        │                                     │
                                         COMPLETING_REBALANCE ── the leader's sync ──> STABLE

Invariants (asserted):
- a transition happens only along the arrows of `_PREVIOUS`;
- all members have the group's protocol type, and each supports a protocol that all support;
- `awaiting_join_count` is the number of members that wait for a JoinGroup answer;
- an instance id names exactly one member; a pending member is no member yet.

Only the picture in GroupMetadataValue is durable. Members that wait, pending members and the preparing state live in memory, and a
failover starts from the last stable (or empty) generation.

Members and protocols keep their order of arrival, so that a leader or a protocol chosen among equals does not depend on hashing.

Source: Kafka class `ClassicGroup`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from enum import Enum

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.member import ClassicGroupMember, JoinReply, Protocols
from barnabas.group.classic.tombstone import group_metadata_tombstone
from barnabas.group.group import ExpiryBase, Group, GroupType, OffsetCommitter, PartitionCheck
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import (
    ConsumerProtocolSubscription,
    JoinGroupResponse,
    SyncGroupResponse,
)

CONSUMER_PROTOCOL_TYPE = "consumer"
UNKNOWN_MEMBER_ID = ""


class ClassicGroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_S = ClassicGroupState
_PREVIOUS: dict[ClassicGroupState, frozenset[ClassicGroupState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE}),
    _S.PREPARING_REBALANCE: frozenset({_S.STABLE, _S.COMPLETING_REBALANCE, _S.EMPTY}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
    _S.DEAD: frozenset(_S),
}


class ClassicGroup(Group):
    """One group."""

    type = GroupType.CLASSIC

    def __init__(
        self,
        group_id: str,
        *,
        now_ms: int,
        state: ClassicGroupState = ClassicGroupState.EMPTY,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = ClassicGroupState.DEAD
        self.current_state_timestamp_ms = now_ms
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_join_members: dict[str, None] = {}
        self.pending_sync_members: dict[str, None] = {}
        self.awaiting_join_count = 0
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None
        self._supported_protocols: Counter[str] = Counter()

    def __repr__(self) -> str:
        return (
            f"<ClassicGroup {self.group_id} {self.state.value} generation={self.generation_id} "
            f"leader={self.leader_id} members={list(self.members)}>"
        )

    # Questions

    def is_in_state(self, *states: ClassicGroupState) -> bool:
        """Return whether the group is in one of these states."""
        return self.state in states

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicGroupState.EMPTY

    @property
    def protocol_name_of_type(self) -> str:
        return self.protocol_type or ""

    def state_name(self) -> str:
        return self.state.value

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def is_simple(self) -> bool:
        """Whether the group has never had members: it is there for offsets alone."""
        return not self.protocol_type and self.is_empty and not self.pending_join_members

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may be started from the present state."""
        return self.state in _PREVIOUS[ClassicGroupState.PREPARING_REBALANCE]

    @property
    def uses_consumer_group_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_join_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member wants to wait for a rebalance."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def is_pending_member(self, member_id: str) -> bool:
        return member_id in self.pending_join_members

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Return whether a member consumes the topic; True for consumers whose subscriptions cannot be read."""
        if self.subscribed_topics is None:
            return self.uses_consumer_group_protocol
        return topic in self.subscribed_topics

    def supports_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a member with these protocols could be in the group."""
        if self.is_empty:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(
            self._supported_protocols[name] == len(self.members) for name in names
        )

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Check that a request speaks for a member of the group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another member has taken the instance id.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    # Checks

    def validate_offset_commit(self, committer: OffsetCommitter) -> PartitionCheck | None:
        """Accept a commit from a member of the present generation; from any client if the group is empty and no generation
        is named (a "simple" group: a consumer that assigns partitions itself, or an admin client).

        Older transactional commits name neither member nor generation; a rebalance does not block them.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE (the group is being unloaded), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
                ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS (a member commits between its join and its sync).
        """
        if self.is_in_state(ClassicGroupState.DEAD):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if committer.epoch < 0 and self.is_empty:
            return None
        if committer.epoch >= 0 or committer.member_id or committer.instance_id is not None:
            self.validate_member(committer.member_id, committer.instance_id)
            if committer.epoch != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not committer.is_transactional and not self.is_empty:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.is_transactional and self.is_in_state(ClassicGroupState.COMPLETING_REBALANCE):
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Accept every client. Raises: KafkaError GROUP_ID_NOT_FOUND (the group is being unloaded)."""
        if self.is_in_state(ClassicGroupState.DEAD):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)

    def validate_offset_delete(self) -> None:
        """Accept if the group is empty or its subscriptions are known. Raises: KafkaError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if self.is_in_state(ClassicGroupState.DEAD):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if not self.is_empty and not self.uses_consumer_group_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete_group(self) -> None:
        if self.is_in_state(ClassicGroupState.DEAD):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        super().validate_delete_group()

    def tombstones(self) -> list[CoordinatorRecord]:
        return [group_metadata_tombstone(self.group_id)]

    def offset_expiry_base(self) -> ExpiryBase | None:
        """When the group became empty, or the commit; nothing while members may be away or their subscriptions are unknown."""
        if self.protocol_type is None:
            return lambda offset: offset.commit_timestamp_ms
        if self.is_empty:
            since_ms = self.current_state_timestamp_ms
            return lambda offset: since_ms if since_ms >= 0 else offset.commit_timestamp_ms
        knows_subscriptions = self.uses_consumer_group_protocol and self.subscribed_topics is not None
        if knows_subscriptions and self.is_in_state(ClassicGroupState.STABLE):
            return lambda offset: offset.commit_timestamp_ms
        return None

    # Members

    def new_member_id(self, client_id: str, group_instance_id: str | None, rng: random.Random) -> str:
        """An id for a new member: a readable start and a random UUID."""
        digits = f"{rng.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62):032x}"
        uuid = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        return f"{client_id if group_instance_id is None else group_instance_id}-{uuid}"

    def add(self, member: ClassicGroupMember, reply: JoinReply | None = None) -> None:
        """Add a member; the first is the leader and decides the protocol type."""
        assert member.member_id not in self.members, member
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members, member
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.protocol_type == member.protocol_type, (self, member)
        assert not self.members or self.supports_protocols(member.protocol_type, member.protocols), (self, member)
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._supported_protocols.update(member.protocols.keys())
        self._set_awaiting_join(member, reply)
        self.pending_join_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member; the first member to have joined becomes the leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supported_protocols.subtract(member.protocols.keys())
            if member.awaiting_join is not None:
                self.awaiting_join_count -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self.pending_join_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)

    def update_member(
        self,
        member: ClassicGroupMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        reply: JoinReply | None,
    ) -> None:
        """Update a member from another JoinGroup."""
        self._supported_protocols.subtract(member.protocols.keys())
        member.protocols = protocols
        self._supported_protocols.update(protocols.keys())
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._set_awaiting_join(member, reply)

    def replace_static_member(
        self, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> ClassicGroupMember:
        """Give a static member's place to a new member id; the old one, where it waits, is fenced (KIP-345)."""
        old = self.members[old_member_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.complete_join(old, JoinGroupResponse(member_id=old_member_id, error_code=fenced))
        self.complete_sync(old, SyncGroupResponse(error_code=fenced))
        new = ClassicGroupMember(
            member_id=new_member_id,
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        # In the old one's place, so that the order of members is that of their first arrival.
        self.members = {(new if m is old else m).member_id: (new if m is old else m) for m in self.members.values()}
        if old_member_id in self.pending_sync_members:
            del self.pending_sync_members[old_member_id]
            self.pending_sync_members[new_member_id] = None
        if self.is_leader(old_member_id):
            self.leader_id = new_member_id
        self.static_members[group_instance_id] = new_member_id
        return new

    def _set_awaiting_join(self, member: ClassicGroupMember, reply: JoinReply | None) -> None:
        self.awaiting_join_count += (reply is not None) - (member.awaiting_join is not None)
        member.awaiting_join = reply

    # Answers

    def complete_join(self, member: ClassicGroupMember, response: JoinGroupResponse) -> bool:
        """Answer a member's JoinGroup; False when it does not wait."""
        reply = member.awaiting_join
        if reply is None:
            return False
        self._set_awaiting_join(member, None)
        reply(response)
        return True

    def complete_sync(self, member: ClassicGroupMember, response: SyncGroupResponse) -> bool:
        """Answer a member's SyncGroup; False when it does not wait."""
        reply = member.awaiting_sync
        if reply is None:
            return False
        member.awaiting_sync = None
        reply(response)
        return True

    def join_response(self, member_id: str, *, with_members: bool, skip_assignment: bool = False) -> JoinGroupResponse:
        """The JoinGroup answer of the present generation."""
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_id or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=self._join_response_members() if with_members else [],
        )

    def _join_response_members(self) -> list[JoinGroupResponse.JoinGroupResponseMember]:
        assert self.is_in_state(ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE), self
        assert self.protocol_name is not None, self
        return [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        ]

    # Generations

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Go to another state."""
        assert self.state in _PREVIOUS[state], f"{self!r} cannot become {state.value}"
        self.previous_state = self.state
        self.state = state
        self.current_state_timestamp_ms = now_ms

    def maybe_elect_new_joined_leader(self) -> bool:
        """Make a member that has joined the leader, if the leader has not; return False if no member has joined."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def init_next_generation(self, now_ms: int) -> None:
        """Start the next generation with the members that have joined; it may be empty."""
        self.generation_id += 1
        self.pending_sync_members.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.subscribed_topics = self.compute_subscribed_topics()
            self.transition_to(ClassicGroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.subscribed_topics = self.compute_subscribed_topics()
            self.transition_to(ClassicGroupState.EMPTY, now_ms)

    def select_protocol(self) -> str:
        """The protocol that all support and most prefer; of equals, the one voted for first."""
        assert self.members, self
        candidates = {name for name, count in self._supported_protocols.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that the members consume; None if they are unknown (no consumers, or unreadable metadata)."""
        if not self.uses_consumer_group_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(_subscribed_topics(member.metadata(self.protocol_name)))
            except MalformedMessage:
                return None
        return frozenset(topics)


def _subscribed_topics(metadata: bytes) -> list[str]:
    """Read the topics of a ConsumerProtocolSubscription: every version starts as version 0 does."""
    if len(metadata) < 2 or metadata[0] & 0x80:
        raise MalformedMessage("a consumer subscription starts with its version")
    subscription, _ = ConsumerProtocolSubscription.read(memoryview(metadata), 2, 0)
    return list(subscription.topics)
