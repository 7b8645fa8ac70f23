"""The sticky task assignor: balance, stickiness, standbys; and what must hold of any assignment."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.group.streams.task_assignor import AssignableSubtopology, AssignmentMember, TaskId, assign
from barnabas.group.streams.tasks import TasksTuple


def subtopologies(**tasks: int) -> dict[str, AssignableSubtopology]:
    """`a=2, b_stateful=3`: subtopologies with their tasks."""
    return {
        name.removesuffix("_stateful"): AssignableSubtopology(n, name.endswith("_stateful"))
        for name, n in tasks.items()
    }


def new(*processes: str) -> dict[str, AssignmentMember]:
    return {f"m{index}": AssignmentMember(process, {}, {}) for index, process in enumerate(processes)}


def again(
    assigned: dict[str, TasksTuple], processes: dict[str, AssignmentMember], *without: str
) -> dict[str, AssignmentMember]:
    """The members with what they were given, some of them gone."""
    return {
        member_id: AssignmentMember(processes[member_id].process_id, tasks.active, tasks.standby)
        for member_id, tasks in assigned.items()
        if member_id not in without
    }


def shown(assigned: dict[str, TasksTuple]) -> dict[str, str]:
    return {member_id: str(tasks) for member_id, tasks in assigned.items()}


def tasks_in(tasks: TasksTuple, role: str) -> set[TaskId]:
    return {TaskId(name, index) for name, indexes in getattr(tasks, role).items() for index in indexes}


def test_a_first_assignment_is_even() -> None:
    members = new("p", "q")
    assert shown(assign(members, subtopologies(a=2, b=2), 0)) == {
        "m0": "(active=[a_0, b_0], standby=[])",
        "m1": "(active=[a_1, b_1], standby=[])",
    }


def test_more_members_than_tasks() -> None:
    assigned = assign(new("p", "q", "r"), subtopologies(a=2), 0)
    assert sorted(len(tasks_in(tasks, "active")) for tasks in assigned.values()) == [0, 1, 1]


def test_nothing_moves_without_need() -> None:
    members = new("p", "q", "r")
    first = assign(members, subtopologies(a=4, b_stateful=5), 1)
    assert assign(again(first, members), subtopologies(a=4, b_stateful=5), 1) == first


def test_only_the_tasks_of_who_is_gone_move() -> None:
    members = new("p", "q", "r")
    topology = subtopologies(a=6, b_stateful=6)
    first = assign(members, topology, 0)
    second = assign(again(first, members, "m2"), topology, 0)
    for member_id in ("m0", "m1"):
        assert tasks_in(first[member_id], "active") <= tasks_in(second[member_id], "active")


def test_a_standby_becomes_active_when_its_active_is_gone() -> None:
    members = new("p", "q", "r")
    topology = subtopologies(a_stateful=3)
    first = assign(members, topology, 1)
    (gone,) = [m for m in members if TaskId("a", 0) in tasks_in(first[m], "active")]
    (copy,) = [m for m in members if TaskId("a", 0) in tasks_in(first[m], "standby")]
    second = assign(again(first, members, gone), topology, 1)
    assert TaskId("a", 0) in tasks_in(second[copy], "active")


def test_state_on_disk_decides_where_no_standby_does() -> None:
    members = {
        "m0": AssignmentMember("p", {}, {}, {"a": {0: 5}}),
        "m1": AssignmentMember("q", {}, {}, {"a": {0: 50, 1: 1}}),
    }
    assigned = assign(members, subtopologies(a_stateful=2), 0)
    assert tasks_in(assigned["m1"], "active") == {TaskId("a", 0)}, "it has most of the state"


def test_a_process_with_more_threads_gets_more() -> None:
    assigned = assign(new("p", "p", "q"), subtopologies(a=6), 0)
    assert [len(tasks_in(assigned[m], "active")) for m in ("m0", "m1", "m2")] == [2, 2, 2]


def test_standbys_that_no_process_is_left_for_are_not_given(caplog: pytest.LogCaptureFixture) -> None:
    assigned = assign(new("p", "p"), subtopologies(a_stateful=1), 2)
    assert sum(len(tasks_in(tasks, "standby")) for tasks in assigned.values()) == 0
    assert "2 of 2 standby replicas of task a_0" in caplog.text


def test_stateless_tasks_have_no_standbys() -> None:
    assigned = assign(new("p", "q"), subtopologies(a=2), 1)
    assert not any(tasks.standby for tasks in assigned.values())


def test_no_members() -> None:
    assert assign({}, subtopologies(a=2), 1) == {}


@given(st.randoms(use_true_random=False))
def test_whatever_the_members_had_the_assignment_is_whole_and_even(rng: random.Random) -> None:
    names = [f"s{index}" for index in range(rng.randint(1, 3))]
    topology = {name: AssignableSubtopology(rng.randint(1, 5), rng.random() < 0.6) for name in names}
    everything = [TaskId(name, index) for name, s in topology.items() for index in range(s.tasks)]
    processes = [f"p{index}" for index in range(rng.randint(1, 4))]
    members = {f"m{i}": AssignmentMember(rng.choice(processes), {}, {}) for i in range(rng.randint(1, 5))}
    for task in everything:  # A past that never was: each task active once at most, with copies anywhere.
        holders = rng.sample(sorted(members), rng.randint(0, min(2, len(members))))
        for role, member_id in zip(("active", "standby"), holders, strict=False):
            had = getattr(members[member_id], role)
            had[task.subtopology_id] = had.get(task.subtopology_id, frozenset()) | {task.partition}
            members[member_id] = members[member_id]._replace(**{role: had})
    standby = rng.randint(0, 2)
    assigned = assign({m: s._replace(active=dict(s.active)) for m, s in members.items()}, topology, standby)
    active = [task for tasks in assigned.values() for task in tasks_in(tasks, "active")]
    assert sorted(active) == sorted(everything), "each task is active once"
    shares = [len(tasks_in(tasks, "active")) for tasks in assigned.values()]
    assert max(shares) <= -(-len(everything) // len(members)) + 1, "nobody has much more than a share"
    used = {member.process_id for member in members.values()}
    for task in everything:
        on = [
            members[m].process_id
            for m, tasks in assigned.items()
            for role in ("active", "standby")
            if task in tasks_in(tasks, role)
        ]
        assert len(on) == len(set(on)), "no two copies on a process"
        wanted = 1 + (standby if topology[task.subtopology_id].is_stateful else 0)
        assert len(on) == min(wanted, len(used)), "as many copies as there are processes for"
