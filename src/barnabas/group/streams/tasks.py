"""The tasks of a streams group's members.

A Kafka Streams topology falls into subtopologies; subtopology `0` over input topics with three partitions has the tasks `0_0`, `0_1`
and `0_2`. A member runs a task as *active* (it processes and commits), *standby* (it keeps a copy of the state) or *warm-up* (a standby on
its way to become active). Two values hold tasks:

    TasksTuple            active, standby and warm-up tasks          what the assignor computes, what a client reports
    TasksTupleWithEpochs  active tasks carry an assignment epoch     what a member has; an older epoch's commit is refused

Invariants:
- both are values: their maps do not change;
- a subtopology without partitions is absent, so that equal tasks are equal values.

Sources: KIP-1071; Kafka classes `TasksTuple`, `TasksTupleWithEpochs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.protocol import messages

    TaskIds = (
        messages.StreamsGroupHeartbeatRequest.TaskIds
        | messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds
        | messages.StreamsGroupTargetAssignmentMemberValue.TaskIds
    )

Tasks = Mapping[str, frozenset[int]]
"""Partitions by subtopology."""
TasksWithEpochs = Mapping[str, Mapping[int, int]]
"""Assignment epoch by partition, by subtopology."""

NO_TASKS: Tasks = MappingProxyType({})
NO_TASKS_WITH_EPOCHS: TasksWithEpochs = MappingProxyType({})


def tasks_of(entries: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    """Tasks as a message lists them."""
    return {entry.subtopology_id: frozenset(entry.partitions) for entry in entries if entry.partitions}


def without_epochs(tasks: TasksWithEpochs) -> dict[str, frozenset[int]]:
    """The same tasks, their epochs forgotten."""
    return {subtopology: frozenset(partitions) for subtopology, partitions in tasks.items()}


def merged(first: Tasks, second: Tasks) -> dict[str, frozenset[int]]:
    """The tasks of both."""
    result = dict(first)
    for subtopology, partitions in second.items():
        result[subtopology] = result.get(subtopology, frozenset()) | partitions
    return result


def _share_a_task(first: Tasks, second: Tasks) -> bool:
    return any(not partitions.isdisjoint(second.get(name, ())) for name, partitions in first.items())


def task_names(tasks: Tasks) -> str:
    """For log lines: `[0_0, 0_1]`."""
    return "[" + ", ".join(f"{name}_{index}" for name in sorted(tasks) for index in sorted(tasks[name])) + "]"


@dataclass(frozen=True, slots=True)
class TasksTuple:
    """Active, standby and warm-up tasks."""

    active: Tasks = field(default_factory=lambda: NO_TASKS)
    standby: Tasks = field(default_factory=lambda: NO_TASKS)
    warmup: Tasks = field(default_factory=lambda: NO_TASKS)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def contains_any(self, other: TasksTupleWithEpochs) -> bool:
        """True when some task is in both, in the same role."""
        return (
            _share_a_task(self.active, without_epochs(other.active))
            or _share_a_task(self.standby, other.standby)
            or _share_a_task(self.warmup, other.warmup)
        )

    def same_tasks(self, other: TasksTupleWithEpochs) -> bool:
        """True when both have the same tasks in the same roles."""
        return self == TasksTuple(without_epochs(other.active), other.standby, other.warmup)

    def __str__(self) -> str:
        return f"(active={task_names(self.active)}, standby={task_names(self.standby)})"


@dataclass(frozen=True, slots=True)
class TasksTupleWithEpochs:
    """Active tasks with the epoch in which the member was given each, standby and warm-up tasks."""

    active: TasksWithEpochs = field(default_factory=lambda: NO_TASKS_WITH_EPOCHS)
    standby: Tasks = field(default_factory=lambda: NO_TASKS)
    warmup: Tasks = field(default_factory=lambda: NO_TASKS)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def merge(self, other: TasksTupleWithEpochs) -> TasksTupleWithEpochs:
        """The tasks of both; where both have an active task, the other's epoch counts."""
        active = {name: dict(partitions) for name, partitions in self.active.items()}
        for name, partitions in other.active.items():
            active.setdefault(name, {}).update(partitions)
        return TasksTupleWithEpochs(active, merged(self.standby, other.standby), merged(self.warmup, other.warmup))

    def with_active_epochs_of(self, epoch: int) -> TasksTupleWithEpochs:
        """The same tasks, all given in that epoch."""
        active = {name: dict.fromkeys(partitions, epoch) for name, partitions in self.active.items()}
        return TasksTupleWithEpochs(active, self.standby, self.warmup)

    def __str__(self) -> str:
        return f"(active={task_names(without_epochs(self.active))}, standby={task_names(self.standby)})"


EMPTY_TASKS = TasksTuple()
EMPTY_TASKS_WITH_EPOCHS = TasksTupleWithEpochs()
