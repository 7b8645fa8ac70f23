"""Looks at a cluster for `barnabas adopt`: its nodes, the program of each, its health. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from barnabas.adopt.cluster_state import Problem
from barnabas.adopt.observation import Seen, SeenNode
from barnabas.adopt.program import Program, SeenProgram, program_at
from barnabas.cli.cluster_nodes import SILENT_MS
from barnabas.cli.cluster_quorum import quorum_of
from barnabas.cli.cluster_status import status_of
from barnabas.client.admin import Admin, PartitionDescription, Quorum, QuorumReplica
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import KafkaError

__all__ = ["Observer"]

_DIAL_MS = 3_000
_NOT_LOOKED = SeenProgram(Program.SILENT, "nobody looked")


class Observer:
    """Looks again and again.

    Args:
        controllers: addresses of the controllers that a file names, by node; the quorum names them since Kafka 3.9.
        connect: dials; a seam for tests.
    """

    def __init__(
        self,
        admin: Admin,
        controllers: Mapping[int, tuple[str, int]] | None = None,
        connect: Callable[..., BlockingConnection] = BlockingConnection,
    ) -> None:
        self._admin = admin
        self._controllers = dict(controllers or {})
        self._brokers: dict[int, tuple[str, int]] = {}
        self._connect = connect

    def look(self, only: int | None = None) -> Seen | None:
        """Return the cluster as it is now; None if no broker answers.

        Args:
            only: look at the program of this node alone, and not at health and features: while a node changes.
        """
        try:
            return self._look(only)
        except KafkaError:
            if only is None:
                raise
            return None

    def _look(self, only: int | None) -> Seen:
        admin = self._admin
        found = admin.describe_cluster()
        quorum = quorum_of(admin)
        partitions = admin.describe_partitions()
        self._brokers.update({node.id: (node.host, node.port) for node in (*found.brokers, *found.fenced)})
        voters = {} if quorum is None else {each.id: each for each in quorum.voters}
        if quorum is not None:
            self._controllers.update({node: _split(address) for node, address in quorum.addresses.items()})
        silent = set() if quorum is None else {each.id for each in quorum.silent_voters(SILENT_MS)}
        brokers = {node.id for node in (*found.brokers, *found.fenced)}
        down = {node.id for node in found.fenced} | silent
        behind = _behind(partitions.values())
        nodes = {}
        for node_id in sorted(brokers | voters.keys()):
            roles = (("broker", node_id in brokers), ("controller", node_id in voters))
            program = self.program(node_id) if only in (None, node_id) else _NOT_LOOKED
            nodes[node_id] = SeenNode(
                node_id,
                tuple(role for role, has in roles if has),
                program.program,
                program.why,
                is_down=node_id in down,
                behind=behind[node_id] if node_id in brokers else None,
                **_of_voter(quorum, voters.get(node_id)),
            )
        leader, epoch = (found.controller_id, 0) if quorum is None else (quorum.leader, quorum.leader_epoch)
        seen = Seen(found.cluster_id, nodes, leader, epoch)
        if only is not None:
            return seen
        status = status_of(admin, partitions).data
        features = {each: one for each, one in admin.describe_features().items() if not isinstance(one, KafkaError)}
        return seen._replace(
            problems=tuple(Problem(**each) for each in status["problems"]), moving=status["moving"], features=features
        )

    def program(self, node_id: int) -> SeenProgram:
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


def _behind(partitions: Iterable[PartitionDescription]) -> Counter[int]:
    return Counter(node for each in partitions for node in _missing(each.replicas, each.isr))


def _missing(replicas: Collection[int], isr: Collection[int]) -> list[int]:
    return [node for node in replicas if node not in isr]


def _of_voter(quorum: Quorum | None, voter: QuorumReplica | None) -> dict[str, int | None]:
    """Return how far behind a voter is, and since when, on the leader's clock."""
    if quorum is None or voter is None:
        return {}
    leader = next((each for each in quorum.replicas if each.id == quorum.leader), None)
    if leader is None or leader.log_end_offset < 0:
        return {}
    if voter.id == quorum.leader:
        return {"voter_lag": 0, "caught_up_ago_ms": 0}
    lag = max(0, leader.log_end_offset - max(0, voter.log_end_offset))
    is_known = leader.last_fetch_ms >= 0 and voter.last_caught_up_ms >= 0
    return {"voter_lag": lag, "caught_up_ago_ms": leader.last_fetch_ms - voter.last_caught_up_ms if is_known else None}
