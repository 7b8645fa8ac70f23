"""The sticky task assignor of streams groups.

Every task gets one active member; with standby replicas every stateful task also gets copies on other processes. Tasks stay where their
state is, as far as the load stays even:

    1. an active task goes back to the member that has it, while that member is below its share
    2. else to the member that has a standby of it (or has reported state for it), the least loaded first
    3. else to the least loaded member of the least loaded process
    4. standbys alike: the member that was active, then those that had the standby, then the least loaded process

A share is tasks divided by members, rounded up; once a member has its share, the rest is divided by the others. The load of a process is
its tasks divided by its members (threads), so that a process with more threads gets more tasks. No two copies of a task are on one process.

Of equal members or processes the first in the group's order is taken, so that one state gives one assignment.

Sources: KIP-1071; Kafka classes `StickyTaskAssignor`, `ProcessState`.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.group.streams.tasks import Tasks, TasksTuple

logger = logging.getLogger(__name__)

STICKY = "sticky"


class TaskId(NamedTuple):
    subtopology_id: str
    partition: int


class AssignmentMember(NamedTuple):
    """A member for the assignor: its process, its present tasks, and the offsets of the state on its disk."""

    process_id: str
    active: Tasks
    standby: Tasks
    task_offsets: Mapping[str, Mapping[int, int]] = {}


class AssignableSubtopology(NamedTuple):
    """A subtopology with its number of tasks."""

    tasks: int
    is_stateful: bool


class _Member(NamedTuple):
    process: _Process
    member_id: str


class _Process:
    """One process with its members and what they have been given."""

    __slots__ = ("active", "index", "members", "standby", "tasks")

    def __init__(self, index: int) -> None:
        self.index = index
        self.members: dict[str, int] = {}
        """Number of tasks by member."""
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self.tasks: set[TaskId] = set()

    @property
    def load(self) -> float:
        return sum(self.members.values()) / len(self.members)

    def add(self, member_id: str, task: TaskId, *, active: bool) -> int:
        """Give a member a task; returns how many it has then."""
        (self.active if active else self.standby).setdefault(member_id, set()).add(task)
        self.tasks.add(task)
        self.members[member_id] += 1
        return self.members[member_id]

    def add_to_least_loaded(self, task: TaskId, *, active: bool) -> int:
        return self.add(min(self.members, key=self.members.__getitem__), task, active=active)


class _Share:
    """Return how many tasks a member gets: the tasks left divided by the members left."""

    __slots__ = ("members", "per_member", "tasks")

    def __init__(self, tasks: int, members: int) -> None:
        self.tasks = tasks
        self.members = members
        self.per_member = 0
        self._divide()

    def _divide(self) -> None:
        self.per_member = -(-self.tasks // self.members) if self.members else 0

    def taken(self, count: int) -> None:
        """A member has this many now; when that is its share, the rest is for the others."""
        if count == self.per_member:
            self.members -= 1
            self.tasks -= count
            self._divide()


@dataclass
class _Group:
    """The assignment in the making."""

    standby_replicas: int
    active_share: _Share
    total_share: _Share
    processes: dict[str, _Process] = field(default_factory=dict)
    was_active: dict[TaskId, _Member] = field(default_factory=dict)
    was_standby: dict[TaskId, list[_Member]] = field(default_factory=dict)

    def give(self, member: _Member, task: TaskId, *, active: bool) -> None:
        self.count(member.process.add(member.member_id, task, active=active), active=active)

    def count(self, tasks_now: int, *, active: bool) -> None:
        if active:
            self.active_share.taken(tasks_now)
        self.total_share.taken(tasks_now)

    def below_active_share(self, member: _Member) -> bool:
        return member.process.members[member.member_id] < self.active_share.per_member

    def below_total_share(self, member: _Member) -> bool:
        return member.process.members[member.member_id] < self.total_share.per_member


def assign(
    members: Mapping[str, AssignmentMember], subtopologies: Mapping[str, AssignableSubtopology], standby_replicas: int
) -> dict[str, TasksTuple]:
    """The tasks of each member.

    Args:
        subtopologies: by id; a stateful one gets standbys.
        standby_replicas: how many copies a stateful task should have in addition to its active task (as far as there are processes).
    """
    group = _initialize(members, subtopologies, standby_replicas)
    if group.processes:
        _assign_active(group, [TaskId(name, i) for name, s in subtopologies.items() for i in range(s.tasks)])
        if standby_replicas > 0:
            stateful = [TaskId(name, i) for name, s in subtopologies.items() if s.is_stateful for i in range(s.tasks)]
            _assign_standby(group, stateful)
    result: dict[str, TasksTuple] = {}
    for member_id, member in members.items():
        process = group.processes[member.process_id]
        result[member_id] = TasksTuple(
            _by_subtopology(process.active.get(member_id, ())), _by_subtopology(process.standby.get(member_id, ()))
        )
    return result


def _by_subtopology(tasks: Iterable[TaskId]) -> dict[str, frozenset[int]]:
    partitions: dict[str, set[int]] = {}
    for task in sorted(tasks):
        partitions.setdefault(task.subtopology_id, set()).add(task.partition)
    return {subtopology: frozenset(indexes) for subtopology, indexes in partitions.items()}


def _initialize(
    members: Mapping[str, AssignmentMember], subtopologies: Mapping[str, AssignableSubtopology], standby_replicas: int
) -> _Group:
    active = sum(s.tasks for s in subtopologies.values())
    standby = sum(s.tasks * standby_replicas for s in subtopologies.values() if s.is_stateful)
    group = _Group(standby_replicas, _Share(active, len(members)), _Share(active + standby, len(members)))
    candidates: dict[TaskId, list[tuple[int, int, _Member]]] = {}
    for member_id, spec in members.items():
        process = group.processes.setdefault(spec.process_id, _Process(len(group.processes)))
        process.members[member_id] = 0
        member = _Member(process, member_id)
        for task in _tasks(spec.active):
            group.was_active[task] = member
        standby_tasks = set(_tasks(spec.standby))
        for task in standby_tasks:
            offset = spec.task_offsets.get(task.subtopology_id, {}).get(task.partition, 0)
            candidates.setdefault(task, []).append((0, -offset, member))
        for subtopology, offsets in spec.task_offsets.items():
            for partition, offset in offsets.items():
                task = TaskId(subtopology, partition)
                if task not in standby_tasks:
                    candidates.setdefault(task, []).append((1, -offset, member))
    for task, ranked in candidates.items():
        ranked.sort(key=lambda candidate: candidate[:2])  # Standbys first, then the member with most of the state.
        group.was_standby[task] = [member for _, _, member in ranked]
    return group


def _tasks(tasks: Tasks) -> Iterable[TaskId]:
    return (TaskId(subtopology, partition) for subtopology, indexes in tasks.items() for partition in sorted(indexes))


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology_id


# Active tasks


def _assign_active(group: _Group, tasks: list[TaskId]) -> None:
    # By partition first: an assignment that is by ranges then loses tasks evenly from all its subtopologies.
    left: list[TaskId] = []
    for task in sorted(tasks, key=_by_partition):
        member = group.was_active.get(task)
        if member is not None and group.below_active_share(member):
            group.give(member, task, active=True)
        else:
            left.append(task)
    unassigned: list[TaskId] = []
    for task in left:
        member = _least_loaded(group.was_standby.get(task, []), None)
        if member is not None and group.below_active_share(member):
            group.give(member, task, active=True)
        else:
            unassigned.append(task)
    queue = _Queue(group.processes.values())
    for task in sorted(unassigned):
        process = queue.pop()
        group.count(process.add_to_least_loaded(task, active=True), active=True)
        queue.push(process)


def _least_loaded(members: list[_Member], task: TaskId | None) -> _Member | None:
    """The first of these members, unless a later one has both a less loaded process and less to do itself.

    With a task, members on a process that has it already do not count.
    """
    best: _Member | None = None
    for member in members:
        if task is not None and task in member.process.tasks:
            continue
        if best is None or (
            member.process.load < best.process.load
            and member.process.members[member.member_id] < best.process.members[best.member_id]
        ):
            best = member
    return best


class _Queue:
    """Processes, the least loaded first; equal ones in the order of the group."""

    __slots__ = ("_heap",)

    def __init__(self, processes: Iterable[_Process]) -> None:
        self._heap = [(process.load, process.index, process) for process in processes]
        heapq.heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def pop(self) -> _Process:
        return heapq.heappop(self._heap)[2]

    def push(self, process: _Process) -> None:
        heapq.heappush(self._heap, (process.load, process.index, process))


# Standby tasks


def _assign_standby(group: _Group, tasks: list[TaskId]) -> None:
    left: list[tuple[TaskId, int]] = []
    for task in sorted(tasks, key=_by_partition, reverse=True):
        for given in range(group.standby_replicas):
            member = _previous_for_standby(group, task)
            if member is None:
                left.append((task, group.standby_replicas - given))
                break
            group.give(member, task, active=False)
    queue = _Queue(group.processes.values())
    for task, replicas in sorted(left, reverse=True):
        for given in range(replicas):
            if not _give_standby(group, queue, task):
                logger.warning(
                    "no process is left for %d of %d standby replicas of task %s_%d",
                    replicas - given,
                    group.standby_replicas,
                    *task,
                )
                break


def _previous_for_standby(group: _Group, task: TaskId) -> _Member | None:
    """Return the member that has the state already and may take a standby: the previous active member, else one with a standby."""
    member = group.was_active.get(task)
    if member is not None and task not in member.process.tasks and group.below_total_share(member):
        return member
    member = _least_loaded(group.was_standby.get(task, []), task)
    return member if member is not None and group.below_total_share(member) else None


def _give_standby(group: _Group, queue: _Queue, task: TaskId) -> bool:
    """Give the least loaded process without the task a standby of it."""
    passed: list[_Process] = []
    found = False
    while queue and not found:
        process = queue.pop()
        passed.append(process)
        if task not in process.tasks:
            group.count(process.add_to_least_loaded(task, active=False), active=False)
            found = True
    for process in passed:
        queue.push(process)
    return found
