"""The driver of a `RaftNode`: it carries out each `Ready` over the seams.

The order is the node's promise to its peers: the log cut and the election state durable, then batches appended, then the high
watermark moved, then messages sent and the log flushed. No message names a record before its flush has ended. A flush
may finish later (the server does it outside the loop's thread); records appended meanwhile ride on the next flush, so a slow device
costs one flush per round and not one per change.

A quorum of several voters needs `Peers` and a loop: for the requests under way, for one timer (`RaftNode.wake_at_ms`), and for the
fetches that wait for news. A sole voter that leads needs neither: everything happens within the calls of its host.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.protocol.errors import ErrorCode, KafkaError, RetriableError
from barnabas.raft.election_state import NO_NODE
from barnabas.raft.epochs import LAST_EPOCH
from barnabas.raft.fetch_purgatory import FetchPurgatory
from barnabas.raft.leader import Leader
from barnabas.raft.peer_messages import (
    Answer,
    BeginEpoch,
    EndEpoch,
    Fetched,
    FetchFrom,
    FetchSnapshot,
    Outgoing,
    Request,
    SnapshotPiece,
    Vote,
)
from barnabas.raft.peers import Peers
from barnabas.raft.raft_node import QuorumNotSupported, RaftNode
from barnabas.raft.ready import Ready
from barnabas.raft.seams import ElectionStateStore, QuorumListener, ReplicatedLog
from barnabas.raft.snapshot_fetch import SnapshotFetch
from barnabas.raft.voters import VoterEndpoint, VoterSet
from barnabas.records.record_batch import read_header
from barnabas.repeated_lines import RepeatedLines
from barnabas.steps import Loop, in_background

logger = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""How many bytes of a snapshot one answer has at most."""


ELECTION_LINES_MAX = 20
"""Lines about elections that are logged in a minute, before they are counted: a peer can cause as many as it likes."""

_REFUSALS = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
)


class AppendFailed(Exception):
    """The log rejected a batch and holds nothing of it; a later append may succeed."""


