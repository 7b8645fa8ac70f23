"""One member's next step from the tasks it has to the tasks it should have.

A task moves in two heartbeats: its member is asked to give it up, reports that, and only then another member gets it.

    STABLE ──target changed──> tasks to give up? ──yes──> UNREVOKED_TASKS, the epoch stays, until the member reports that
                                     │no
                                     └──> tasks still held elsewhere? ──yes──> UNRELEASED_TASKS at the target epoch, asked again each time
                                                     └no──> STABLE at the target epoch

Roles may change on the spot, within one member: an active task becomes a standby, a standby a warm-up or the reverse; a standby that is to
become active stays a standby until the active task is free.

Invariants:
- a task is active on at most one member;
- a process has at most one copy of a task.

Sources: KIP-1071, KIP-848 (the same steps for partitions); Kafka class `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.group.streams.member import MemberState, StreamsGroupMember
from barnabas.group.streams.tasks import Tasks, TasksTuple, TasksTupleWithEpochs
from barnabas.protocol.errors import ErrorCode, KafkaError

TaskSets = dict[str, set[int]]


@dataclass(frozen=True, slots=True)
class TaskOwners:
    """Which processes have a task now, given its subtopology and partition: at most one has it active."""

    active: Callable[[str, int], str | None]
    standby: Callable[[str, int], frozenset[str]]
    warmup: Callable[[str, int], frozenset[str]]


def reconcile(
    member: StreamsGroupMember,
    assignment_epoch: int,
    target: TasksTuple,
    owners: TaskOwners,
    owned: TasksTuple | None,
) -> StreamsGroupMember:
    """Return the member after its next step; the same member if it must wait.

    Args:
        assignment_epoch: of the target assignment.
        owned: the tasks that the member reports; None if it reports none.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH if the state is unknown and the member still has tasks.
    """
    if member.state is MemberState.STABLE and member.member_epoch == assignment_epoch:
        return member
    epoch = member.member_epoch
    if member.state is MemberState.UNREVOKED_TASKS:
        if _still_has(owned, member.pending_revocation):
            return member
        epoch += 1
    elif member.state is MemberState.UNKNOWN:
        if owned is None or not owned.is_empty:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
            )
        epoch = assignment_epoch
    return _Step(member, assignment_epoch, target, owners, owned).next(epoch)


def _still_has(owned: TasksTuple | None, tasks: TasksTupleWithEpochs) -> bool:
    return owned is None or owned.contains_any(tasks)


@dataclass(slots=True)
class _Difference:
    """One role's tasks: kept, to be given up, to be given."""

    kept: TaskSets
    revoked: TaskSets
    granted: TaskSets
    unreleased: bool = False

    @classmethod
    def between(
        cls, current: Mapping[str, object], target: Tasks, is_unreleased: Callable[[str, int], bool]
    ) -> _Difference:
        found = cls({}, {}, {})
        for name in {**target, **current}:
            has, wants = _indexes(current.get(name)), target.get(name, frozenset())
            missing = wants - has
            free = {index for index in missing if not is_unreleased(name, index)}
            found.unreleased |= len(free) < len(missing)
            for sets, indexes in ((found.kept, has & wants), (found.revoked, has - wants), (found.granted, free)):
                if indexes:
                    sets[name] = set(indexes)
        return found


def _indexes(partitions: object) -> frozenset[int]:
    return frozenset(partitions) if partitions else frozenset()  # type: ignore[call-overload]


