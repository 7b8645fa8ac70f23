"""Looks at a cluster for `barnabas adopt`: its nodes, the program of each, its quorum. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from barnabas.adopt.observation import Seen, SeenNode
from barnabas.cli.cluster_nodes import SILENT_MS
from barnabas.client.admin import Admin, PartitionDescription, Quorum, QuorumReplica
from barnabas.client.program import Program, SeenProgram, program_at
from barnabas.client.quorum import quorum_at
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import KafkaError

__all__ = ["Observer"]

_DIAL_MS = 3_000
_NOT_LOOKED = SeenProgram(Program.SILENT, "not looked at")


class _OfVoter(NamedTuple):
    """How far a voter is behind, and since when, on the leader's clock."""

    lag: int | None = None
    caught_up_ago_ms: int | None = None


class Observer:
    """Looks again and again; it remembers the addresses of nodes and the last voters, for the time when a node or the quorum is away.

    Args:
        connect: dials; a seam for tests.

    Attributes:
        quorum: as the last look saw it; None if no broker could say it.
    """

    def __init__(self, admin: Admin, connect: Callable[..., BlockingConnection] = BlockingConnection) -> None:
        self._admin = admin
        self._brokers: dict[int, tuple[str, int]] = {}
        self._controllers: dict[int, tuple[str, int]] = {}
        self._voters: set[int] = set()
        self._connect = connect
        self.quorum: Quorum | None = None

    def look(self, only: Collection[int] | None = None) -> Seen:
        """Return the cluster as it is now.

        Args:
            only: look at the programs of these nodes alone: while they change.

        Raises:
            KafkaError: no broker answers.
        """
        found = self._admin.describe_cluster()
        serving = {node.id for node in found.brokers}
        partitions = self._admin.describe_partitions()
        self.quorum = quorum = self._quorum(serving)
        self._brokers.update({node.id: (node.host, node.port) for node in (*found.brokers, *found.fenced)})
        voters = {} if quorum is None else {each.id: each for each in quorum.voters}
        silent = set() if quorum is None else {each.id for each in quorum.silent_voters(SILENT_MS)}
        if quorum is not None:
            self._voters = set(voters)
            self._controllers.update({node: _split(address) for node, address in quorum.addresses.items()})
        fenced = {node.id for node in found.fenced}
        behind = _behind(partitions.values())
        nodes = {}
        for node_id in sorted(serving | fenced | self._voters):
            is_broker = node_id in serving | fenced
            roles = (("broker", is_broker), ("controller", node_id in self._voters))
            program = self._program(node_id) if only is None or node_id in only else _NOT_LOOKED
            nodes[node_id] = SeenNode(
                node_id,
                tuple(role for role, has in roles if has),
                program.program,
                program.why,
                node_id in fenced | silent,
                behind[node_id] if is_broker else None,
                *_of_voter(quorum, voters.get(node_id)),
                program.supports,
            )
        leader, epoch = (-1, -1) if quorum is None else (quorum.leader, quorum.leader_epoch)
        return Seen(found.cluster_id, nodes, leader, epoch)

    def _quorum(self, brokers: Iterable[int]) -> Quorum | None:
        """Return the quorum as the first broker that can say it knows it; None if none can.

        A broker of Apache Kafka asks the last controller that it knew, and says so if that does not lead any more. Others know better.
        """
        for node_id in sorted(brokers):
            try:
                return quorum_at(self._admin.cluster.connection(node_id))
            except KafkaError:
                continue
        return None

    def _program(self, node_id: int) -> SeenProgram:
        """Return the program of a node: at its broker's address, or at its controller's."""
        address = self._brokers.get(node_id) or self._controllers.get(node_id)
        if address is None:
            return SeenProgram(Program.UNKNOWN, "no broker names the address of its controller")
        cluster = self._admin.cluster
        return program_at(
            lambda: self._connect(
                *address, client_id=cluster.client_id, timeout_ms=_DIAL_MS, security=cluster.security
            ),
            node_id,
        )


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _behind(partitions: Iterable[PartitionDescription]) -> Mapping[int, int]:
    return Counter(node for each in partitions for node in each.replicas if node not in each.isr)


def _of_voter(quorum: Quorum | None, voter: QuorumReplica | None) -> _OfVoter:
    if quorum is None or voter is None:
        return _OfVoter()
    leader = next((each for each in quorum.replicas if each.id == quorum.leader), None)
    if leader is None or leader.log_end_offset < 0:
        return _OfVoter()
    if voter.id == quorum.leader:
        return _OfVoter(0, 0)
    lag = max(0, leader.log_end_offset - max(0, voter.log_end_offset))
    is_known = leader.last_fetch_ms >= 0 and voter.last_caught_up_ms >= 0
    return _OfVoter(lag, leader.last_fetch_ms - voter.last_caught_up_ms if is_known else None)
