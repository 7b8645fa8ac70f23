"""A cluster that is not healthy is not changed; what stands still meanwhile is said."""

from __future__ import annotations

from dataclasses import replace

from barnabas.adopt.cluster_state import Problem
from barnabas.adopt.finding import Verdict
from barnabas.adopt.health import findings_of_health
from barnabas.client.admin import TopicPartition
from tests.adopt.states import HEALTHY, of_verdict, partition


def test_a_healthy_cluster() -> None:
    (found,) = findings_of_health(HEALTHY)
    assert found.verdict == Verdict.WORKS
    assert found.what == "healthy: 3 brokers, 1 partition, all in sync"


def test_a_problem_blocks_with_its_own_remedy() -> None:
    fenced = Problem("fenced broker", ["broker 2"], "start it")
    (found,) = findings_of_health(replace(HEALTHY, problems=[fenced]))
    assert found == (("broker 2",), "the cluster is not healthy: fenced broker", Verdict.BLOCKS, "start it")


def test_moving_replicas_block() -> None:
    (found,) = findings_of_health(replace(HEALTHY, moving=2))
    assert (found.verdict, found.what) == (Verdict.BLOCKS, "the replicas of 2 partitions move")


def test_health_that_cannot_be_read_is_no_health() -> None:
    (found,) = findings_of_health(replace(HEALTHY, problems=None))
    assert found.verdict == Verdict.BLOCKS


def test_what_stands_still_while_a_node_is_away() -> None:
    partitions = {
        TopicPartition("alone", 0): partition(1),
        TopicPartition("orders", 0): partition(1, 2, 3),
        TopicPartition("orders", 1): partition(1, 2),
    }
    found = list(findings_of_health(replace(HEALTHY, partitions=partitions, voters=(1,))))
    whats = of_verdict(found, Verdict.DIFFERS)
    assert [what.partition(":")[0] for what in whats] == [
        "the quorum has 1 voter",
        "1 topic with a single replica",
        "1 topic with no replica more than min.insync.replicas",
    ]


def test_brokers_that_are_barnabas_already() -> None:
    found = list(findings_of_health(replace(HEALTHY, barnabas=frozenset({2}))))
    assert [each.where for each in found if each.what == "it is barnabas already"] == [("broker 2",)]
