"""A topic that only some worlds have, with settings of its own, the clients that work on it, and what is observed of it.

The checkers of the other topics do not know it, except that what a `Producer` was told of it is kept, and its end does not go back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from barnabas.metadata.partition_registration import PartitionRegistration
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import Partition
from tests.simulation.judged_node import JudgedNode


class View(NamedTuple):
    """What a side topic sees of the cluster.

    Attributes:
        newest: what the brokers know newest of a partition.
        leader_of: the address and the epoch of its leader; None while nobody leads, or the leader does not know it.
    """

    brokers: Sequence[JudgedNode]
    newest: Callable[[Partition], PartitionRegistration | None]
    leader_of: Callable[[Partition], tuple[Address, int] | None]
    now_ms: Callable[[], int]


class SideTopic(Protocol):
    """One such topic."""

    name: str

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the topic's configuration."""

    @property
    def partitions(self) -> Sequence[Partition]:
        """Return all its partitions."""

    @property
    def watched(self) -> Sequence[Partition]:
        """Return those whose end does not go back."""

    def workers(self) -> list[Any]:
        """Return its clients, but for those that are producers of the cluster."""

    def observe(self) -> None:
        """Look at the nodes; often."""

    def counts(self) -> dict[str, int]:
        """Return, by name, what must go further when the faults have ended."""

    async def read_at_the_end(self, client: ClusterClient) -> None:
        """Read it when its clients have ended."""
