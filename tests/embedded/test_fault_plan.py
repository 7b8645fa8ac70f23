"""The plan of faults, as it travels to a node."""

from __future__ import annotations

import json

from barnabas.embedded.fault_plan import (
    EVERY_API,
    NO_CLOCK_FAULT,
    NO_DISK_FAULT,
    NO_FAULTS,
    ClockFault,
    DiskFault,
    FaultKind,
    FaultPlan,
    RequestFault,
    Where,
    merged,
)

FAIL = RequestFault(FaultKind.FAIL, 0, Where("orders", 1, "shop", "g"), 6, 0.0, 2, 3, 7, "/faults/7")
SLOW = RequestFault(FaultKind.DELAY_REQUEST, EVERY_API, seconds=0.25, times=-1)
PLAN = FaultPlan(
    cuts=frozenset({(1, 2), (2, 1), (3, 1)}),
    delays={(1, 3): 0.5},
    tickets={(1, 2): ("/faults/1", "/faults/2")},
    requests={1: (FAIL, SLOW), 2: (FAIL,)},
    disks={1: DiskFault(0.1, ("/faults/3",), ("/faults/4",)), 2: DiskFault(1.0)},
    clocks={1: ClockFault(3600.0, ("/faults/5",))},
)


def received(plan: FaultPlan, node_id: int) -> FaultPlan:
    return FaultPlan.from_json(node_id, json.loads(json.dumps(plan.to_json(node_id))))


def test_a_node_gets_the_network_and_its_own_part_of_the_rest() -> None:
    own = {"requests": {1: PLAN.requests[1]}, "disks": {1: PLAN.disks[1]}, "clocks": {1: PLAN.clocks[1]}}
    assert received(PLAN, 1) == PLAN._replace(**own)
    assert received(PLAN, 1).requests[1][0].kind is FaultKind.FAIL
    nothing = {"requests": {3: ()}, "disks": {3: NO_DISK_FAULT}, "clocks": {3: NO_CLOCK_FAULT}}
    assert received(PLAN, 3) == PLAN._replace(**nothing)


def test_plans_add_up_and_a_later_delay_replaces_an_earlier_one() -> None:
    pair = (1, 2)
    cut = FaultPlan(cuts=frozenset({pair}), tickets={pair: ("cut",)})
    slow, slower = (FaultPlan(delays={pair: s}, tickets={pair: (str(s),)}) for s in (1.0, 2.0))
    ended = FaultPlan(delays={pair: 0.0}, tickets={pair: ("0",)})
    assert merged([]) == NO_FAULTS
    assert merged([slow, cut, slower]) == FaultPlan(cut.cuts, {pair: 2.0}, {pair: ("cut", "2.0")})
    assert merged([cut, slow, ended]) == FaultPlan(cut.cuts, {pair: 0.0}, {pair: ("cut",)})
    requests = [FaultPlan(requests={1: (FAIL,)}), FaultPlan(requests={1: (SLOW,), 2: (SLOW,)})]
    assert merged(requests).requests == {1: (FAIL, SLOW), 2: (SLOW,)}
    disks = [FaultPlan(disks={1: DiskFault(full=("a",))}), FaultPlan(disks={1: DiskFault(0.5, slow=("b",))})]
    assert merged(disks).disks == {1: DiskFault(0.5, ("a",), ("b",))}
    clocks = [FaultPlan(clocks={1: ClockFault(10.0, ("a",))}), FaultPlan(clocks={1: ClockFault(-3.0, ("b",))})]
    assert merged(clocks).clocks == {1: ClockFault(7.0, ("a", "b"))}


def test_faults_are_named() -> None:
    assert NO_FAULTS.in_words() == ""
    assert PLAN.in_words() == (
        "nodes 1 and 2 are cut from each other, nothing from node 3 reaches node 1, messages are delayed, requests fail on purpose, "
        "the disk of node 1 is full, the disk of node 1 is slow, the disk of node 2 is slow, the clock of node 1 is wrong"
    )
    assert FaultPlan(delays={(1, 2): 0.0}, requests={1: ()}, disks={1: DiskFault()}).in_words() == ""
    assert FaultPlan(requests={1: (SLOW,)}).in_words() == "messages are delayed"
