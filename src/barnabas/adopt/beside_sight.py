"""A moment of `barnabas adopt next --beside`: a node that comes, on a new directory, the node that it replaces, and their cluster."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.program import Program

__all__ = ["Coming", "Leaving", "Sight"]


class Coming(NamedTuple):
    """The node of the file.

    Attributes:
        roles: of its file.
        program: SILENT until the cluster knows its address.
        is_formatted: whether each of its directories has an identity.
        is_held: whether a process has the lock of its directory.
        serves: whether the cluster counts it as a broker in service, or reads with it, if it is a controller alone.
        is_voter: whether it votes.
        lag: records of the metadata log that it has not read; None if that is not known.
    """

    id: int
    roles: tuple[str, ...]
    program: Program
    is_formatted: bool
    is_held: bool
    serves: bool
    is_voter: bool
    lag: int | None


class Leaving(NamedTuple):
    """The node that is replaced.

    Attributes:
        roles: as the cluster knows it; empty if the cluster does not know it.
        is_registered: whether the controller knows it as a broker.
        serves: whether it is a broker in service.
        runs: whether it seems to run: something listens at its address, or it reads the metadata log.
        replicas: how many it holds.
        is_voter: whether it votes.
    """

    id: int
    roles: tuple[str, ...]
    is_registered: bool
    serves: bool
    runs: bool
    replicas: int
    is_voter: bool


class Sight(NamedTuple):
    """Both nodes, and their cluster.

    Attributes:
        leader: the active controller; -1 while the quorum has no leader.
        can_vote: whether the voters of this quorum can change (kraft.version 1).
        moving: partitions whose replicas move.
        behind: replicas of the cluster that are not in sync, without those that move.
        nodes: the ids that the cluster knows.
    """

    coming: Coming
    leaving: Leaving
    leader: int
    can_vote: bool
    moving: int = 0
    behind: int = 0
    nodes: tuple[int, ...] = ()
