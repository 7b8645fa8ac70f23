"""A member of a classic group.

While a member waits for the answer to its JoinGroup or SyncGroup, the way to answer it is kept here: `awaiting_join` and
`awaiting_sync`. Such a member needs no heartbeats; it is alive because the coordinator keeps it waiting.

Source: Kafka class `ClassicGroupMember`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from barnabas.protocol.messages import DescribeGroupsResponse, JoinGroupResponse, SyncGroupResponse

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]
Protocols = dict[str, bytes]
"""Protocol name to metadata, in the member's order of preference."""


class ClassicGroupMember:
    """One member: its identity, its protocols, its assignment."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: JoinReply | None = None
        self.awaiting_sync: SyncReply | None = None
        self.is_new = False

    def __repr__(self) -> str:
        return f"<ClassicGroupMember {self.member_id} instance={self.group_instance_id}>"

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether a session timeout that fires now must be ignored."""
        if self.is_new:
            return False  # It has never been answered, so it may have left.
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for a protocol that it supports."""
        return self.protocols[protocol]

    def vote(self, candidates: Collection[str]) -> str:
        """The first of its protocols that is a candidate."""
        return next(name for name in self.protocols if name in candidates)

    def matches(self, protocols: Protocols) -> bool:
        """Return whether these are the same protocols, in the same order, with the same metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def describe(self, protocol: str | None) -> DescribeGroupsResponse.DescribedGroupMember:
        """For DescribeGroups; without a protocol the metadata is left empty."""
        return DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=b"" if protocol is None else self.assignment,
        )
