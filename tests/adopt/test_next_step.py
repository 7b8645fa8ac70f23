"""The machine: every state of a node, and what comes next; what forbids to stop a node."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.adopt.change import Act
from barnabas.adopt.cluster_state import Problem
from barnabas.adopt.next_step import doubts, gate, next_step, order
from barnabas.adopt.observation import OwnNode, Seen
from tests.adopt.sights import FREE, HELD, KAFKA, OURS, SILENT, STOPPED, UNKNOWN, node, seen

BEFORE, AWAY, AFTER = (seen(KAFKA, each, KAFKA) for each in (KAFKA, STOPPED, OURS))


@pytest.mark.parametrize(
    ("cluster", "own", "asked", "act"),
    [
        (BEFORE, HELD, None, Act.STOP),
        (BEFORE, HELD, Act.STOP, Act.WAIT),
        (AWAY, HELD, Act.STOP, Act.WAIT),
        (AWAY, FREE, Act.STOP, Act.START),
        (AWAY, FREE, Act.START, Act.WAIT),
        (AWAY, HELD, Act.START, Act.WAIT),
        (seen(KAFKA, SILENT, KAFKA), HELD, Act.START, Act.WAIT),
        (seen(KAFKA, OURS, KAFKA, is_down=True), HELD, Act.START, Act.WAIT),
        (seen(KAFKA, OURS, KAFKA, behind=3), HELD, Act.START, Act.WAIT),
        (seen(KAFKA, OURS, KAFKA, voter_lag=9, caught_up_ago_ms=2_001), HELD, Act.START, Act.WAIT),
        (seen(KAFKA, OURS, KAFKA, leader=-1), HELD, Act.START, Act.WAIT),
        (seen(KAFKA, OURS, KAFKA, voter_lag=9, caught_up_ago_ms=700), HELD, Act.START, Act.DONE),
        (AFTER, HELD, Act.START, Act.DONE),
        # A run that was killed anywhere: the next one has asked for nothing.
        (AWAY, HELD, None, Act.WAIT),
        (AWAY, FREE, None, Act.START),
        (AFTER, HELD, None, Act.DONE),
        # What runs is not what was started.
        (BEFORE, HELD, Act.START, Act.REFUSE),
        (seen(KAFKA, UNKNOWN, KAFKA, why="not allowed"), HELD, None, Act.REFUSE),
        (seen(KAFKA, UNKNOWN, KAFKA), HELD, Act.STOP, Act.WAIT),
        # Its process has left the directory, and has not ended yet.
        (AWAY, FREE._replace(listens=True), Act.STOP, Act.WAIT),
        (AWAY, FREE._replace(listens=True), None, Act.WAIT),
        # No broker answers.
        (None, HELD, None, Act.WAIT),
        (None, FREE._replace(listens=True), Act.STOP, Act.WAIT),
        (None, FREE, Act.START, Act.WAIT),
        (None, FREE, Act.STOP, Act.START),
        (None, FREE, None, Act.REFUSE),
        (None, OwnNode(2, is_held=False, is_alone=True), None, Act.START),
        # Another cluster's node; while nobody knows the quorum it may be one of its controllers.
        (BEFORE, OwnNode(7, is_held=True), None, Act.REFUSE),
        (seen(KAFKA, KAFKA, KAFKA, leader=-1), OwnNode(7, is_held=True), None, Act.WAIT),
    ],
)
def test_what_comes_next(cluster: Seen | None, own: OwnNode, asked: Act | None, act: Act) -> None:
    step = next_step(cluster, own, OURS, asked)
    assert step.act == act
    assert bool(step.reasons) == (act in (Act.WAIT, Act.REFUSE))


def test_the_way_back_is_the_same_way() -> None:
    assert next_step(AFTER, HELD, KAFKA).act == Act.STOP
    assert next_step(AWAY, FREE, KAFKA).act == Act.START
    assert next_step(BEFORE, HELD, KAFKA).act == Act.DONE


def test_a_healthy_cluster_lets_a_node_stop() -> None:
    assert list(gate(BEFORE, HELD)) == []
    assert list(gate(seen(KAFKA, KAFKA, KAFKA, voter_lag=4, caught_up_ago_ms=400), HELD)) == []


@pytest.mark.parametrize(
    ("cluster", "own", "words"),
    [
        (BEFORE, FREE, "node 2 runs, and no process has the lock of its directory"),
        (BEFORE._replace(moving=1), HELD, "the replicas of 1 partition move"),
        (BEFORE._replace(leader=-1), HELD, "the quorum has no leader"),
        (seen(STOPPED, KAFKA, KAFKA, leader=3), HELD, "node 1 is down: start it first"),
        (BEFORE._replace(nodes={**BEFORE.nodes, 3: node(3, KAFKA, is_down=True)}), HELD, "node 3 is down"),
        (BEFORE._replace(nodes={**BEFORE.nodes, 3: node(3, KAFKA, behind=2)}), HELD, "2 replicas not in sync"),
        (
            BEFORE._replace(nodes={**BEFORE.nodes, 3: node(3, KAFKA, voter_lag=8, caught_up_ago_ms=6_000)}),
            HELD,
            "the metadata log of controller 3 is 8 records behind",
        ),
    ],
)
def test_what_forbids_to_stop_a_node(cluster: Seen, own: OwnNode, words: str) -> None:
    (found,) = gate(cluster, own)
    assert found.startswith(words)


def test_a_node_that_the_health_names_is_named_once() -> None:
    problem = Problem("broker is fenced", ["broker 3"], "start it")
    nodes = {**BEFORE.nodes, 3: node(3, STOPPED, is_down=True, behind=4)}
    assert list(gate(BEFORE._replace(nodes=nodes, problems=(problem,)), HELD)) == [
        "the cluster is not healthy: broker is fenced: broker 3 (start it)"
    ]


def test_the_active_controller_comes_last() -> None:
    assert order(BEFORE, OURS) == [2, 3, 1]
    assert order(AFTER, OURS) == [3, 1]
    assert order(AFTER, KAFKA) == [2]


@pytest.mark.parametrize(
    ("cluster", "found"),
    [
        (None, ()),
        (seen(KAFKA, STOPPED, KAFKA, is_down=True), ()),
        (BEFORE._replace(nodes={**AWAY.nodes, 3: node(3, KAFKA, is_down=True)}), ("node 3 is down, too",)),
        (AWAY._replace(leader=-1), ("the quorum has no leader",)),
    ],
)
def test_doubts_are_about_other_nodes(cluster: Seen | None, found: tuple[Any, ...]) -> None:
    assert doubts(cluster, HELD) == found
