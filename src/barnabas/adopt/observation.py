"""A cluster as `barnabas adopt next` sees it at a moment. Nothing is kept between two runs: each run looks again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.adopt.cluster_state import Problem
from barnabas.client.features import BrokerFeatures
from barnabas.client.program import Program

__all__ = ["OwnNode", "Seen", "SeenNode"]


class SeenNode(NamedTuple):
    """A node.

    Attributes:
        roles: `broker`, `controller`, or both.
        program: SILENT if it was not looked at.
        why: why the program is not known; empty if it is.
        is_down: a fenced broker, or a voter that does not read from the leader.
        behind: its replicas that are not in sync; None for a controller alone.
        voter_lag: records of the metadata log that it has not read; None if it does not vote, or its end is not known.
        caught_up_ago_ms: when it last had everything; None if that is not known.
        supports: the highest level of `metadata.version` that it supports; None if that is not known.
    """

    id: int
    roles: tuple[str, ...]
    program: Program
    why: str = ""
    is_down: bool = False
    behind: int | None = None
    voter_lag: int | None = None
    caught_up_ago_ms: int | None = None
    supports: int | None = None

    def is_caught_up(self, within_ms: int) -> bool:
        """Return whether it has the whole metadata log, or had it so recently; a node that does not vote has."""
        return not self.voter_lag or (self.caught_up_ago_ms is not None and self.caught_up_ago_ms <= within_ms)


class Seen(NamedTuple):
    """A cluster that answers.

    Attributes:
        leader: the active controller; -1 while the quorum has no leader.
        problems: as `barnabas cluster status` names them; empty if they were not looked at.
        moving: partitions whose replicas move.
        features: of the brokers that serve; empty if they were not looked at.
    """

    cluster_id: str | None
    nodes: Mapping[int, SeenNode]
    leader: int
    leader_epoch: int = 0
    problems: tuple[Problem, ...] = ()
    moving: int = 0
    features: Mapping[int, BrokerFeatures] = {}

    def running(self, program: Program) -> list[int]:
        """Return the ids of the nodes that are this program."""
        return sorted(each.id for each in self.nodes.values() if each.program == program)

    @property
    def behind(self) -> int:
        """The replicas of the whole cluster that are not in sync."""
        return sum(each.behind or 0 for each in self.nodes.values())

    @property
    def voters(self) -> list[SeenNode]:
        """The nodes of the quorum whose end is known."""
        return [each for each in self.nodes.values() if each.voter_lag is not None]


class OwnNode(NamedTuple):
    """The node whose file was given, as its directory shows it.

    Attributes:
        is_held: whether a process has the lock of its directory.
        is_alone: whether it is the whole cluster.
        listens: whether a process listens at its addresses without that lock: Apache Kafka closes the port of its controller
            after it has freed the directory.
    """

    id: int
    is_held: bool
    is_alone: bool = False
    listens: bool = False
