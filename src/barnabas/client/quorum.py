"""The quorum of controllers behind `__cluster_metadata`, and the change of its voters.

Sources: DescribeQuorum (55), AddRaftVoter (80), RemoveRaftVoter (81); KIP-595, KIP-836 (times), KIP-853 (directories, listeners).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import ZERO_UUID, Uuid


class QuorumReplica(NamedTuple):
    """A replica of the metadata log.

    Attributes:
        directory_id: None if the replica, or the broker that answers, does not return it.
        last_fetch_ms, last_caught_up_ms: when it last read, and last had everything; -1 if it never has since the leader was
            elected. The leader's own times are the time of the answer, -1 before Kafka 3.4.
    """

    id: int
    log_end_offset: int
    is_voter: bool
    directory_id: Uuid | None = None
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class Quorum(NamedTuple):
    """The quorum.

    Attributes:
        leader: -1 while the voters elect one.
        addresses: `host:port` of voters, if the broker that answers returns them.
        listener: the name of the listener at these addresses.
    """

    leader: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]
    addresses: Mapping[int, str] = MappingProxyType({})
    listener: str | None = None

    @property
    def voters(self) -> list[QuorumReplica]:
        """The replicas that vote; the others only read."""
        return [each for each in self.replicas if each.is_voter]

    def silent_voters(self, longer_than_ms: int) -> list[QuorumReplica]:
        """Return the voters that have not read from the leader for this long; none if the times are not known."""
        now_ms = max((each.last_fetch_ms for each in self.replicas if each.id == self.leader), default=-1)
        return [each for each in self.voters if each.last_fetch_ms < now_ms - longer_than_ms]


def describe_quorum(cluster: Cluster) -> Quorum:
    """Return the leader of the metadata log and how far its replicas are."""
    return cluster.retry(lambda: quorum_at(cluster.any_connection()))


def quorum_at(connection: BlockingConnection) -> Quorum:
    """Return the quorum as one node knows it.

    Raises:
        KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_CONTROLLER: the node asked a controller that does not lead.
    """
    request_class = messages.DescribeQuorumRequest
    partition = request_class.PartitionData(partition_index=0)
    topic = request_class.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = connection.request(request_class(topics=[topic]))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    found = response.topics[0].partitions[0]
    if found.error_code:
        raise error_for(found.error_code, found.error_message)
    replicas = [_replica(each, is_voter=True) for each in found.current_voters]
    replicas += [_replica(each, is_voter=False) for each in found.observers]
    addresses = {
        node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}" for node in response.nodes if node.listeners
    }
    return Quorum(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        sorted(replicas, key=lambda each: (not each.is_voter, each.id)),
        addresses,
        next((node.listeners[0].name for node in response.nodes if node.listeners), None),
    )


def add_voter(
    cluster: Cluster, node: int, directory_id: Uuid, listener: str, host: str, port: int
) -> KafkaError | None:
    """Let an observer vote; return when the change is committed and a broker shows it, or the error.

    The leader dials the address first. It refuses a node that has not read the metadata log to its end; the request is then sent again
    until the cluster's `timeout_ms` is over.
    """
    request_class = messages.AddRaftVoterRequest

    def ask(connection: BlockingConnection, batch: list[int]) -> dict[int, KafkaError | None]:
        request = request_class(
            cluster_id=None,
            timeout_ms=cluster.broker_timeout_ms,
            voter_id=node,
            voter_directory_id=directory_id,
            listeners=[request_class.Listener(name=listener, host=host, port=port)],
        )
        answer = connection.request(request)
        return dict.fromkeys(batch, outcome_of(answer.error_code, answer.error_message))

    deadline, attempt = cluster.deadline(), 0
    while True:
        error = _changed(cluster, node, ask, votes=True)
        if error is None or not _lags_behind(error) or not cluster.pause(attempt, deadline):
            return error
        attempt += 1


def _lags_behind(error: KafkaError) -> bool:
    """Return whether the leader has refused a voter that has not read the log to its end; the code is also that of other failures."""
    return error.code is ErrorCode.REQUEST_TIMED_OUT and "lagging behind" in error.message


def remove_voter(cluster: Cluster, node: int, directory_id: Uuid) -> KafkaError | None:
    """Let a voter only read; return when the change is committed and a broker shows it, or the error."""

    def ask(connection: BlockingConnection, batch: list[int]) -> dict[int, KafkaError | None]:
        request = messages.RemoveRaftVoterRequest(cluster_id=None, voter_id=node, voter_directory_id=directory_id)
        answer = connection.request(request)
        return dict.fromkeys(batch, outcome_of(answer.error_code, answer.error_message))

    return _changed(cluster, node, ask, votes=False)


def _changed(
    cluster: Cluster,
    node: int,
    ask: Callable[[BlockingConnection, list[int]], dict[int, KafkaError | None]],
    *,
    votes: bool,
) -> KafkaError | None:
    error = cluster.ask_each([node], cluster.to_controller, ask, repeatable=False)[node]
    if error is None:
        cluster.await_change(lambda: votes == (node in [each.id for each in describe_quorum(cluster).voters]))
    return error


def _replica(state: messages.DescribeQuorumResponse.ReplicaState, *, is_voter: bool) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.log_end_offset,
        is_voter,
        Uuid(state.replica_directory_id) if state.replica_directory_id != ZERO_UUID else None,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
