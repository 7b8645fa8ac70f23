"""`cluster forget`: what it refuses, and that a cluster is healthy without its retired broker."""

from __future__ import annotations

from collections.abc import Iterable
from unittest import mock

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.session import Session
from barnabas.client.admin import ClusterDescription, Node, PartitionDescription, TopicPartition
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.made_up_cluster import MadeUpAdmin


class Cluster(MadeUpAdmin):
    """Broker 1 serves; 2, 3 and 4 do not; 4 has replicas of seven partitions. An older one does not tell who is fenced."""

    def __init__(self, *, tells_fenced: bool = True, error: KafkaError | None = None) -> None:
        super().__init__()
        self._fenced = [Node(each, "h", each) for each in (2, 3, 4)] if tells_fenced else []
        self._error = error
        self.forgotten: list[int] = []

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("id", 1, [Node(1, "h", 1)], self._fenced)

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        partition = PartitionDescription(1, 1, [1, 4], [1], [], [], [])
        return {TopicPartition("t", index): partition for index in range(7)}

    def unregister_broker(self, broker_id: int) -> KafkaError | None:
        self.forgotten.append(broker_id)
        return self._error


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), ["cluster", "forget", *arguments], prog_name="barnabas")


@pytest.mark.parametrize(
    ("options", "status", "forgotten"), [(["--dry-run"], "would be forgotten", []), ([], "forgotten", [3])]
)
def test_a_broker_that_is_down_and_empty(options: list[str], status: str, forgotten: list[int]) -> None:
    cluster = Cluster()
    result = run(cluster, "3", *options)
    assert (result.exit_code, result.stdout) == (0, f"BROKER  STATUS\n3       {status}\n")
    assert cluster.forgotten == forgotten


@pytest.mark.parametrize(
    ("node", "error"),
    [
        (
            "1",
            "broker 1 is in service (`barnabas cluster drain 1` empties it, then stop it; a broker that was killed is in"
            " service for some seconds more)",
        ),
        (
            "4",
            "broker 4 has replicas of 7 partitions: t-0, t-1, t-2, t-3, t-4 and 2 more (`barnabas cluster drain 4` moves them to"
            " other brokers)",
        ),
        ("9", "broker 9 is not part of the cluster now (its brokers are: 1, 2, 3, 4)"),
    ],
)
def test_what_is_refused(node: str, error: str) -> None:
    cluster = Cluster()
    result = run(cluster, node)
    assert (result.exit_code, result.stderr, cluster.forgotten) == (1, f"error: {error}\n", [])


def test_the_controller_knows_what_an_older_broker_does_not_tell() -> None:
    assert run(Cluster(tells_fenced=False), "3").exit_code == 0
    result = run(Cluster(tells_fenced=False, error=error_for(ErrorCode.BROKER_ID_NOT_REGISTERED)), "9")
    assert result.stderr == "error: broker 9 is not part of the cluster now (its brokers are: 1)\n"
    result = run(Cluster(error=error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)), "3")
    assert result.stderr.startswith("error: broker 3: cluster authorization failed (")


@pytest.mark.slow
def test_a_cluster_is_healthy_without_its_retired_broker() -> None:
    with barnabas.Cluster(4) as cluster:

        def command(*arguments: str) -> Result:
            words = [*arguments, "-b", cluster.bootstrap_servers]
            return CliRunner().invoke(command_group(), words, prog_name="barnabas")

        cluster.create_topic("t", partitions=8, replicas=3)
        assert command("cluster", "forget", "4").exit_code == 1
        assert command("cluster", "drain", "4").exit_code == 0
        cluster.stop(4)
        sick = command("cluster", "status")
        assert sick.exit_code == 1
        assert "`barnabas cluster forget NODE` if it is gone for good" in sick.stdout
        assert command("cluster", "forget", "4").exit_code == 0
        assert command("cluster", "status").exit_code == 0
        # It may come back.
        cluster.restart(4)
        assert command("cluster", "nodes", "-o", "json").exit_code == 0
        assert command("cluster", "status").exit_code == 0
