"""One node of the quorum: inputs in, a `Ready` out.

Inputs are what the host calls: `start`, `tick` when `wake_at_ms` has come, `append`, `flushed`, a peer's request (`vote`, `begin_epoch`,
`end_epoch`, `fetch`), a peer's answer or its failure (`answered`, `failed`). Each returns a `Ready`, whose parts the host carries out in
their order. So the log and the election state are durable before the messages and the answer that promise them leave the node.

    unattached ──time──► prospective ──a majority would──► candidate ──a majority did──► leader ──silence──► resigned ──► unattached
                              │ nobody would                   │ lost                                        (next epoch)
                              ▼                                ▼
                     unattached, follower                 prospective        any ──a higher epoch──► unattached, follower

- A sole voter wins every ballot with its own vote, so `start` leads when it returns.
- A node fetches more only when its own log is on disk: the offset of its Fetch is a promise to the leader.
- One request is under way to each peer. An answer to a request that was given up is dropped.

Sources: KIP-595 (epochs, leader change record, high watermark), KIP-853 (directory ids, voter records), KIP-996 (pre-vote); Kafka's
`KafkaRaftClient`.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Sequence

from barnabas.clock import Clock
from barnabas.protocol.errors import ErrorCode
from barnabas.raft.candidate import Candidate
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.follower import Follower
from barnabas.raft.leader import Leader
from barnabas.raft.local_log import LocalLog
from barnabas.raft.peer_messages import (
    Answer,
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    Fetched,
    FetchFrom,
    FetchSnapshot,
    Outgoing,
    Request,
    Vote,
    VoteAnswer,
)
from barnabas.raft.prospective import Prospective
from barnabas.raft.quorum import ElectionOutcome
from barnabas.raft.quorum_state import QuorumState, QuorumTimeouts, State
from barnabas.raft.ready import FlushToken, Ready
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_checks import (
    error_of_end,
    error_of_epoch,
    error_of_fetch,
    error_of_leader,
    error_of_leadership,
    error_of_voter,
)
from barnabas.raft.request_manager import ANYONE, RequestManager
from barnabas.raft.resigned import Resigned
from barnabas.raft.role_requests import request_to
from barnabas.raft.roles import Role
from barnabas.raft.seams import Batch, LogReader, SnapshotId
from barnabas.raft.start_of_epoch import ControlRecord, first_voters, leader_change, voters_record, voters_to_write
from barnabas.raft.unattached import Unattached
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.control import build_control_batch

# Kafka's internal.metadata.max.batch.size.in.bytes: one atomic change has to fit one batch.
MAX_BATCH_BYTES = 8 * 1024 * 1024

STAGGER_MS = 100

DEFAULT_TIMEOUTS = QuorumTimeouts()


class QuorumNotSupported(Exception):
    """This node cannot take part in the quorum that its log names; it must not start."""


class BatchTooLarge(Exception):
    """Records do not fit one batch, so they cannot be appended atomically."""


class RaftNode:
    """One member of the quorum, or an observer of it.

    Args:
        key: this node and its metadata directory.
        history: the voter sets of the log; the last one is in force.
        election: the content of `quorum-state`, or the initial state.
        log: the log as it is; the node only reads it.
        clock: batches carry its wall time; timeouts go by its monotonic time.
        random: the source of election timeouts.
        bootstrap_ids: of servers that a node without a leader asks like the voters (`peer_messages.bootstrap_ids`).

    Attributes:
        high_watermark: the offset up to which this node knows its own log to be committed; -1 if it knows nothing yet.
        quorum_high_watermark: the highest that a leader has named; the log may end before it.
        own_voter: this node as the voter set should have it, if that is known.
    """

    def __init__(
        self,
        key: ReplicaKey,
        history: VoterSetHistory,
        election: ElectionState,
        log: LogReader,
        clock: Clock,
        random: random_module.Random,
        timeouts: QuorumTimeouts = DEFAULT_TIMEOUTS,
        bootstrap_ids: Sequence[int] = (),
    ) -> None:
        self.key, self.log = key, LocalLog(log, history)
        self.quorum = QuorumState(key, lambda: self.voters, clock.monotonic_ms, random, timeouts, election)
        self.quorum.may_stand = lambda: self.history.may_stand(key, self.high_watermark)
        self.high_watermark = self.quorum_high_watermark = -1
        self.own_voter: Voter | None = None
        self.clock = clock
        self._bootstrap_ids = tuple(bootstrap_ids)
        self._requests = RequestManager(timeouts.retry_backoff, timeouts.request)
        self.wanted_snapshot: SnapshotId | None = None
        # A node that knows no leader asks the voters in turn.
        self._turn = random.randrange(1_000)
        self._saved = election
        self._acting: State = self.quorum.state
        self._ready = Ready()

    def __repr__(self) -> str:
        return (
            f"<RaftNode id={self.key.id} {self.role.value} epoch={self.epoch} "
            f"high_watermark={self.high_watermark} end={self.log.end_offset}>"
        )

    @property
    def role(self) -> Role:
        return self.quorum.role

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def leader_id(self) -> int:
        """The leader of this epoch; -1 if this node knows none."""
        return self.quorum.leader_id

    @property
    def voters(self) -> VoterSet:
        """The voter set in force."""
        return self.log.history.last.voters

    @property
    def kraft_version(self) -> int:
        return self.log.history.last.kraft_version

    @property
    def history(self) -> VoterSetHistory:
        """The voter sets of the log."""
        return self.log.history

    @property
    def end_offset(self) -> int:
        """Where the log ends."""
        return self.log.end_offset

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def wake_at_ms(self) -> int | None:
        """When `tick` has something to do, in monotonic time; None if only another input can change anything."""
        state, now_ms = self.quorum.state, self.clock.monotonic_ms()
        times = [self._requests.ready_at(peer, now_ms) for peer in self._to_ask()]
        if isinstance(state, Leader):
            times += [] if state.is_alone else [state.deadline_ms]
            times += [] if state.is_alone else [state.begin_at_ms]
        elif self.quorum.may_stand() or isinstance(state, Follower | Resigned):
            times.append(state.deadline_ms)
        return min(times, default=None)

    # Inputs from the host

    def start(self) -> Ready:
        """Join the quorum; a sole voter leads a new epoch when this returns.

        Raises:
            QuorumNotSupported: the only voter is this node with another directory. With other voters it would be an observer, as in Kafka.
        """
        is_sole = self.voters.ids() == (self.key.id,)
        if is_sole and not self.quorum.is_voter:
            raise QuorumNotSupported(
                f"the voter set names another metadata directory for node {self.key.id}; was the directory replaced?"
            )
        self.quorum.start(self.log.last_epoch)
        return self.campaign() if is_sole else self._take()

    def tick(self) -> Ready:
        """Carry out what is due by now: elections, retries, resignation."""
        return self._take()

    def campaign(self) -> Ready:
        """Stand for election now instead of at the election timeout."""
        if isinstance(self.quorum.state, Resigned):
            # The next epoch: as the leader of this one, the node must not vote in it again.
            self.quorum.leave_epoch()
        self.quorum.stand()
        return self._take()

    def resign(self) -> Ready:
        """Give up leadership of this epoch; appended records that are not committed may still be committed later."""
        self.quorum.resign()
        return self._take()

    def append(self, values: Sequence[bytes]) -> Ready:
        """Build the batch that appends records atomically.

        Args:
            values: encoded metadata records, at least one.

        Raises:
            BatchTooLarge: the node is unchanged.
        """
        assert self.is_leader, "only the leader appends"
        assert values, "an empty batch has no offset to commit"
        now_ms = self.clock.wall_ms()
        batch = build_batch(
            [(now_ms, None, value, ()) for value in values], base_offset=self.log.end_offset, leader_epoch=self.epoch
        )
        if len(batch) > MAX_BATCH_BYTES:
            raise BatchTooLarge(f"{len(values)} records make a batch of {len(batch)} bytes")
        self.log.appended(len(values), self.epoch)
        self._must_append(batch)
        return self._take()

    def change_voters(self, voters: VoterSet) -> Ready:
        """Append a voter set, which is in force from now on: a change (`voter_changes`), or a `kraft_version_upgrade`."""
        state = self.quorum.state
        assert isinstance(state, Leader), "only the leader changes the voters"
        self._append_control(first_voters(voters) if self.kraft_version == 0 else [voters_record(voters)])
        self.log.history.add(VotersFrom(self.log.end_offset - 1, voters))
        state.change_voters(voters, self.clock.monotonic_ms())
        self._advance(state)
        return self._take()

    def append_failed(self, end_offset: int) -> None:
        """Take the last `append` back: the log rejected its batch and still ends at `end_offset`."""
        self.log.append_failed(end_offset)

    def flush_token(self) -> FlushToken:
        """Return the token of a flush that begins now."""
        return self.log.flush_token()

    def flushed(self, token: FlushToken) -> Ready:
        """Note that a flush has ended; one that began before a truncation says nothing about the records written since."""
        state = self.quorum.state
        if self.log.flushed(token) and isinstance(state, Leader):
            state.flushed(token.end_offset, self.clock.monotonic_ms())
            self._advance(state)
        return self._take()

    # Requests of peers

    def vote(self, request: Vote) -> Ready:
        """Decide on a vote, or on a pre-vote."""
        error = error_of_epoch(self.quorum, request.epoch, request.candidate.id) or error_of_end(request)
        if error is ErrorCode.NONE and request.epoch > self.epoch:
            self.quorum.unattach(request.epoch)
        error = error or error_of_voter(self.key, request.voter)
        if error is not ErrorCode.NONE:
            return self._take(VoteAnswer(self.epoch, self.leader_id, error=error))
        state = self.quorum.state
        is_up_to_date = request.log_end >= self.log.end
        is_granted = state.grants(request.candidate, is_up_to_date=is_up_to_date, pre_vote=request.pre_vote)
        if is_granted and not request.pre_vote and state.voted is None:
            self.quorum.unattach(self.epoch, request.candidate)
        return self._take(VoteAnswer(self.epoch, self.leader_id, is_granted))

    def begin_epoch(self, request: BeginEpoch) -> Ready:
        """Learn the leader of an epoch."""
        error = error_of_leader(self.quorum, request)
        if error is ErrorCode.NONE:
            self.quorum.learn(request.epoch, request.leader_id)
        error = error or error_of_voter(self.key, request.voter)
        return self._take(EpochAnswer(self.epoch, self.leader_id, error))

    def end_epoch(self, request: EndEpoch) -> Ready:
        """Learn that an epoch's leader has given up; the first of its preferred successors stands for election immediately."""
        error = error_of_leader(self.quorum, request)
        if error is ErrorCode.NONE:
            self.quorum.learn(request.epoch, request.leader_id)
            if isinstance(self.quorum.state, Follower) and self.quorum.is_voter:
                self._succeed(self.quorum.state, request.preferred)
        return self._take(EpochAnswer(self.epoch, self.leader_id, error))

    def _succeed(self, state: Follower, preferred: tuple[ReplicaKey, ...]) -> None:
        place = next((n for n, each in enumerate(preferred) if each.names(self.key)), len(preferred))
        if place == 0:
            self.quorum.stand()
            return
        # The later a successor is in the list, the longer it waits. So they stand one after the other, and each has time to win.
        timeouts = self.quorum.timeouts
        state.deadline_ms = self.clock.monotonic_ms() + min(timeouts.retry_backoff * 2**place, timeouts.election)

    def fetch(self, request: FetchFrom, *, is_first: bool = True) -> Ready:
        """Answer a replica's Fetch; `Ready.answer` is None if nothing is new: the host asks again when something is, or in time.

        Args:
            is_first: False when the same request is asked again, which says nothing new about the replica.
        """
        state, error = self.quorum.state, error_of_fetch(self.quorum, request)
        if not isinstance(state, Leader) or error is not ErrorCode.NONE:
            return self._take(Fetched(self.epoch, self.leader_id, error=error))
        answer = Fetched(self.epoch, self.key.id, self.high_watermark, self.log.reader.start_offset)
        snapshot = self.log.snapshot_for(request.offset, request.last_fetched_epoch)
        diverging = self.log.differs_at(request.offset, request.last_fetched_epoch)
        if snapshot is not None or diverging is not None:
            return self._take(answer._replace(snapshot=snapshot, diverging=None if snapshot else diverging))
        if is_first:
            state.fetched(request.replica, request.offset, self.log.end, self.clock.monotonic_ms())
            self._advance(state)
            answer = answer._replace(high_watermark=self.high_watermark)
        if request.offset < self.log.end_offset:
            return self._take(answer._replace(batches=self.log.read(request.offset)))
        return self._take(answer if request.high_watermark < self.high_watermark else None)

    def check_snapshot_request(self, request: FetchSnapshot) -> ErrorCode:
        """Return why this node may not answer a request for its snapshot; if it may, the asker counts as heard."""
        error = error_of_leadership(self.quorum, request.epoch)
        if isinstance(self.quorum.state, Leader) and error is ErrorCode.NONE:
            self.quorum.state.asked_for_snapshot(request.replica, self.clock.monotonic_ms())
        return error

    # Answers of peers

    def failed(self, request: Request, *, is_refused: bool = False) -> Ready:
        """Note that a request got no answer.

        Args:
            is_refused: nothing listens at the peer's address. If that is true of a leader twice in a row, the leader has died, and its
                followers need not wait for the fetch timeout. They all notice it at the same time, so they stand one after the other:
                a split vote would cost an election timeout. If the leader lives after all, one more election does no harm.
        """
        state, now_ms = self.quorum.state, self.clock.monotonic_ms()
        is_new = self._requests.ended(request, now_ms, is_ok=False)
        if is_new and isinstance(state, Follower):
            state.refusals = state.refusals + 1 if is_refused else 0
            if not self.quorum.is_voter:
                # An observer holds no election, so it asks another node, which may know a new leader already.
                state.asks_others = not state.asks_others
            elif state.has_dead_leader:
                others = [voter for voter in self.voters.ids() if voter != state.leader_id]
                state.deadline_ms = min(state.deadline_ms, now_ms + others.index(self.key.id) * STAGGER_MS)
        return self._take()

    def answered(self, to: int, request: Request, answer: Answer) -> Ready:
        """Take a peer's answer."""
        is_ok = answer.error is ErrorCode.NONE and self.quorum.accepts(answer.epoch)
        if not self._requests.ended(request, self.clock.monotonic_ms(), is_ok=is_ok) or not self.quorum.accepts(
            answer.epoch
        ):
            return self._take()
        if isinstance(self.quorum.state, Follower):
            self.quorum.state.asks_others = False
            self.quorum.state.refusals = 0
        if answer.epoch > self.epoch or (answer.leader_id != NO_NODE and self.leader_id == NO_NODE):
            self.quorum.learn(answer.epoch, answer.leader_id)
        elif is_ok:
            self._take_answer(to, request, answer)
        return self._take()

    def _take_answer(self, to: int, request: Request, answer: Answer) -> None:
        match self.quorum.state, request, answer:
            case Prospective() | Candidate() as state, Vote(), VoteAnswer():
                state.ballot.record(to, answer.is_granted)
                if isinstance(state, Candidate) and state.ballot.outcome is ElectionOutcome.LOST:
                    self.quorum.pause()
            case Follower() as state, FetchFrom(), Fetched():
                self._take_fetched(state, answer)
            case Leader() as state, BeginEpoch(), _:
                state.heard_at[to] = self.clock.monotonic_ms()
            case Resigned() as state, EndEpoch(), _:
                state.unacknowledged.discard(to)

    def _take_fetched(self, state: Follower, answer: Fetched) -> None:
        state.has_fetched = True
        self.quorum_high_watermark = max(self.quorum_high_watermark, answer.high_watermark)
        state.deadline_ms = self.quorum.fetch_deadline()
        if answer.snapshot is not None:
            self.wanted_snapshot = answer.snapshot
            self._ready = self._ready._replace(snapshot=answer.snapshot)
            return
        if answer.diverging is not None:
            self._truncate(self.log.common_end(answer.diverging))
            return
        for batch in answer.batches:
            if not self.log.received(batch, answer.epoch):
                break
            self._must_append(batch)
        # At most the end of this log: the leader may be ahead.
        self._commit(min(answer.high_watermark, self.log.end_offset))

    def _truncate(self, end_offset: int) -> None:
        assert self.high_watermark <= end_offset, f"the leader would take committed records from {self!r}: {end_offset}"
        self.log.truncate(end_offset)
        self._ready = self._ready._replace(truncate_to=end_offset, flush=True)

    # A snapshot on its way from the leader

    def snapshot_goes_on(self) -> Ready:
        """Note that the leader still answers while the host takes its snapshot."""
        if isinstance(self.quorum.state, Follower) and self.wanted_snapshot is not None:
            self.quorum.state.deadline_ms = self.quorum.fetch_deadline()
        return self._take()

    def snapshot_failed(self) -> Ready:
        """Note that the host could not take the snapshot; the next Fetch asks for it again."""
        self.wanted_snapshot = None
        return self._take()

    def snapshot_loaded(self, snapshot: SnapshotId, voters: VoterSet | None) -> Ready:
        """Note that the host has taken `wanted_snapshot`, and that the log begins and ends at its end.

        The host asks for `wanted_snapshot` before it replaces the log: under another leader this node may have promised
        records that the snapshot does not hold.

        Args:
            voters: those that the snapshot names; None if it names none, as when only the configuration does.
        """
        assert snapshot == self.wanted_snapshot, f"{self!r} does not want {snapshot}"
        assert snapshot.end_offset > self.high_watermark, f"{snapshot} is behind {self!r}"
        self.wanted_snapshot = None
        self.log.begin_at(snapshot, voters)
        self._commit(snapshot.end_offset)
        return self._take()

    # Effects of the role

    def _take(self, answer: Answer | None = None) -> Ready:
        """Let the role act, and return everything that must happen."""
        before: object = None
        while before is not self.quorum.state:  # A sole voter goes from prospective to leader in one step.
            before = self.quorum.state
            self._poll()
        self._end_former_role()
        messages = tuple(self._send())
        ready, self._ready = self._ready._replace(messages=messages, answer=answer), Ready()
        if self.quorum.election != self._saved:
            self._saved = self.quorum.election
            ready = ready._replace(election=self._saved)
        return ready

    def _end_former_role(self) -> None:
        """Drop the requests of a role that this node has left."""
        former, self._acting = self._acting, self.quorum.state
        if former is self._acting:
            return
        self._requests.reset()
        self.wanted_snapshot = None
        if isinstance(former, Leader):
            # A removed leader resigns when its epoch's first record is committed. The listeners must not begin an epoch that is over.
            self._ready = self._ready._replace(leader_epoch=None, left_epoch=former.epoch)

    def _poll(self) -> None:
        """Do one thing that is due."""
        quorum, is_due = self.quorum, self.quorum.is_due
        match quorum.state:
            case Unattached() | Follower() if is_due and quorum.may_stand():
                quorum.stand()
            case Follower() as state if is_due:
                quorum.unattach(state.epoch, state.voted)
            case Prospective() as state if state.ballot.outcome is ElectionOutcome.WON and quorum.may_raise_epoch:
                quorum.raise_epoch()
            case Prospective() as state if is_due or state.ballot.outcome is not ElectionOutcome.PENDING:
                if state.leader_id == NO_NODE:
                    quorum.unattach(state.epoch, state.voted)
                else:
                    quorum.follow(state.epoch, state.leader_id)
            case Candidate() as state if state.ballot.outcome is ElectionOutcome.WON:
                self._lead(state)
            case Candidate() if is_due:
                quorum.stand()
            case Leader() as state if (is_due and not state.is_alone) or self.history.has_removed(
                self.key, self.high_watermark
            ):
                quorum.resign()
            case Resigned() if is_due:
                quorum.leave_epoch()

    def _lead(self, candidate: Candidate) -> None:
        leader = self.quorum.lead(candidate, self.log.end_offset, self.high_watermark)
        if self.own_voter is not None:
            leader.name(self.own_voter)
        records = [leader_change(self.key.id, self.voters, candidate.ballot.granting)]
        voters = voters_to_write(self.log.history, self.own_voter)
        if voters is not None:
            records += first_voters(voters)
            self.log.history.add(VotersFrom(self.log.end_offset + len(records) - 1, voters))
        self._append_control(records)

    def _append_control(self, records: Sequence[ControlRecord]) -> None:
        now_ms, end_offset = self.clock.wall_ms(), self.log.end_offset
        batch = build_control_batch(records, timestamp=now_ms, base_offset=end_offset, leader_epoch=self.epoch)
        self.log.appended(len(records), self.epoch)
        self._must_append(batch)

    def _must_append(self, batch: Batch) -> None:
        self._ready = self._ready._replace(batches=(*self._ready.batches, batch), flush=True)

    def _advance(self, state: Leader) -> None:
        before = self.high_watermark
        self._commit(state.advance())
        if before <= state.epoch_start_offset < self.high_watermark:
            self._ready = self._ready._replace(leader_epoch=state.epoch)

    def _commit(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.quorum_high_watermark = max(self.quorum_high_watermark, offset)
            self._ready = self._ready._replace(high_watermark=offset)

    # Requests to peers

    def _send(self) -> list[Outgoing]:
        now_ms, state = self.clock.monotonic_ms(), self.quorum.state
        sent = []
        for peer in self._to_ask():
            if now_ms >= self._requests.ready_at(peer, now_ms):
                to = self._next_source() if peer == ANYONE else peer
                request = request_to(to, self.quorum, self.voters, self.log.end, self.high_watermark)
                self._requests.sent(peer, request, now_ms)
                sent.append(Outgoing(to, request))
        if isinstance(state, Leader) and now_ms >= state.begin_at_ms:
            state.begin_at_ms = now_ms + self.quorum.timeouts.fetch // 2
        return sent

    def _to_ask(self) -> list[int]:
        """The peers that this role has something to ask."""
        match self.quorum.state:
            case Prospective() | Candidate() as state:
                return state.ballot.undecided
            case Leader() as state:
                now_ms = self.clock.monotonic_ms()
                return state.unaware(now_ms) if now_ms >= state.begin_at_ms else []
            case Resigned() as state:
                return sorted(state.unacknowledged)
            case Follower() as state:
                to = ANYONE if state.asks_others and self._sources() else state.leader_id
                return [to] if self._may_fetch() else []
            case Unattached():
                return [ANYONE] if self._sources() and self._may_fetch() else []

    def _may_fetch(self) -> bool:
        return self.log.is_durable and self.wanted_snapshot is None

    def _sources(self) -> list[int]:
        """The nodes that a node without a leader may ask."""
        return [*self.quorum.others(), *self._bootstrap_ids]

    def _next_source(self) -> int:
        sources = self._sources()
        self._turn += 1
        return sources[self._turn % len(sources)]
