"""The uniform assignor: as many partitions to each member as to any other, moving as few as possible.

When all members consume the same topics, each has a quota: the number of partitions divided by the number of members, and one more for as
many members as the division leaves over. A member keeps its partitions up to its quota; the rest, and partitions without an owner, go to
members below theirs. Otherwise `uniform_heterogeneous` balances topic by topic.

Invariant: balance before stickiness; no two members' numbers differ by more than one.

Source: Kafka classes `UniformAssignor`, `UniformHomogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from itertools import islice

from barnabas.group.consumer.assignor import GroupAssignment, GroupSpec
from barnabas.group.consumer.uniform_heterogeneous import assign_heterogeneous
from barnabas.group.modern_group import Assignment


def assign_uniform(spec: GroupSpec) -> GroupAssignment:
    """Assign evenly."""
    if not spec.members:
        return {}
    if not spec.homogeneous:
        return assign_heterogeneous(spec)
    topic_ids = next(iter(spec.members.values())).topic_ids
    return _Homogeneous(spec, topic_ids).assign() if topic_ids else {}


class _Homogeneous:
    """One assignment under way."""

    def __init__(self, spec: GroupSpec, topic_ids: frozenset[bytes]) -> None:
        self._spec = spec
        self._topic_ids = topic_ids
        self._unassigned = [
            (topic_id, partition)
            for topic_id in sorted(topic_ids)
            for partition in range(spec.partition_counts[topic_id])
            if not spec.is_assigned(topic_id, partition) and not spec.is_held(topic_id, partition)
        ]
        total = sum(spec.partition_counts[topic_id] - len(spec.held.get(topic_id, ())) for topic_id in topic_ids)
        self._quota, self._extras_left = divmod(total, len(spec.members))

    def assign(self) -> GroupAssignment:
        assignment: GroupAssignment = {}
        unfilled: list[tuple[str, int]] = []
        for position, member_id in enumerate(self._spec.members):
            kept, room = self._keep(member_id, members_left=len(self._spec.members) - position)
            assignment[member_id] = kept
            if room:
                unfilled.append((member_id, room))
        remaining = iter(self._unassigned)
        for member_id, room in unfilled:
            given = {topic_id: set(partitions) for topic_id, partitions in assignment[member_id].items()}
            for topic_id, partition in islice(remaining, room):
                given.setdefault(topic_id, set()).add(partition)
            assignment[member_id] = {topic_id: frozenset(partitions) for topic_id, partitions in given.items()}
        assert next(remaining, None) is None, "partitions are left over"
        return assignment

    def _keep(self, member_id: str, members_left: int) -> tuple[Assignment, int]:
        """The partitions that a member keeps, and how many more it may get."""
        may_have_extra = self._extras_left > 0
        quota = self._quota + may_have_extra
        kept: dict[bytes, frozenset[int]] = {}
        for topic_id, partitions in self._spec.assignment_of(member_id).items():
            if topic_id not in self._topic_ids:
                continue
            if topic_id in self._spec.held:
                partitions -= self._spec.held[topic_id]
                if not partitions:
                    continue
            in_order = sorted(partitions)
            if quota:
                kept[topic_id] = partitions if len(partitions) <= quota else frozenset(in_order[:quota])
            self._unassigned += [(topic_id, partition) for partition in in_order[quota:]]
            quota -= min(quota, len(partitions))
        if quota and may_have_extra and members_left > self._extras_left:
            # Another member may need the extra one more: this one gives it up, unless it is among the last that can take it.
            quota -= 1
            may_have_extra = False
        self._extras_left -= may_have_extra
        return kept, quota
