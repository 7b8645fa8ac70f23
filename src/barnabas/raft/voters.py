"""The voters of a quorum.

A voter is a node id together with the id of its metadata directory: a node with a new disk is a new voter
(KIP-853). The set travels in a VotersRecord, a control record of the log and of its snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.protocol import messages
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.replica_key import ReplicaKey


class VoterEndpoint(NamedTuple):
    name: str
    host: str
    port: int


class Voter(NamedTuple):
    id: int
    directory_id: bytes
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_min_version: int = 0
    kraft_max_version: int = 1

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    def supports(self, kraft_version: int) -> bool:
        """Return whether the node can take part at this level of kraft.version."""
        return self.kraft_min_version <= kraft_version <= self.kraft_max_version


def preferred_endpoint(endpoints: Sequence[VoterEndpoint], listener_name: str) -> VoterEndpoint | None:
    """Return the endpoint of a listener name, or the first endpoint if the node has no listener of this name."""
    by_name = (each for each in endpoints if each.name == listener_name)
    return next(by_name, endpoints[0] if endpoints else None)


class VoterSet(NamedTuple):
    """Voters in id order."""

    voters: tuple[Voter, ...]

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        return cls(tuple(sorted(voters, key=lambda voter: voter.id)))

    def ids(self) -> tuple[int, ...]:
        return tuple(voter.id for voter in self.voters)

    def voter(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.id == node_id), None)

    def with_voter(self, voter: Voter) -> VoterSet:
        """Return the set with a voter, in place of one with the same id."""
        return VoterSet.of([*(each for each in self.voters if each.id != voter.id), voter])

    def without(self, key: ReplicaKey) -> VoterSet | None:
        """Return the set without a voter; None if it has no such voter, or no other."""
        kept = [each for each in self.voters if each.key != key]
        return VoterSet.of(kept) if 0 < len(kept) < len(self.voters) else None

    def contains(self, node_id: int, directory_id: bytes) -> bool:
        """Return whether this node votes with this directory; a static voter set (kraft.version 0) names no directories."""
        return any(v.id == node_id and v.directory_id in (directory_id, ZERO_UUID) for v in self.voters)

    def endpoint_of(self, node_id: int, listener_name: str) -> VoterEndpoint | None:
        """Return where a voter serves the quorum; None for another node, and for a voter without an endpoint."""
        voter = next((each for each in self.voters if each.id == node_id), None)
        return None if voter is None else preferred_endpoint(voter.endpoints, listener_name)

    def to_record(self) -> messages.VotersRecord:
        return messages.VotersRecord(
            version=0,
            voters=[
                messages.VotersRecord.Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[
                        messages.VotersRecord.Endpoint(name=e.name, host=e.host, port=e.port) for e in voter.endpoints
                    ],
                    k_raft_version_feature=messages.VotersRecord.KRaftVersionFeature(
                        min_supported_version=voter.kraft_min_version, max_supported_version=voter.kraft_max_version
                    ),
                )
                for voter in self.voters
            ],
        )

    @classmethod
    def from_record(cls, record: messages.VotersRecord) -> VoterSet:
        return cls.of(
            Voter(
                voter.voter_id,
                voter.voter_directory_id,
                tuple(VoterEndpoint(e.name, e.host, e.port) for e in voter.endpoints),
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        )
