"""A whole quorum in one thread, from one seed: nodes with logs in memory, and a network that loses, delays, repeats, reorders and cuts.

Whoever breaks an invariant raises AssertionError with the seed's events. The invariants are those of Kafka's `RaftEventSimulationTest`:
MonotonicEpoch, SingleLeader, MajorityReachedHighWatermark, MonotonicHighWatermark, ConsistentCommittedData, SnapshotAtLogStart,
LeaderNeverLoadSnapshot.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas.clock import Clock
from barnabas.raft import voter_changes
from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader
from barnabas.raft.peer_messages import Answer, BeginEpoch, EndEpoch, FetchFrom, Outgoing, Request, Vote, VoteAnswer
from barnabas.raft.quorum import majority
from barnabas.raft.quorum_state import QuorumTimeouts
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.ready import Ready
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from tests.raft.memory_log import MemoryLog, Snapshot

TIMEOUTS = QuorumTimeouts(election=100, fetch=150, request=100, retry_backoff=10)
FETCH_WAIT_MS = 50


@dataclass
class Weather:
    """What the network and the machines do, in milliseconds and shares of one."""

    delay_ms: int = 5
    lost: float = 0.0
    repeated: float = 0.0
    fragile: float = 0.0
    """How often a node crashes, and starts again, soon after it has voted or learnt of a leader."""
    flush_ms: int = 3
    cut: set[tuple[int, int]] = field(default_factory=set)
    """Pairs (from, to) that nothing passes."""


class Host:
    """One process with its disk: the node of the moment, and what survives it."""

    def __init__(self, world: World, key: ReplicaKey) -> None:
        self.world = world
        self.key = key
        self.log = MemoryLog()
        self.election = ElectionState()
        self.node: RaftNode | None = None
        self.life = 0
        self.leader_epoch = -1
        self.is_flushing = self.wants_flush = False
        self.parked: list[tuple[FetchFrom, Callable[[Answer | None], None]]] = []

    def __repr__(self) -> str:
        return f"<Host {self.key.id} {self.node!r}>"

    def start(self) -> None:
        world = self.world
        clock = Clock(lambda: world.now_ms, lambda: world.now_ms)
        first = self.log.snapshots[0].voters if self.log.snapshots else world.voters
        history = VoterSetHistory(VotersFrom(max(self.log.start_offset - 1, 0), first))
        for entry in self.log.voter_sets():
            history.add(entry)
        self.life += 1
        self.leader_epoch = -1
        self.is_flushing = self.wants_flush = False
        self.node = RaftNode(self.key, history, self.election, self.log, clock, world.rng, TIMEOUTS)
        if self.log.start_offset:
            self.node.high_watermark = self.log.start_offset
        self.do(self.node.start())

    def crash(self) -> None:
        self.node = None
        self.life += 1
        self.parked.clear()
        self.log.crash(self.world.rng.choice((0, 0, 1)))

    def _stumble(self) -> None:
        if self.node is not None:
            self.crash()
            self.start()

    # What a Ready asks for

    def do(self, ready: Ready) -> None:
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
        if ready.election is not None:
            self.world.elected(self, self.election, ready.election)
            self.election = ready.election
            if self.world.rng.random() < self.world.weather.fragile:
                self.world.later(self.world.rng.randrange(20), self._stumble)
        for batch in ready.batches:
            self.log.append(batch)
        if ready.flush:
            self._flush()
        if ready.leader_epoch is not None:
            self.leader_epoch = ready.leader_epoch
        if ready.left_epoch is not None:
            self.leader_epoch = -1
        if ready.snapshot is not None:
            self._take_snapshot(ready.snapshot)
        for message in ready.messages:
            self.world.send(self, message)
        if ready.high_watermark is not None:
            self.world.committed(self)
        if ready.high_watermark is not None or ready.batches or ready.left_epoch is not None:
            self._ask_parked()
        self._sleep()

    def _flush(self) -> None:
        if self.is_flushing:
            self.wants_flush = True
            return
        assert self.node is not None
        self.is_flushing, self.wants_flush = True, False
        node, token, batches = self.node, self.node.flush_token(), len(self.log.batches)

        def done() -> None:
            if self.node is not node:
                return
            self.is_flushing = False
            if node.log.truncations == token.truncations:
                self.log.durable = max(self.log.durable, min(batches, len(self.log.batches)))
            self.do(node.flushed(token))
            if self.wants_flush:
                self._flush()

        self.world.later(self.world.rng.randrange(self.world.weather.flush_ms + 1), done)

    def _sleep(self) -> None:
        assert self.node is not None
        at_ms, life = self.node.wake_at_ms, self.life

        def wake() -> None:
            if self.node is not None and life == self.life and self.node.wake_at_ms == at_ms:
                self.do(self.node.tick())

        if at_ms is not None:
            self.world.at(max(at_ms, self.world.now_ms + 1), wake)

    def _take_snapshot(self, wanted: SnapshotId) -> None:
        node, life = self.node, self.life
        assert node is not None
        source = self.world.hosts[node.leader_id]
        found = next((each for each in source.log.snapshots if each.id == wanted), None)

        def arrived() -> None:
            if self.node is not node or life != self.life or node.wanted_snapshot != wanted:
                return
            if found is None or self.world.is_cut(source.key.id, self.key.id):
                self.do(node.snapshot_failed())
                return
            self.log.batches, self.log.durable, self.log.snapshots = [], 0, [found]
            self.do(node.snapshot_loaded(found.id, found.voters))

        self.world.later(20, arrived)

    # What arrives

    def receive(self, request: Request, reply: Callable[[Answer | None], None]) -> None:
        node = self.node
        if node is None:
            return
        match request:
            case Vote():
                ready = node.vote(request)
                if isinstance(ready.answer, VoteAnswer) and ready.answer.is_granted and not request.pre_vote:
                    self.world.has_voted(self, request.epoch, request.candidate)
            case BeginEpoch():
                ready = node.begin_epoch(request)
            case EndEpoch():
                ready = node.end_epoch(request)
            case FetchFrom():
                ready = node.fetch(request)
                if ready.answer is None:
                    self._park(request, reply)
        # The answer leaves after everything that the Ready lists before it.
        self.do(ready._replace(answer=None))
        if ready.answer is not None:
            reply(ready.answer)

    def _park(self, request: FetchFrom, reply: Callable[[Answer | None], None]) -> None:
        parked = (request, reply)
        self.parked.append(parked)
        life = self.life

        def give_up() -> None:
            if self.life == life and parked in self.parked and self.node is not None:
                self.parked.remove(parked)
                reply(_empty(self.node))

        self.world.later(FETCH_WAIT_MS, give_up)

    def _ask_parked(self) -> None:
        parked, self.parked = self.parked, []
        for request, reply in parked:
            if self.node is None:
                return
            ready = self.node.fetch(request, is_first=False)
            if ready.answer is None:
                self.parked.append((request, reply))
            else:
                reply(ready.answer)

    def stand(self) -> None:
        """Stand for election at a bad time: others do so too."""
        if self.node is not None and self.node.quorum.is_voter and not self.node.is_leader:
            self.do(self.node.campaign())

    def append(self) -> None:
        node = self.node
        if node is not None and node.is_leader and self.leader_epoch == node.epoch:
            self.world.written += 1
            self.do(node.append([b"%d" % self.world.written] * self.world.rng.randrange(1, 4)))

    def change_voters(self, changes: Sequence[ReplicaKey]) -> None:
        """Let a leader make voters of observers and observers of voters, as many as its rules let it at once."""
        for key in changes:
            node = self.node
            if node is None or voter_changes.why_unchangeable(node, "changing") is not None:
                return
            kept = node.voters.without(key)
            if kept is not None or key.id not in node.voters.ids():
                self.world.changes += 1
                self.world.events.append(f"{self.world.now_ms}: node {self.key.id} turns {key.id}")
                self.do(node.change_voters(kept or node.voters.with_voter(Voter(*key))))

    def compact(self) -> None:
        """Write a snapshot of what is committed, and let the log begin there."""
        node = self.node
        if node is None:
            return
        ends = [batch for batch in self.log.batches[: self.log.durable] if batch.end_offset <= node.high_watermark]
        if ends:
            last = ends[-1]
            values = tuple(self.log.values(last.end_offset))
            voters = node.log.history.at(last.end_offset - 1).voters
            self.log.compact(Snapshot(SnapshotId(last.end_offset, last.epoch), values, voters))


def _empty(node: RaftNode) -> Answer:
    from barnabas.raft.peer_messages import Fetched

    return Fetched(node.epoch, node.leader_id, node.high_watermark, node.log.reader.start_offset)


class World:
    """Voters 1 to `voters`, and observers after them."""

    def __init__(self, seed: int, voters: int = 3, observers: int = 0) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.weather = Weather()
        self.written = 0
        self.changes = 0
        """How many voter sets have been appended."""
        self.events: list[str] = []
        self.committed_values: list[bytes] = []
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], ReplicaKey] = {}
        """Whom each voter has given its vote in an epoch, over all its lives."""
        self.hosts: dict[int, Host] = {}
        keys = [ReplicaKey(n, bytes([n]) * 16) for n in range(1, voters + observers + 1)]
        self.voters = VoterSet.of(Voter(key.id, key.directory_id) for key in keys[:voters])
        self.hosts = {key.id: Host(self, key) for key in keys}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        for host in self.hosts.values():
            host.start()

    # Time

    def at(self, at_ms: int, work: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (at_ms, self._sequence, work))

    def later(self, delay_ms: int, work: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, work)

    def run(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, work = heapq.heappop(self._queue)
            work()
            self.check()
        self.now_ms = until_ms

    def run_until(self, condition: Callable[[], bool], limit_ms: int) -> None:
        until_ms = self.now_ms + limit_ms
        while not condition():
            assert self._queue, self.told("nothing happens any more")
            assert self._queue[0][0] <= until_ms, self.told(f"not within {limit_ms} ms")
            self.now_ms, _, work = heapq.heappop(self._queue)
            work()
            self.check()

    # Network

    def is_cut(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) in self.weather.cut

    def passes(self, sender: int, receiver: int) -> bool:
        return not self.is_cut(sender, receiver) and self.rng.random() >= self.weather.lost

    def send(self, sender: Host, message: Outgoing) -> None:
        """Carry a request there and its answer back; the sender hears of a loss when its patience ends."""
        receiver, life, node = self.hosts[message.to], sender.life, sender.node
        assert node is not None

        def is_waiting() -> bool:
            return sender.life == life and sender.node is node

        def back(answer: Answer | None) -> None:
            def arrived() -> None:
                if is_waiting() and answer is not None:
                    sender.do(node.answered(message.to, message.request, answer))

            if self.passes(receiver.key.id, sender.key.id):
                self.later(self._delay(), arrived)

        def lost() -> None:
            if is_waiting():
                sender.do(node.failed(message.request))

        if self.passes(sender.key.id, receiver.key.id) and receiver.node is not None:
            for _ in range(2 if self.rng.random() < self.weather.repeated else 1):
                self.later(self._delay(), lambda: receiver.receive(message.request, back))
        else:
            self.later(TIMEOUTS.request // 2, lost)

    def _delay(self) -> int:
        return self.rng.randrange(self.weather.delay_ms + 1)

    # Invariants

    def elected(self, host: Host, before: ElectionState, after: ElectionState) -> None:
        assert after.epoch >= before.epoch, self.told(f"{host!r} went back to epoch {after.epoch}")
        if after.voted is not None:
            self.has_voted(host, after.epoch, after.voted)
        self.events.append(f"{self.now_ms}: node {host.key.id} {after}")

    def has_voted(self, host: Host, epoch: int, candidate: ReplicaKey) -> None:
        first = self.votes.setdefault((epoch, host.key.id), candidate)
        assert first == candidate, self.told(f"{host!r} voted for {first.id} and {candidate.id} in epoch {epoch}")

    def committed(self, host: Host) -> None:
        node = host.node
        assert node is not None
        values = host.log.values(node.high_watermark)
        common = min(len(values), len(self.committed_values))
        assert values[:common] == self.committed_values[:common], self.told(f"{host!r} committed something else")
        if isinstance(node.quorum.state, Leader):
            # What it only counts of an older epoch, another leader may still overwrite (Raft, figure 8).
            epoch = host.log.epoch_at(node.high_watermark)
            assert epoch == node.epoch, self.told(f"{host!r} commits up to a record of epoch {epoch}")
            held = [each for each in self.hosts.values() if each.log.durable_end >= node.high_watermark]
            voters = [each for each in held if node.voters.contains(*each.key)]
            assert len(voters) >= majority(len(node.voters.voters)), self.told(f"{host!r} counts on too few")
            if len(values) > len(self.committed_values):
                self.committed_values = values

    def check(self) -> None:
        for host in self.hosts.values():
            node = host.node
            if node is None:
                continue
            assert node.high_watermark <= host.log.end_offset, self.told(f"{host!r} commits what it does not have")
            if node.is_leader:
                leader = self.leaders.setdefault(node.epoch, host.key.id)
                assert leader == host.key.id, self.told(f"{leader} and {host.key.id} both lead epoch {node.epoch}")
            first = host.log.earliest_snapshot()
            assert first is None or first.end_offset == host.log.start_offset, self.told(
                "a log begins in front of its snapshot"
            )

    def told(self, what: str) -> str:
        return "\n".join([*self.events[-60:], f"{self.now_ms}: {what}"])

    # Faults

    def cut_off(self, *nodes: int) -> None:
        """Part these nodes from the others."""
        for inside in nodes:
            for outside in set(self.hosts) - set(nodes):
                self.weather.cut |= {(inside, outside), (outside, inside)}

    def heal(self) -> None:
        self.weather.cut.clear()

    def leader(self) -> Host | None:
        """The leader of the highest epoch that has committed in it, if it runs."""
        leading = [
            host for host in self.hosts.values() if host.node is not None and host.leader_epoch == host.node.epoch
        ]
        return max(leading, key=lambda host: host.leader_epoch, default=None)
