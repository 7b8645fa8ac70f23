"""Node 1 of the voters 1, 2 and 3, with its log in memory and a clock that a test moves."""

from __future__ import annotations

import random

from barnabas.clock import Clock
from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import BeginEpoch, Fetched, FetchFrom, LogEnd, Outgoing, Vote, VoteAnswer
from barnabas.raft.quorum_state import QuorumTimeouts
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.ready import Ready
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.builder import build_batch
from tests.raft.memory_log import MemoryLog

ONE, TWO, THREE = KEYS = [ReplicaKey(n, bytes([n]) * 16) for n in (1, 2, 3)]
OBSERVER = ReplicaKey(9, b"o" * 16)
VOTERS = VoterSet.of(Voter(*key) for key in KEYS)
TIMEOUTS = QuorumTimeouts(election=1_000, fetch=2_000, request=2_000, retry_backoff=20)


def batch(base_offset: int, epoch: int, count: int = 1) -> bytearray:
    return build_batch([(0, None, b"v", ())] * count, base_offset=base_offset, leader_epoch=epoch)


class Member:
    """Args: `epochs` holds the leader epoch of each record of the log, in batches of one record."""

    def __init__(self, *epochs: int, election: ElectionState | None = None, key: ReplicaKey = ONE) -> None:
        self.now_ms = 0
        self.log = MemoryLog()
        for offset, epoch in enumerate(epochs):
            self.log.append(batch(offset, epoch))
        clock = Clock(lambda: self.now_ms, lambda: self.now_ms)
        history = VoterSetHistory(VotersFrom(0, VOTERS))
        state = election or ElectionState()
        self.node = RaftNode(key, history, state, self.log, clock, random.Random(1), TIMEOUTS)
        self.sent: list[Outgoing] = []
        self.do(self.node.start())

    def do(self, ready: Ready) -> Ready:
        """Truncate and append what the node asks for; keep its messages; flushes are the test's."""
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
        for each in ready.batches:
            self.log.append(each)
        self.sent = list(ready.messages)
        return ready

    def flush(self) -> Ready:
        return self.do(self.node.flushed(self.node.flush_token()))

    def wait(self, duration_ms: int) -> Ready:
        self.now_ms += duration_ms
        return self.do(self.node.tick())

    def answer(self, message: Outgoing, answer: VoteAnswer | Fetched) -> Ready:
        return self.do(self.node.answered(message.to, message.request, answer))

    def stand(self) -> None:
        """Become prospective."""
        self.do(self.node.campaign())

    def grant(self) -> Ready:
        """Let one other voter grant what was asked."""
        return self.answer(self.sent[0], VoteAnswer(self.node.epoch, is_granted=True))

    def lead(self) -> None:
        """Win an election, and write the epoch's first record."""
        self.stand()
        self.grant()
        self.grant()
        assert self.node.is_leader

    def follow(self, leader: ReplicaKey, epoch: int) -> Outgoing:
        """Hear of a leader; returns the Fetch to it."""
        self.do(self.node.begin_epoch(BeginEpoch(epoch, leader.id, self.node.key)))
        return self.sent[0]

    def fetched(self, replica: ReplicaKey, offset: int, last_epoch: int) -> Ready:
        """Let a replica fetch in this epoch."""
        return self.do(self.node.fetch(FetchFrom(self.node.epoch, replica, offset, last_epoch)))

    def asked_by(self, candidate: ReplicaKey, epoch: int, end: LogEnd, *, pre_vote: bool = False) -> VoteAnswer:
        answer = self.do(self.node.vote(Vote(epoch, candidate, self.node.key, end, pre_vote))).answer
        assert isinstance(answer, VoteAnswer)
        return answer