class _Step:
    def __init__(
        self,
        member: StreamsGroupMember,
        assignment_epoch: int,
        target: TasksTuple,
        owners: TaskOwners,
        owned: TasksTuple | None,
    ) -> None:
        self._member = member
        self._process = member.process_id
        self._has = member.assigned
        self._epoch = assignment_epoch
        self._target = target
        self._owners = owners
        self._owned = owned

    def next(self, member_epoch: int) -> StreamsGroupMember:
        has, target = self._has, self._target
        active = _Difference.between(has.active, target.active, self._active_is_unreleased)
        standby = _Difference.between(has.standby, target.standby, self._standby_is_unreleased)
        warmup = _Difference.between(has.warmup, target.warmup, self._warmup_is_unreleased)
        _take_over(has.active, None, standby)
        _take_over(has.standby, standby, warmup)
        _take_over(has.warmup, warmup, standby)
        self._drop_promoted(has.standby, standby)
        self._drop_promoted(has.warmup, warmup)
        revoked = TasksTupleWithEpochs(
            {name: {i: has.active[name][i] for i in sorted(indexes)} for name, indexes in active.revoked.items()},
            _frozen(standby.revoked),
            _frozen(warmup.revoked),
        )
        must_revoke = not revoked.is_empty and _still_has(self._owned, revoked)
        self._keep_promoted(has.standby, standby, {} if must_revoke else active.granted)
        self._keep_promoted(has.warmup, warmup, {} if must_revoke else active.granted)
        kept = TasksTupleWithEpochs(
            {name: {i: has.active[name][i] for i in sorted(indexes)} for name, indexes in active.kept.items()},
            _frozen(standby.kept),
            _frozen(warmup.kept),
        )
        if must_revoke:
            return self._member.moved_to(member_epoch, MemberState.UNREVOKED_TASKS, kept, revoked)
        granted = TasksTupleWithEpochs(
            {name: dict.fromkeys(sorted(indexes), self._epoch) for name, indexes in active.granted.items()},
            _frozen(standby.granted),
            _frozen(warmup.granted),
        )
        unreleased = active.unreleased or standby.unreleased or warmup.unreleased
        state = MemberState.UNRELEASED_TASKS if unreleased else MemberState.STABLE
        return self._member.moved_to(self._epoch, state, kept if granted.is_empty else kept.merge(granted))

    def _active_is_unreleased(self, name: str, index: int) -> bool:
        return (
            self._owners.active(name, index) is not None
            or self._held_beside(self._owners.standby, self._has.standby, name, index)
            or self._held_beside(self._owners.warmup, self._has.warmup, name, index)
        )

    def _standby_is_unreleased(self, name: str, index: int) -> bool:
        active_beside = self._owners.active(name, index) == self._process and index not in self._has.active.get(
            name, ()
        )
        return (
            active_beside
            or self._process in self._owners.standby(name, index)
            or self._held_beside(self._owners.warmup, self._has.warmup, name, index)
        )

    def _warmup_is_unreleased(self, name: str, index: int) -> bool:
        return (
            self._owners.active(name, index) == self._process
            or self._held_beside(self._owners.standby, self._has.standby, name, index)
            or self._process in self._owners.warmup(name, index)
        )

    def _held_beside(self, processes: Callable[[str, int], frozenset[str]], own: Tasks, name: str, index: int) -> bool:
        """Another member of this process has the task."""
        return self._process in processes(name, index) and index not in own.get(name, frozenset())

    def _drop_promoted(self, own: Tasks, difference: _Difference) -> None:
        """A copy that is to become active is not given up."""
        for name, indexes in own.items():
            for index in indexes & self._target.active.get(name, frozenset()):
                _discard(difference.revoked, name, index)

    def _keep_promoted(self, own: Tasks, difference: _Difference, granted: TaskSets) -> None:
        """It stays a copy until the active task is granted."""
        for name, indexes in own.items():
            waiting = (indexes & self._target.active.get(name, frozenset())) - granted.get(name, set())
            if waiting:
                difference.kept.setdefault(name, set()).update(waiting)


def _take_over(own: Mapping[str, object], outgoing: _Difference | None, incoming: _Difference) -> None:
    """Change the role of tasks within the member: a task that it has in one role and is granted in another stays."""
    for name in own:
        for index in _indexes(own[name]) & incoming.granted.get(name, set()):
            _discard(incoming.granted, name, index)
            incoming.kept.setdefault(name, set()).add(index)
            if outgoing is not None:
                _discard(outgoing.revoked, name, index)


def _discard(tasks: TaskSets, name: str, index: int) -> None:
    indexes = tasks.get(name)
    if indexes is not None:
        indexes.discard(index)
        if not indexes:
            del tasks[name]


def _frozen(tasks: TaskSets) -> dict[str, frozenset[int]]:
    return {name: frozenset(indexes) for name, indexes in tasks.items()}
