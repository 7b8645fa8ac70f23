"""The leader's changes of the voters (KIP-853): one is added, removed or updated at a time.

    add      asks the new voter for its versions of kraft.version ──► appends the voters ──► waits for their commit
    remove   appends the voters ──► waits for their commit; a leader that has removed itself resigns then (`RaftNode`)
    update   appends the voters, and does not wait; in a static quorum the leader only remembers what the voter told

- A change begins only if the leader has committed a record of its own epoch, and the last voter set is committed. So any majority of the
  old voters shares a voter with any majority of the new ones (Raft dissertation, section 4.1, and its correction).
- A new voter must have everything that the leader has; otherwise the next commits would wait until it does.
- A change that is appended but not committed in time is answered REQUEST_TIMED_OUT, and may still be committed. A leader that gives up its
  epoch before that answers NOT_LEADER_OR_FOLLOWER.
- The messages are Kafka's, because its tools print them.

Sources: KIP-853, KIP-1186 (an answer before the commit); Kafka's `AddVoterHandler`, `RemoveVoterHandler`, `UpdateVoterHandler`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ZERO_UUID, uuid_to_str
from barnabas.raft.leader import Leader
from barnabas.raft.raft_driver import RaftDriver
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_checks import error_of_leadership
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.steps import Loop, in_background

__all__ = ["VersionRange", "VoterChangeResult", "VoterChanges", "why_unchangeable"]

logger = logging.getLogger(__name__)

NOT_COMMITTED = -1


class VersionRange(NamedTuple):
    """The levels of kraft.version that a node supports."""

    lowest: int
    highest: int


class VoterChangeResult(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class _Pending(NamedTuple):
    """A change that is not answered, and the epoch in which it began."""

    epoch: int
    result: asyncio.Future[VoterChangeResult]


class VoterChanges:
    """Changes the voters while this node leads; `RaftDriver`'s listener.

    Args:
        listener_name: the listener by which the nodes of the quorum reach each other.
        versions_of: asks a node for its versions of kraft.version, and returns None if it names none; it raises a KafkaError if there is no
            answer.
        timeout_ms: in which a change must be committed.
    """

    def __init__(
        self,
        driver: RaftDriver,
        loop: Loop,
        *,
        listener_name: str,
        versions_of: Callable[[int, VoterEndpoint], Awaitable[VersionRange | None]],
        timeout_ms: int,
    ) -> None:
        self._driver = driver
        self._node = driver.node
        self._loop = loop
        self._listener_name = listener_name
        self._versions_of = versions_of
        self._timeout_ms = timeout_ms
        self._pending: _Pending | None = None
        self._last_offset = NOT_COMMITTED
        driver.add_listener(self)

    def __repr__(self) -> str:
        return f"<VoterChanges pending={self._pending is not None} offset={self._last_offset}>"

    # The driver's listener

    def on_high_watermark(self, offset: int) -> None:
        pending = self._pending
        if pending is not None and pending.epoch == self._node.epoch and -1 < self._last_offset < offset:
            _settle(pending, VoterChangeResult())

    def on_leader(self, epoch: int) -> None:
        """A change waits for a request."""

    def on_resigned(self, epoch: int) -> None:
        if self._pending is not None:
            _settle(self._pending, VoterChangeResult(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # Changes

    async def add(self, voter: Voter, *, when_committed: bool = True) -> VoterChangeResult:
        """Make an observer a voter.

        Args:
            voter: its versions of kraft.version are not known yet.
            when_committed: return when the change is committed, and not when it is appended (KIP-1186).
        """
        endpoint = self._endpoint(voter)
        if voter.id < 0 or voter.directory_id == ZERO_UUID:
            return VoterChangeResult(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
        if endpoint is None:
            listed = ", ".join(f"{each.name}={each.host}:{each.port}" for each in voter.endpoints)
            return VoterChangeResult(
                ErrorCode.INVALID_REQUEST,
                f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{listed}}})) for the default listener "
                f"ListenerName({self._listener_name})",
            )
        rejected = self._reject("adding")
        if rejected is None and voter.id in self._node.voters.ids():
            rejected = VoterChangeResult(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {_key(voter.key)} is already part of the set of voters {_keys(self._node.voters)}.",
            )
        if rejected is not None:
            return rejected
        pending = self._begin()
        asking = in_background(self._ask_and_append(voter, endpoint, pending, when_committed), self._loop)
        try:
            return await self._answer_of(pending)
        finally:
            asking.cancel()

    async def _ask_and_append(
        self, voter: Voter, endpoint: VoterEndpoint, pending: _Pending, when_committed: bool
    ) -> None:
        try:
            versions = await self._versions_of(voter.id, endpoint)
        except KafkaError as error:
            words = f"Aborted add voter operation for since API_VERSIONS returned an error {error.code.name}"
            _settle(pending, VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, words))
            return
        if not pending.result.done():
            self._append_new(voter, versions, pending, when_committed)

    def _append_new(self, voter: Voter, versions: VersionRange | None, pending: _Pending, when_committed: bool) -> None:
        node, state = self._node, self._node.quorum.state
        assert isinstance(state, Leader), "a leader that gives up settles its change"
        lowest, highest = versions or VersionRange(0, 0)
        asked = voter._replace(kraft_min_version=lowest, kraft_max_version=highest)
        if not asked.supports(node.kraft_version):
            shown = f"(min: {lowest}, max: {highest}" + ("" if versions else ")")
            words = (
                f"Aborted add voter operation for {_key(voter.key)} since the kraft.version range {shown} doesn't "
                f"support the finalized version {node.kraft_version}"
            )
            _settle(pending, VoterChangeResult(ErrorCode.INVALID_REQUEST, words))
        elif not state.is_caught_up(voter.key, node.clock.monotonic_ms()):
            words = f"Aborted add voter operation for {_key(voter.key)} since it is lagging behind"
            _settle(pending, VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, words))
        else:
            self._append(node.voters.with_voter(asked))
            if not when_committed:
                _settle(pending, VoterChangeResult())

    async def remove(self, key: ReplicaKey) -> VoterChangeResult:
        """Make a voter an observer; the last voter stays one."""
        if key.id < 0 or key.directory_id == ZERO_UUID:
            return VoterChangeResult(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        rejected, voters = self._reject("removing"), self._node.voters
        if rejected is not None:
            return rejected
        kept = voters.without(key)
        if kept is None:
            words = f"Cannot remove voter {_key(key)} from the set of voters {_keys(voters)}"
            return VoterChangeResult(ErrorCode.VOTER_NOT_FOUND, words)
        pending = self._begin()
        self._append(kept)
        return await self._answer_of(pending)

    def update(self, epoch: int, voter: Voter) -> ErrorCode:
        """Take over the endpoints of a voter, and its versions of kraft.version; in a static quorum only for this epoch.

        Args:
            epoch: the one in which, according to the voter, this node leads.
        """
        error = error_of_leadership(self._node.quorum, epoch)
        if error is not ErrorCode.NONE:
            return error
        lowest, highest = voter.kraft_min_version, voter.kraft_max_version
        is_whole = voter.id >= 0 and voter.directory_id != ZERO_UUID and self._endpoint(voter) is not None
        if not is_whole or not 0 <= lowest <= highest:
            return ErrorCode.INVALID_REQUEST
        node, state = self._node, self._node.quorum.state
        rejected = self._reject("updating", kraft_version_needed=0)
        if rejected is not None:
            return rejected.error
        if not voter.supports(node.kraft_version):
            return ErrorCode.INVALID_REQUEST
        if not node.voters.contains(*voter.key):
            return ErrorCode.VOTER_NOT_FOUND
        if node.kraft_version > 0:
            self._driver.change_voters(node.voters.with_voter(voter))
        else:
            assert isinstance(state, Leader), "nobody else changes the voters"
            state.name(voter)
        return ErrorCode.NONE

    def _endpoint(self, voter: Voter) -> VoterEndpoint | None:
        return next((each for each in voter.endpoints if each.name == self._listener_name), None)

    def _reject(self, doing: str, *, kraft_version_needed: int = 1) -> VoterChangeResult | None:
        """Return why no change can begin now; None if one can."""
        if self._driver.closed:
            return VoterChangeResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self._pending is not None:
            words = "Request timed out waiting for leader to handle previous voter change request"
            return VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, words)
        return why_unchangeable(self._node, doing, kraft_version_needed=kraft_version_needed)

    def _begin(self) -> _Pending:
        self._pending = _Pending(self._node.epoch, self._loop.create_future())
        self._last_offset = NOT_COMMITTED
        return self._pending

    def _append(self, voters: VoterSet) -> None:
        logger.info("The voters become %s", ", ".join(map(str, voters.ids())))
        # Before the append: a sole voter commits before the driver returns.
        self._last_offset = self._node.end_offset
        self._driver.change_voters(voters)

    async def _answer_of(self, pending: _Pending) -> VoterChangeResult:
        late = VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT)
        timer = self._loop.call_later(self._timeout_ms / 1000, _settle, pending, late)
        try:
            return await pending.result
        finally:
            timer.cancel()
            self._pending = None


def _settle(pending: _Pending, result: VoterChangeResult) -> None:
    if not pending.result.done():
        pending.result.set_result(result)


def _key(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.id}, directoryId={uuid_to_str(key.directory_id)})"


def _keys(voters: VoterSet) -> str:
    return f"[{', '.join(_key(each.key) for each in voters.voters)}]"


def why_unchangeable(node: RaftNode, doing: str, *, kraft_version_needed: int = 1) -> VoterChangeResult | None:
    """Return why the state of a node lets no change of the voters begin; None if it does."""
    state, last = node.quorum.state, node.history.last
    if not isinstance(state, Leader):
        return VoterChangeResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if node.high_watermark <= state.epoch_start_offset:
        words = "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        return VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, words)
    if node.kraft_version < kraft_version_needed:
        words = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
        return VoterChangeResult(ErrorCode.UNSUPPORTED_VERSION, words)
    if last.offset >= node.high_watermark:
        words = (
            f"Request timed out waiting for voters to commit the latest voter change at Optional[{last.offset}] "
            f"with HWM {node.high_watermark}"
        )
        return VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, words)
    return None
