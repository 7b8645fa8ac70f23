"""The other nodes of the quorum, reached through channels.

    node id ──► endpoint: where the node said that it serves the quorum, else where the voter set has it ──► a channel for each use
    below -1 ──► one of the bootstrap servers, for a node that knows no voter's address

- A node has a channel for fetches, which may wait at the leader, and another one for votes and news of epochs, which must not.
- An answer names the leader's address, and so does the BeginQuorumEpoch of a new leader. It counts if this node accepts what the message
  says, and as long as it answers; then the voter set's address is tried again.
- Every failure is a KafkaError, of the connection or of what came over it. Waiting between attempts is up to `RaftNode`.

Source: Kafka's `KafkaNetworkChannel`, `KafkaRaftClient`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from barnabas.client.channel import Channel, ChannelTraffic
from barnabas.client.errors import BrokerNotAvailable, ConnectionRefused
from barnabas.client.exchange import NEWEST_API_VERSIONS
from barnabas.config.config import BrokerConfig
from barnabas.metadata.features_image import KRAFT_VERSION
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listeners import controllers_security
from barnabas.protocol.errors import ErrorCode, KafkaError, known_code
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    VoteRequest,
)
from barnabas.quorum.metadata_log import controller_endpoints, controller_listener_name
from barnabas.raft.answer_messages import node_addresses, read_answer
from barnabas.raft.peer_messages import (
    Answer,
    BeginEpoch,
    EndEpoch,
    FetchFrom,
    FetchSnapshot,
    Request,
    SnapshotPiece,
    Vote,
    bootstrap_ids,
)
from barnabas.raft.raft_driver import NobodyListens
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.request_messages import PeerRequest, Sender, request_message
from barnabas.raft.snapshot_messages import read_piece, snapshot_request
from barnabas.raft.voter_changes import VersionRange
from barnabas.raft.voters import VoterEndpoint, VoterSet, preferred_endpoint
from barnabas.version import VERSION

if TYPE_CHECKING:
    from barnabas.security.client_security import ClientSecurity

__all__ = ["ChannelPeers", "peers_of"]

_MESSAGES: dict[type[Request], type[PeerRequest]] = {
    Vote: VoteRequest,
    BeginEpoch: BeginQuorumEpochRequest,
    EndEpoch: EndQuorumEpochRequest,
    FetchFrom: FetchRequest,
}


class _Use(Enum):
    ELECTION = "election"
    FETCH = "fetch"


class ChannelPeers:
    """`raft_driver.Peers` over connections.

    Args:
        sender: what this node says of itself.
        listener_name: the listener by which the nodes of the quorum reach each other.
        voters: returns the voter set in force.
        accepts: returns whether the node believes an answer of this epoch.
        bootstrap_servers: host and port of servers that know the quorum.
        timeout_ms: for connecting, and for an answer.
        security: TLS and the login of this node; None in plain text.

    Attributes:
        traffic: of all channels to other nodes of the quorum.
    """

    def __init__(
        self,
        sender: Sender,
        *,
        loop: asyncio.AbstractEventLoop,
        listener_name: str,
        voters: Callable[[], VoterSet],
        accepts: Callable[[int], bool],
        bootstrap_servers: Sequence[tuple[str, int]],
        timeout_ms: int,
        client_id: str,
        security: ClientSecurity | None = None,
    ) -> None:
        self._sender = sender
        self._security = security
        self._loop = loop
        self._listener_name = listener_name
        self._voters = voters
        self._accepts = accepts
        self._timeout_ms = timeout_ms
        self._client_id = client_id
        self.traffic = ChannelTraffic()
        ids = bootstrap_ids(len(bootstrap_servers))
        self._bootstrap = {
            each: VoterEndpoint(listener_name, *server) for each, server in zip(ids, bootstrap_servers, strict=True)
        }
        self._said: dict[int, VoterEndpoint] = {}
        self._channels: dict[tuple[int, _Use], Channel] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<ChannelPeers channels={len(self._channels)} learned={sorted(self._said)}>"

    def endpoint_of(self, node_id: int) -> VoterEndpoint | None:
        """Return where a node serves the quorum; None if this node does not know it."""
        said = self._said.get(node_id) or self._bootstrap.get(node_id)
        if said is not None:
            return said
        return self._voters().endpoint_of(node_id, self._listener_name)

    def learn(self, node_id: int, endpoints: Sequence[VoterEndpoint]) -> None:
        """Take over where a node says that it serves the quorum."""
        found = preferred_endpoint(endpoints, self._listener_name)
        if found is not None:
            self._said[node_id] = found

    async def send(self, to: int, request: Request) -> Answer:
        """Carry a request to a node and return its answer.

        Raises:
            KafkaError: there is no answer, or none that can be taken.
        """
        channel = self._channel(to, _Use.FETCH if isinstance(request, FetchFrom) else _Use.ELECTION)
        try:
            version = await channel.version_for(_MESSAGES[type(request)])
            message = request_message(request, version, self._sender)
            response = await channel.request(message, version=version)
        except BrokerNotAvailable as error:
            self._said.pop(to, None)
            if isinstance(error, ConnectionRefused):
                raise NobodyListens(str(error)) from error
            raise
        answer = read_answer(response, version)
        for node_id, host, port in node_addresses(response):
            if node_id == answer.leader_id and self._accepts(answer.epoch):
                self.learn(node_id, [VoterEndpoint(self._listener_name, host, port)])
        return answer

    async def tell_leader(self, leader_id: int, message: Message) -> Any:
        """Carry a request about the voters to the leader and return its response; raises as `send` does."""
        return await self._channel(leader_id, _Use.ELECTION).request(message)

    async def versions_of(self, node_id: int, endpoint: VoterEndpoint) -> VersionRange | None:
        """Ask a node that may become a voter for its levels of kraft.version; None if it knows none.

        Raises:
            KafkaError: there is no answer.
        """
        channel = self._dialled(endpoint)
        try:
            asked = ApiVersionsRequest(client_software_name="barnabas", client_software_version=VERSION)
            response = await channel.request(asked, highest=NEWEST_API_VERSIONS)
        finally:
            channel.close()
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(known_code(response.error_code))
        for each in response.supported_features:
            if each.name == KRAFT_VERSION:
                return VersionRange(each.min_version, each.max_version)
        return None

    async def fetch_snapshot(self, to: int, request: FetchSnapshot) -> SnapshotPiece:
        """Carry a request for a piece of a snapshot; raises as `send` does."""
        channel = self._channel(to, _Use.FETCH)
        version = await channel.version_for(FetchSnapshotRequest)
        return read_piece(await channel.request(snapshot_request(request, self._sender), version=version))

    def _channel(self, to: int, use: _Use) -> Channel:
        endpoint = self.endpoint_of(to)
        if endpoint is None or self._is_closed:
            raise BrokerNotAvailable(
                f"the address of node {to} is not known" if endpoint is None else "this node stops"
            )
        channel = self._channels.get((to, use))
        if channel is None or (channel.host, channel.port) != (endpoint.host, endpoint.port):
            if channel is not None:
                channel.close()
            channel = self._channels[to, use] = self._dialled(endpoint)
        return channel

    def _dialled(self, endpoint: VoterEndpoint) -> Channel:
        """Return a new channel; it connects at the first request."""
        return Channel(
            self._loop,
            endpoint.host,
            endpoint.port,
            client_id=self._client_id,
            timeout_ms=self._timeout_ms,
            security=self._security,
            traffic=self.traffic,
        )

    def close(self) -> None:
        """End what is under way, and send nothing more."""
        self._is_closed = True
        for channel in self._channels.values():
            channel.close()


def peers_of(
    config: BrokerConfig,
    cluster_id: str,
    node: RaftNode,
    loop: asyncio.AbstractEventLoop,
    stores: RenewedStores | None = None,
) -> ChannelPeers:
    """Return the peers of a node, as its configuration has them.

    Args:
        stores: of the listeners and connections of this node; None: its stores are not renewed.
    """
    if stores is None:
        stores = RenewedStores(loop, config.node_id)
    return ChannelPeers(
        Sender(cluster_id, controller_endpoints(config) if config.is_controller else ()),
        loop=loop,
        listener_name=controller_listener_name(config),
        voters=lambda: node.voters,
        accepts=node.quorum.accepts,
        bootstrap_servers=config.quorum_bootstrap_servers,
        timeout_ms=config.int_value("controller.quorum.request.timeout.ms"),
        client_id=f"raft-client-{config.node_id}",
        security=controllers_security(config, stores),
    )
