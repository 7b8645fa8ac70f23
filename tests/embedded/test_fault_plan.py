"""The plan of faults, as it travels to a node."""

from __future__ import annotations

import json

from barnabas.embedded.fault_plan import NO_FAULTS, FaultPlan, RequestFault

FAULT = RequestFault(0, 6, 2, "/faults/1")
PLAN = FaultPlan(
    cuts=frozenset({(1, 2), (2, 1), (3, 1)}),
    delays={(1, 3): 0.5},
    slow={1: 0.25, 2: 1.0},
    requests={1: (FAULT, FAULT._replace(error_code=None, times=-1)), 2: (FAULT,)},
)


def received(plan: FaultPlan, node_id: int) -> FaultPlan:
    return FaultPlan.from_json(node_id, json.loads(json.dumps(plan.to_json(node_id))))


def test_a_node_gets_the_network_and_its_own_part_of_the_rest() -> None:
    assert received(PLAN, 1) == PLAN._replace(slow={1: 0.25}, requests={1: PLAN.requests[1]})
    assert received(PLAN, 3) == PLAN._replace(slow={}, requests={3: ()})


def test_no_faults_are_none() -> None:
    assert received(NO_FAULTS, 2) == NO_FAULTS._replace(requests={2: ()})


def test_faults_are_named() -> None:
    assert NO_FAULTS.in_words() == ""
    assert PLAN.in_words() == (
        "nodes 1 and 2 are cut from each other, nothing from node 3 reaches node 1, messages are delayed, requests fail on purpose"
    )
    assert FaultPlan(delays={(1, 2): 0.0}, slow={1: 0.0}, requests={1: ()}).in_words() == ""
    assert FaultPlan(slow={1: 0.1}).in_words() == "messages are delayed"
