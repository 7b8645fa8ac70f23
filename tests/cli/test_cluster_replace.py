"""`cluster replace`: what it refuses, and the steps for a broker and for a voter."""

from __future__ import annotations

import json

import pytest

from barnabas.client.admin import ClusterDescription, Node, Quorum, QuorumReplica
from barnabas.protocol.primitives import Uuid
from tests.cli.rolled_cluster import Rolled, run


class Dead(Rolled):
    """Broker and controller 3 is down."""

    fenced: tuple[int, ...] = (3,)
    directory: Uuid | None = None

    def describe_cluster(self) -> ClusterDescription:
        nodes = {each: Node(each, f"h{each}", 9092) for each in (1, 2, 3)}
        serving = [nodes[each] for each in nodes if each not in self.fenced]
        return ClusterDescription("the-id", 1, serving, [nodes[each] for each in self.fenced])

    def describe_quorum(self) -> Quorum:
        replicas = [
            QuorumReplica(each, 10, True, self.directory, 0 if each in self.fenced else 90_000) for each in (1, 2, 3)
        ]
        return Quorum(2, 1, 10, replicas, {3: "h3:9093"}, "CONTROLLER")


def steps(cluster: Dead) -> list[str]:
    result = run(cluster, "replace", "3", "-o", "json")
    assert result.exit_code == 0, result.stderr
    return [each["command"] for each in json.loads(result.stdout)]


def test_the_steps() -> None:
    cluster = Dead()
    cluster.isr = [1, 2]
    assert steps(cluster) == [
        "barnabas storage format -t the-id -c server.properties",
        "barnabas start --config server.properties",
        "barnabas cluster status",
    ]
    cluster.directory = Uuid(bytes(range(16)))
    assert steps(cluster) == [
        "barnabas storage format -t the-id -c server.properties --no-initial-controllers",
        "barnabas cluster voter remove 3",
        "barnabas start --config server.properties",
        "barnabas cluster voter add 3 --at h3:9093",
        "barnabas cluster status",
    ]


@pytest.mark.parametrize(
    ("node", "fenced", "isr", "error"),
    [
        ("1", (3,), [1, 2], "node 1 is in service (only a node that is down can be replaced)"),
        ("9", (3,), [1, 2], "node 9 is not part of the cluster now (its nodes are: 1, 2, 3)"),
        ("3", (1, 3), [2], "node 1 is down too (start it first: replace one node at a time)"),
        ("3", (3,), [3], "no other replica is in sync of 1 partition: orders-0 (find the disk; if it is lost, "),
    ],
)
def test_what_is_refused(node: str, fenced: tuple[int, ...], isr: list[int], error: str) -> None:
    cluster = Dead()
    cluster.fenced, cluster.isr = fenced, isr
    result = run(cluster, "replace", node)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {error}")
