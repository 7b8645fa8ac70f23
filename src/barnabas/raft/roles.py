"""The roles of a node in a quorum, and which may follow which.

    unattached    knows an epoch, not its leader; may have voted in it
    prospective   asks whether it would be elected, without raising its epoch (pre-vote, KIP-996)
    candidate     has raised its epoch and voted for itself
    leader        was elected in this epoch
    resigned      gave up leadership of this epoch and waits for the next
    follower      knows the epoch's leader and fetches from it

An observer is not a role: it is a node that does not vote, so it is only ever unattached or a follower, or resigned if it was the
leader that removed itself from the voters (KIP-853).

Sources: KIP-595, KIP-996; Kafka's `QuorumState` (its class comment lists the transitions).
"""

from __future__ import annotations

import enum


class Role(enum.Enum):
    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    RESIGNED = "Resigned"
    FOLLOWER = "Follower"


_SAME_EPOCH = {
    Role.UNATTACHED: {Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER},
    Role.PROSPECTIVE: {Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER},
    Role.CANDIDATE: {Role.PROSPECTIVE, Role.LEADER, Role.FOLLOWER},
    Role.LEADER: {Role.RESIGNED},
    Role.RESIGNED: {Role.UNATTACHED},
    Role.FOLLOWER: {Role.PROSPECTIVE, Role.UNATTACHED},
}
_HIGHER_EPOCH = {
    Role.UNATTACHED: {Role.UNATTACHED, Role.FOLLOWER},
    Role.PROSPECTIVE: {Role.UNATTACHED, Role.CANDIDATE, Role.FOLLOWER},
    Role.CANDIDATE: {Role.UNATTACHED, Role.FOLLOWER},
    Role.LEADER: {Role.UNATTACHED, Role.FOLLOWER},
    Role.RESIGNED: {Role.UNATTACHED, Role.FOLLOWER},
    Role.FOLLOWER: {Role.UNATTACHED, Role.FOLLOWER},
}
# A leader may have been removed from the voters; it leads until that is committed, and resigns.
_VOTERS_ONLY = {Role.PROSPECTIVE, Role.CANDIDATE, Role.LEADER}


def may_become(current: Role, following: Role, *, raises_epoch: bool, is_voter: bool) -> bool:
    """Return whether a node in one role may take another, in the same epoch or in a higher one."""
    if following in _VOTERS_ONLY and not is_voter:
        return False
    return following in (_HIGHER_EPOCH if raises_epoch else _SAME_EPOCH)[current]
