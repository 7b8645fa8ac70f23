"""`cluster accept-loss`: the plan, the elections, and the bad input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from unittest import mock

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.session import Session
from barnabas.client.admin import ClusterDescription, Node, PartitionDescription, TopicPartition
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.made_up_cluster import MadeUpAdmin

ORDERS, PAYMENTS, FINE = TopicPartition("orders", 0), TopicPartition("payments", 1), TopicPartition("fine", 0)
LOST = error_for(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


class Cluster(MadeUpAdmin):
    """Broker 3 is gone. Nobody leads orders-0, whose last known leader it was, nor payments-1, which it holds alone."""

    def __init__(self, *, is_healthy: bool = False) -> None:
        super().__init__()
        lost = -1 if not is_healthy else 1
        self.partitions_now = {
            ORDERS: PartitionDescription(lost, 4, [1, 2, 3], [], [], [3], [3]),
            PAYMENTS: PartitionDescription(lost, 2, [3], [], [3], [3], [3]),
            FINE: PartitionDescription(1, 1, [1, 2], [1, 2], [], [], []),
        }
        self.elected: list[TopicPartition] = []

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("id", 1, [Node(1, "h", 1), Node(2, "h", 2)], [Node(3, "h", 3)])

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        return dict(self.partitions_now)

    def replica_ends(
        self, replicas: Mapping[TopicPartition, Iterable[int]]
    ) -> dict[TopicPartition, dict[int, int | KafkaError]]:
        return {
            at: {r: 120 if r == 1 else error_for(ErrorCode.REQUEST_TIMED_OUT) for r in each}
            for at, each in replicas.items()
        }

    def elect_unclean_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        self.elected = list(partitions)
        if ORDERS in self.elected:
            self.partitions_now[ORDERS] = self.partitions_now[ORDERS]._replace(leader=1)
        return {at: LOST if at == PAYMENTS else None for at in self.elected}


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    named = mock.patch(
        "barnabas.cli.cluster_accept_loss.named_partitions", lambda admin, texts: [TopicPartition(t, 0) for t in texts]
    )
    with mock.patch.object(Session, "admin", return_value=cluster), named:
        words = ["cluster", "accept-loss", *arguments, "-o", "json"]
        return CliRunner().invoke(command_group(), words, prog_name="barnabas")


@pytest.mark.parametrize("options", [[], ["--all"], ["--dry-run"]])
def test_a_plan_changes_nothing(options: list[str]) -> None:
    cluster = Cluster()
    result = run(cluster, *options)
    assert result.exit_code == 0
    assert '"cause": "last known leader 3 is offline, and replicas 1 and 2 may lack records"' in result.stdout
    assert '"log_ends": "1:120 2:unknown 3:offline"' in result.stdout
    assert '"cause": "eligible leader replica 3 is offline"' in result.stdout
    assert "fine" not in result.stdout
    assert "nothing was changed: --execute elects leaders" in result.stderr
    assert cluster.elected == []


def test_only_what_is_named_is_elected() -> None:
    cluster = Cluster()
    result = run(cluster, "orders", "fine", "--execute")
    assert (result.exit_code, cluster.elected) == (0, [ORDERS])
    assert '"leader": 1' in result.stdout
    assert '"status": "elected"' in result.stdout


def test_a_partition_whose_replicas_are_all_away_fails() -> None:
    cluster = Cluster()
    result = run(cluster, "--all", "--execute")
    assert (result.exit_code, cluster.elected) == (1, [ORDERS, PAYMENTS])
    assert '"status": "no leader"' in result.stdout
    assert "partition payments-1: " in result.stderr


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--execute"], "--execute needs the names of topics, or --all"),
        (["orders", "--all"], "--all and the names of topics contradict each other"),
        (["--dry-run", "--execute"], "--dry-run and --execute contradict each other"),
    ],
)
def test_contradictions(words: list[str], error: str) -> None:
    result = run(Cluster(), *words)
    assert result.exit_code == 2
    assert error in result.stderr


def test_a_healthy_cluster_has_nothing_to_accept() -> None:
    result = run(Cluster(is_healthy=True))
    assert (result.exit_code, result.stderr) == (
        1,
        "error: every partition has a leader (nothing has to be accepted)\n",
    )
    assert "each of these partitions has a leader" in run(Cluster(), "fine", "--execute").stderr


@pytest.mark.slow
def test_the_only_replica_comes_back_with_an_empty_disk() -> None:
    with barnabas.Cluster(3) as cluster:

        def command(*arguments: str, given: str = "") -> Result:
            words = [*arguments, "-b", cluster.bootstrap_servers]
            return CliRunner().invoke(command_group(), words, input=given, prog_name="barnabas")

        cluster.create_topic("t", replicas=1)
        holder = cluster.leader("t")
        assert command("produce", "t", given="lost\n").exit_code == 0
        cluster.kill(holder)
        cluster.wipe(holder)
        cluster.restart(holder)
        sick = command("cluster", "status", "--wide")
        assert sick.exit_code == 1
        assert "no replica is known to have all its records" in sick.stdout
        assert "`barnabas cluster accept-loss`" in sick.stdout
        plan = command("cluster", "accept-loss")
        assert f"{holder}:0 " in plan.stdout
        assert command("cluster", "accept-loss", "t:0", "--execute").exit_code == 0
        assert cluster.leader("t") == holder
        assert command("cluster", "accept-loss").exit_code == 1
