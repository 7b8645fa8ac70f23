"""A cluster that does not exist, whose nodes restart: three brokers that vote, and what happens to their processes."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from click.testing import CliRunner, Result

from barnabas.cli import rolling
from barnabas.cli.session import Session
from barnabas.client.admin import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    Node,
    PartitionDescription,
    Quorum,
    QuorumReplica,
    Reassignment,
    TopicPartition,
)
from barnabas.main import command_group
from tests.cli.made_up_cluster import MadeUpAdmin

AT = TopicPartition("orders", 0)


class Rolled(MadeUpAdmin):
    """Brokers 1, 2 and 3; 2 leads the quorum. `orders-0` has a replica on each, and two must be in sync.

    Attributes:
        restarted: the nodes whose command has run.
        replicas: of the partition.
    """

    def __init__(self, replicas: tuple[int, ...] = (1, 2, 3)) -> None:
        super().__init__()
        self.restarted: list[int] = []
        self.replicas = list(replicas)
        self.leader = self.replicas[0]
        self.isr = list(self.replicas)
        self.looks = 0
        self.cluster = SimpleNamespace(connection=self._connection)

    def _connection(self, node: int) -> Any:
        closed = property(lambda found: node in self.restarted)
        return type(
            "Connection", (), {"closed": closed, "version_for": lambda *_: 3, "request": lambda *_, **__: None}
        )()

    def restart(self, words: list[str], node: int, within_s: float) -> None:
        self.restarted.append(node)
        if self.leader == node and len(self.replicas) > 1:
            self.leader = next(each for each in self.replicas if each != node)

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("id", 1, [Node(each, f"h{each}", 9092) for each in (1, 2, 3)], [])

    def describe_quorum(self) -> Quorum:
        return Quorum(2, 1, 10, [QuorumReplica(each, 10, True, None, 1000) for each in (1, 2, 3)])

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        return {AT: PartitionDescription(self.leader, 1, self.replicas, self.isr, [], [], [])}

    def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return {}

    def describe_configs(self, resources: Iterable[ConfigResource], **_: Any) -> dict[ConfigResource, Any]:
        entry = ConfigEntry("min.insync.replicas", "2", ConfigSource.DEFAULT_CONFIG, False, False, "int", [], None)
        return {each: [entry] for each in resources}

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, None]:
        self.leader = self.replicas[0]
        return dict.fromkeys(partitions)


def run(cluster: Rolled, verb: str, *arguments: str) -> Result:
    """Run a command of `barnabas cluster` on it; nobody waits."""
    with (
        mock.patch.object(Session, "admin", return_value=cluster),
        mock.patch.object(rolling, "run_command", cluster.restart),
        mock.patch.object(rolling, "LOOK_SECONDS", 0),
    ):
        return CliRunner().invoke(command_group(), ["cluster", verb, *arguments], prog_name="barnabas")
