"""The role of a node in its quorum, and its moves from one role to the next.

- The epoch never goes back, and every move is one of `roles`.
- `election` is the part of the role that must survive the process; the host makes it durable before anything else leaves the node.
- Deadlines are monotonic milliseconds. A voter without a leader waits a random time, so that two voters rarely stand at the same time.

Source: Kafka's `QuorumState`.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable
from typing import NamedTuple

from barnabas.raft.ballot import Ballot
from barnabas.raft.candidate import Candidate
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.epochs import ANSWER_AHEAD_MAX, LAST_EPOCH, is_credible
from barnabas.raft.follower import Follower
from barnabas.raft.leader import Leader
from barnabas.raft.prospective import Prospective
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.resigned import Resigned
from barnabas.raft.roles import Role, may_become
from barnabas.raft.unattached import Unattached
from barnabas.raft.voters import VoterSet

State = Unattached | Prospective | Candidate | Leader | Resigned | Follower


class QuorumTimeouts(NamedTuple):
    """Kafka's `controller.quorum.…` settings, in milliseconds.

    Attributes:
        election: a voter without a leader waits between this and twice this before it stands for election.
        fetch: a follower that has not heard its leader for this long stands for election.
    """

    election: int = 1_000
    fetch: int = 2_000
    request: int = 2_000
    retry_backoff: int = 20


class QuorumState:
    """One node's role.

    Args:
        voters: returns the voters in force.
        now_ms: monotonic time.
        election: the content of `quorum-state` from its last run.
    """

    def __init__(
        self,
        key: ReplicaKey,
        voters: Callable[[], VoterSet],
        now_ms: Callable[[], int],
        random: random_module.Random,
        timeouts: QuorumTimeouts,
        election: ElectionState,
    ) -> None:
        self.key = key
        self.timeouts = timeouts
        self._voters = voters
        self._now_ms = now_ms
        self._random = random
        # A node that has removed itself may still have to be elected.
        self.may_stand: Callable[[], bool] = lambda: self.is_voter
        self.state: State = Unattached(election.epoch, 0, election.voted, election.leader_id)

    def __repr__(self) -> str:
        return f"<QuorumState {self.state.role.value} epoch={self.epoch} leader={self.leader_id}>"

    @property
    def role(self) -> Role:
        return self.state.role

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        """The leader of this epoch; -1 if this node knows none."""
        return self.state.leader_id

    @property
    def election(self) -> ElectionState:
        return self.state.election

    @property
    def is_voter(self) -> bool:
        return self._voters().contains(self.key.id, self.key.directory_id)

    @property
    def is_due(self) -> bool:
        """Whether the role's time is up."""
        return self._now_ms() >= self.state.deadline_ms

    @property
    def may_raise_epoch(self) -> bool:
        """Whether there is a next epoch to stand for election in."""
        return self.epoch < LAST_EPOCH

    def accepts(self, epoch: int) -> bool:
        """Return whether an answer of this epoch counts: it is this node's epoch, or one that it may take over."""
        return self.epoch <= epoch and is_credible(epoch, self.epoch, ANSWER_AHEAD_MAX)

    def others(self) -> list[int]:
        """The ids of the other voters."""
        return [voter for voter in self._voters().ids() if voter != self.key.id]

    def start(self, log_epoch: int) -> None:
        """Take the role that the last run left.

        Args:
            log_epoch: the epoch of the log's last record.
        """
        election = self.election
        if log_epoch > election.epoch:
            # quorum-state is missing or older than the log; as in Kafka, the epoch is then at least the log's.
            election = ElectionState(log_epoch)
        if election.leader_id == self.key.id and self.others():
            # The node led this epoch. It neither leads on nor votes in it; it may have removed itself from the voters, and its peers do
            # not know yet.
            self.state = Resigned(election.epoch, self.key.id, self._election_deadline())
        elif election.leader_id in self.others():
            self.state = Follower(election.epoch, election.leader_id, self.fetch_deadline(), election.voted)
        else:
            self.state = Unattached(election.epoch, self._election_deadline(), election.voted)

    # Moves

    def unattach(self, epoch: int, voted: ReplicaKey | None = None) -> None:
        """Take over an epoch whose leader is not known."""
        waits = epoch > self.epoch and isinstance(self.state, Unattached | Candidate)
        # A candidate that gets no vote does not put this node's own election off.
        self._become(Unattached(epoch, self.state.deadline_ms if waits else self._election_deadline(), voted))

    def leave_epoch(self) -> None:
        """Wait for a leader of the next epoch, after this node has led this one: it must not vote in it again."""
        self.unattach(self.epoch + self.may_raise_epoch)

    def follow(self, epoch: int, leader_id: int) -> None:
        """Follow the leader of an epoch."""
        voted = self.state.voted if epoch == self.epoch else None
        self._become(Follower(epoch, leader_id, self.fetch_deadline(), voted))

    def stand(self) -> None:
        """Ask whether a majority would elect this node."""
        state = self.state
        self._become(Prospective(state.epoch, self._election_deadline(), self._ballot(), state.voted, state.leader_id))

    def raise_epoch(self) -> None:
        """Begin the next epoch, and vote for this node in it."""
        self._become(Candidate(max(self.epoch, 0) + 1, self._election_deadline(), self._ballot(), self.key))

    def lead(self, candidate: Candidate, end_offset: int, high_watermark: int) -> Leader:
        """Lead the epoch whose election this node has won; its first record is at `end_offset`."""
        now_ms, check_ms = self._now_ms(), self.timeouts.fetch * 3 // 2
        leader = Leader(
            candidate.epoch,
            end_offset,
            self.key,
            self._voters(),
            check_ms,
            deadline_ms=now_ms + check_ms,
            begin_at_ms=now_ms,
            high_watermark=high_watermark,
        )
        self._become(leader)
        return leader

    def resign(self) -> None:
        """Give up leadership."""
        state = self.state
        assert isinstance(state, Leader), "only a leader resigns"
        successors = state.successors()
        self._become(
            Resigned(state.epoch, self.key.id, self._election_deadline(), successors, {each.id for each in successors})
        )

    def learn(self, epoch: int, leader_id: int) -> None:
        """Take over what a peer knows: a higher epoch, or the leader of this one."""
        if leader_id in (NO_NODE, self.key.id):
            if epoch > self.epoch:
                self.unattach(epoch)
            return
        if epoch == self.epoch and isinstance(self.state, Leader | Resigned | Follower):
            assert leader_id == self.leader_id, f"{leader_id} and {self.leader_id} both lead {epoch}"
            return
        self.follow(epoch, leader_id)

    def _become(self, state: State) -> None:
        raises = state.epoch > self.epoch
        assert state.epoch >= self.epoch, f"epoch would go back from {self.epoch} to {state.epoch}"
        assert may_become(self.role, state.role, raises_epoch=raises, is_voter=self.may_stand()), (
            f"{self!r} to {state.role}"
        )
        self.state = state

    def _ballot(self) -> Ballot:
        return Ballot(self._voters().ids(), self.key.id)

    # Deadlines

    def fetch_deadline(self) -> int:
        """Return when a leader that was heard now will count as gone."""
        return self._now_ms() + self.timeouts.fetch

    def pause(self) -> None:
        """Stand for election again at a random time, and not immediately: another candidate lost at the same moment."""
        pause_ms = self._random.randrange(max(self.timeouts.election, 1))
        self.state.deadline_ms = min(self.state.deadline_ms, self._now_ms() + pause_ms)

    def _election_deadline(self) -> int:
        return self._now_ms() + self.timeouts.election + self._random.randrange(max(self.timeouts.election, 1))
