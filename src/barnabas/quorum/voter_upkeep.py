"""A controller's requests to the quorum's leader about its own place among the voters (KIP-853).

    a voter whose entry is out of date (endpoints, versions of kraft.version)   UpdateRaftVoter
    a voter of a static quorum, once to the leader of each epoch                UpdateRaftVoter
    no voter, but an earlier directory of this node is one                      RemoveRaftVoter   } only with
    no voter                                                                    AddRaftVoter      } controller.quorum.auto.join.enable

- It looks every `controller.quorum.fetch.timeout.ms`, so that a follower has fetched a few times before it asks. What fails is asked again.
- A leader corrects its own entry when its epoch begins (`RaftNode`).
- Nothing of it is kept: a kill loses nothing.

Source: Kafka's `KafkaRaftClient.pollFollowerAsVoter` and `pollFollowerAsObserver`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError, known_code
from barnabas.protocol.message import Message
from barnabas.protocol.messages import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest
from barnabas.raft.follower import Follower
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.voters import Voter
from barnabas.steps import Loop, in_background

__all__ = ["VoterUpkeep"]

logger = logging.getLogger(__name__)


class VoterUpkeep:
    """Keeps this node's entry among the voters as it should be.

    Args:
        own: this node as a voter.
        tell_leader: carries a request to the leader with this id, and returns the response; raises a KafkaError without one.
        period_ms: how often it looks.
        joins: a controller that is no voter makes itself one.
    """

    def __init__(
        self,
        node: RaftNode,
        own: Voter,
        cluster_id: str,
        tell_leader: Callable[[int, Message], Awaitable[Any]],
        loop: Loop,
        *,
        period_ms: int,
        joins: bool,
    ) -> None:
        self._node = node
        self._own = own
        self._cluster_id = cluster_id
        self._tell_leader = tell_leader
        self._loop = loop
        self._period_ms = period_ms
        self._joins = joins
        self._named_in_epoch = -1
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<VoterUpkeep {self._own.id} joins={self._joins}>"

    def start(self) -> None:
        """Look again and again, until `close`."""
        self._timer = self._loop.call_later(self._period_ms / 1000, self._look)

    def close(self) -> None:
        """Ask nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def _look(self) -> None:
        self.start()
        request = self.due()
        if request is not None and (self._asking is None or self._asking.done()):
            self._asking = in_background(self._ask(request), self._loop)

    def due(self) -> AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest | None:
        """Return what is to be asked of the leader now; None if nothing is."""
        node, own = self._node, self._own
        if not isinstance(node.quorum.state, Follower):
            return None
        if node.kraft_version == 0:
            return self._update() if node.quorum.is_voter and self._named_in_epoch < node.epoch else None
        entry = node.voters.voter(own.id)
        if node.quorum.is_voter:
            return None if entry == own else self._update()
        if not self._joins:
            return None
        if entry is not None:
            return RemoveRaftVoterRequest(
                cluster_id=self._cluster_id, voter_id=entry.id, voter_directory_id=entry.directory_id
            )
        return AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout_ms=node.quorum.timeouts.request,
            voter_id=own.id,
            voter_directory_id=own.directory_id,
            listeners=[AddRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port) for e in own.endpoints],
            ack_when_committed=False,
        )

    def _update(self) -> UpdateRaftVoterRequest:
        own = self._own
        return UpdateRaftVoterRequest(
            cluster_id=self._cluster_id,
            current_leader_epoch=self._node.epoch,
            voter_id=own.id,
            voter_directory_id=own.directory_id,
            listeners=[UpdateRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port) for e in own.endpoints],
            k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
                min_supported_version=own.kraft_min_version, max_supported_version=own.kraft_max_version
            ),
        )

    async def _ask(self, request: Message) -> None:
        what, epoch = type(request).__name__.removesuffix("Request"), self._node.epoch
        try:
            response = await self._tell_leader(self._node.leader_id, request)
        except KafkaError as error:
            logger.debug("The leader gave no answer to %s: %s", what, error)
            return
        code = known_code(response.error_code)
        if code is ErrorCode.NONE:
            if isinstance(request, UpdateRaftVoterRequest):
                self._named_in_epoch = epoch
            logger.info("The leader has accepted %s of this node", what)
        else:
            logger.info("The leader answers %s with %s", what, code.name)