class NobodyListens(KafkaError):
    """A peer's machine refuses the connection: it is up, but the peer's process has ended, or has not begun."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, message)


class RaftDriver:
    """One node's quorum at work.

    Args:
        node: the state machine, not started.
        peers: None if this node must be the only voter.
        loop: for timers and answers; None if this node is the only voter and no request of another node ever comes.
        on_fault: receives the error when the disk failed and this node can no longer take part.
    """

    def __init__(
        self,
        node: RaftNode,
        log: ReplicatedLog,
        election_store: ElectionStateStore,
        peers: Peers | None = None,
        loop: Loop | None = None,
        on_fault: Callable[[BaseException], None] | None = None,
    ) -> None:
        assert peers is None or loop is not None, "requests to peers need a loop"
        self.node = node
        self.log = log
        self._election_store = election_store
        self.peers = peers
        self._loop = loop
        self._on_fault = on_fault
        self._listeners: list[QuorumListener] = []
        self._flushing = False
        self._flush_wanted = False
        self._under_way: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at_ms: int | None = None
        self._purgatory = FetchPurgatory(loop) if loop is not None else None
        self._news: object = None
        self._lines = RepeatedLines(loop) if loop is not None else None
        self._snapshot_fetch = (
            SnapshotFetch(node, log, peers, loop, self._carry_out, self._fail, self._log)
            if peers is not None and loop is not None
            else None
        )
        self.closed = False

    def add_listener(self, listener: QuorumListener) -> None:
        """Register a listener, before `start`; they are called in the order in which they were added."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Join the quorum.

        Raises:
            QuorumNotSupported: without peers, this node is not a voter, or not the only one, or has no epoch left to lead in; or the only
                voter is this node with another directory.
        """
        node = self.node
        if self.peers is None and node.voters.ids() != (node.key.id,):
            raise QuorumNotSupported(
                f"node {node.key.id} can only be the sole voter of its quorum; the voters are "
                + ", ".join(map(str, node.voters.ids()))
            )
        self._carry_out(node.start())
        if node.epoch >= LAST_EPOCH:
            line = f"this node is in epoch {node.epoch} of the quorum, after which there is no other (restore its directory from a backup)"
            if self.peers is None:
                raise QuorumNotSupported(line)
            logger.error("No leader will be elected: %s", line)

    def append(self, values: Sequence[bytes]) -> int:
        """Append records atomically.

        Returns:
            The offset of the last record. It is committed when the listener receives a higher high watermark, which
            may happen before this returns.

        Raises:
            BatchTooLarge, AppendFailed: nothing was appended.
        """
        before = self.node.end_offset
        ready = self.node.append(values)
        last_offset = self.node.end_offset - 1
        try:
            for batch in ready.batches:
                self.log.append(batch, self.node.epoch)
        except (KafkaError, OSError) as error:
            self.node.append_failed(before)
            self._carry_out(ready._replace(batches=(), flush=False))
            raise AppendFailed(str(error)) from error
        self._carry_out(ready._replace(batches=()))
        return last_offset

    def change_voters(self, voters: VoterSet) -> None:
        """Append a voter set, which is in force immediately; only `voter_changes` calls this."""
        self._carry_out(self.node.change_voters(voters))

    def upgrade_kraft_version(self) -> None:
        """Append kraft.version 1 and the voters with their directories, in force immediately; only the active controller calls this."""
        state = self.node.quorum.state
        assert isinstance(state, Leader), "only the leader upgrades"
        self.change_voters(state.named)

    def resign(self) -> None:
        """Give up leadership."""
        self._carry_out(self.node.resign())

    def campaign(self) -> None:
        """Stand for election again after a resignation."""
        self._carry_out(self.node.campaign())

    def close(self) -> None:
        """Leave the quorum: send nothing more, and reject the requests that wait."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for request in tuple(self._under_way):
            request.cancel()
        if self._snapshot_fetch is not None:
            self._snapshot_fetch.cancel()
        if self.peers is not None:
            self.peers.close()
        if self._purgatory is not None:
            self._purgatory.wake()
        if self._lines is not None:
            self._lines.close()

    def endpoint_of(self, node_id: int, listener_name: str) -> VoterEndpoint | None:
        """Return where a node serves the quorum, on a listener of this name if it has one; None if that is not known."""
        said = self.peers.endpoint_of(node_id) if self.peers is not None else None
        return said or self.node.voters.endpoint_of(node_id, listener_name)

    # Requests of peers

    async def answer(self, request: Request) -> Answer:
        """Return the answer to a peer's request; one for records that are not there yet waits for them.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE: this node takes part no more.
        """
        answer = self._answer_now(request)
        if answer is not None:
            return answer
        assert isinstance(request, FetchFrom), f"no answer to {request}"
        return await self._answer_later(request)

    def _answer_now(self, request: Request, *, is_first: bool = True) -> Answer | None:
        if self.closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
        match request:
            case Vote():
                ready = self.node.vote(request)
            case BeginEpoch():
                ready = self.node.begin_epoch(request)
                self._learn_endpoints(request)
            case EndEpoch():
                ready = self.node.end_epoch(request)
            case FetchFrom():
                ready = self.node.fetch(request, is_first=is_first)
        try:
            self._carry_out(ready)
        except Exception as error:
            # The peer gets the error, and this node stops: half of the request is done.
            self._fail(error)
            raise
        return ready.answer

    def _learn_endpoints(self, request: BeginEpoch) -> None:
        """Take over where a leader says that it serves the quorum, if this node has accepted that it leads."""
        node = self.node
        is_accepted = (node.epoch, node.leader_id) == (request.epoch, request.leader_id) != (node.epoch, node.key.id)
        if self.peers is not None and request.endpoints and is_accepted:
            self.peers.learn(request.leader_id, request.endpoints)

    async def _answer_later(self, request: FetchFrom) -> Answer:
        assert self._purgatory is not None, "a fetch that waits needs a loop"
        now_ms = self.node.clock.monotonic_ms
        until_ms = now_ms() + request.max_wait_ms
        self._news = self._what_may_be_new()
        while await self._purgatory.wait(until_ms - now_ms()):
            answer = self._answer_now(request, is_first=False)
            if answer is not None:
                return answer
        # Each change of the log, the high watermark or the role has woken it, so this is still true.
        return Fetched(self.node.epoch, self.node.leader_id, self.node.high_watermark, self.log.start_offset)

    def answer_snapshot(self, request: FetchSnapshot) -> SnapshotPiece:
        """Return a piece of a snapshot of this node.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE: this node takes part no more.
        """
        if self.closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
        error, size = self.node.check_snapshot_request(request), None
        if error is ErrorCode.NONE:
            size = self.log.snapshot_size(request.snapshot)
            error = _error_of_piece(request, size)
        piece = SnapshotPiece(self.node.epoch, self.node.leader_id, request.snapshot, error=error)
        if size is None or error is not ErrorCode.NONE:
            return piece
        max_bytes = min(request.max_bytes, MAX_ANSWER_BYTES)
        data = self.log.read_snapshot_piece(request.snapshot, request.position, max_bytes)
        return piece._replace(size=size, position=request.position, data=data)

    # Requests to peers

    def _send(self, message: Outgoing) -> None:
        assert self.peers is not None, f"nothing carries {message}"
        assert self._loop is not None
        started = in_background(self._ask(self.peers, message), self._loop)
        if not started.done():
            self._under_way.add(started)
            started.add_done_callback(self._under_way.discard)

    async def _ask(self, peers: Peers, message: Outgoing) -> None:
        try:
            answer = await peers.send(message.to, message.request)
        except KafkaError as error:
            logger.debug("node %d gave no answer to %s: %s", message.to, type(message.request).__name__, error)
            if not self.closed:
                is_refused = isinstance(error, NobodyListens)
                if not is_refused:
                    self._say_why(message.to, peers.endpoint_of(message.to), error)
                self._step(lambda: self.node.failed(message.request, is_refused=is_refused))
            return
        if not self.closed:
            self._step(lambda: self.node.answered(message.to, message.request, answer))

    def _say_why(self, to: int, endpoint: VoterEndpoint | None, error: KafkaError) -> None:
        """Log that security keeps this node from another one: no retry helps, and its operator sees no leader and no reason."""
        # Other security settings have this code too, and are no RetriableError.
        does_not_fit = error.code == ErrorCode.BROKER_NOT_AVAILABLE and not isinstance(error, RetriableError)
        if error.code not in _REFUSALS and not does_not_fit:
            return
        node = f"node {to} of the quorum" if to >= 0 else "a bootstrap server of the quorum"
        where = f" at its listener {endpoint.name} ({endpoint.host}:{endpoint.port})" if endpoint else ""
        remedy = ""
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            remedy = " (is this node in its super.users?)"
        elif endpoint and "security.protocol" in error.message:
            # The words are those for a client: a node has that setting in the map.
            remedy = f"; a node has the protocol of {endpoint.name} in listener.security.protocol.map"
        elif endpoint:
            remedy = f"; a setting of this listener alone begins with listener.name.{endpoint.name.lower()}."
        line = f"This node cannot talk to {node}{where}: {error.message}{remedy}"
        self._log(logging.WARNING, f"refusals of node {to}", line, at_most=1)

    # Time

    def _set_timer(self, loop: Loop) -> None:
        wake_at_ms = self.node.wake_at_ms
        if wake_at_ms == self._wake_at_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wake_at_ms, self._timer = wake_at_ms, None
        if wake_at_ms is not None:
            delay_ms = max(wake_at_ms - self.node.clock.monotonic_ms(), 1)
            self._timer = loop.call_later(delay_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._wake_at_ms = self._timer = None
        if not self.closed:
            self._step(self.node.tick)

    # Effects of the node

    def _step(self, step: Callable[[], Ready]) -> None:
        """Carry out the effects of a step of the node. Any failure ends this node's part in the quorum: nothing else would report it."""
        try:
            self._carry_out(step())
        except Exception as error:
            self._fail(error)
            if self._on_fault is None:
                raise

    def _carry_out(self, ready: Ready) -> None:
        self._write(ready)
        if ready.election is not None and self.peers is not None:
            self._say_leader()
        if ready.high_watermark is not None:
            self.log.set_high_watermark(ready.high_watermark)
            for listener in self._listeners:
                listener.on_high_watermark(ready.high_watermark)
        if ready.leader_epoch is not None:
            for listener in self._listeners:
                listener.on_leader(ready.leader_epoch)
        if ready.left_epoch is not None:
            for listener in self._listeners:
                listener.on_resigned(ready.left_epoch)
        if ready.snapshot is not None:
            assert self._snapshot_fetch is not None, "a snapshot comes from a peer"
            self._snapshot_fetch.begin(ready.snapshot)
        for message in ready.messages:
            self._send(message)
        if ready.flush:
            self._flush()
        if self._loop is not None and not self.closed:
            self._set_timer(self._loop)
        if self._purgatory:
            self._tell_news(self._purgatory)

    def _say_leader(self) -> None:
        leader_id = self.node.leader_id
        if leader_id == self.node.key.id:
            line = f"This node leads the quorum in epoch {self.node.epoch}"
        elif leader_id != NO_NODE:
            line = f"Node {leader_id} leads the quorum in epoch {self.node.epoch}"
        else:
            line = f"The quorum has no leader in epoch {self.node.epoch} yet"
        self._log(logging.INFO, "elections of the quorum", line)

    def _log(self, level: int, about: str, line: str, *, at_most: int = ELECTION_LINES_MAX) -> None:
        """Log a line that a peer can cause."""
        if self._lines is None:
            logger.log(level, "%s", line)
        else:
            self._lines.log(logger, level, about, line, at_most=at_most)

    def _write(self, ready: Ready) -> None:
        try:
            if ready.truncate_to is not None:
                self.log.truncate_to(ready.truncate_to)
            if ready.election is not None:
                self._election_store.write(ready.election)
            for batch in ready.batches:
                # A follower's batches keep the epochs of the leaders that wrote them.
                self.log.append(batch, read_header(batch).partition_leader_epoch)
        except (KafkaError, OSError) as error:
            # The node counts on records that were not written, so it must send nothing more.
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        if self.closed:
            return
        self.close()
        if self._on_fault is not None:
            self._on_fault(error)

    def _tell_news(self, purgatory: FetchPurgatory) -> None:
        news = self._what_may_be_new()
        if news != self._news:
            self._news = news
            purgatory.wake()

    def _what_may_be_new(self) -> object:
        return self.node.end_offset, self.node.high_watermark, self.node.epoch, self.node.role

    def _flush(self) -> None:
        if self._flushing:
            self._flush_wanted = True
            return
        self._flushing = True
        token = self.node.flush_token()

        def done() -> None:
            self._flushing = False
            if self.closed:
                return
            self._carry_out(self.node.flushed(token))
            if self._flush_wanted:
                self._flush_wanted = False
                self._flush()

        self.log.flush(done)


def _error_of_piece(request: FetchSnapshot, size: int | None) -> ErrorCode:
    if size is None:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if request.max_bytes <= 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if 0 <= request.position < size else ErrorCode.POSITION_OUT_OF_RANGE
