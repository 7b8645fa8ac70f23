"""The range assignor: neighbouring partitions of each topic to each member, the same ones of every topic.

For each topic, its partitions are cut into as many ranges as it has subscribers, the first ones longer by one where the division leaves a
rest. Members take them in order: static ones by instance id, then the others by member id. So topics with the same number of partitions
and the same subscribers are co-partitioned, and a static member keeps its range when it returns.

Held partitions count in the ranges, and are then left out: so ranges do not move when a partition is no longer held.

Source: Kafka class `RangeAssignor`.
"""

from __future__ import annotations

from collections import Counter

from barnabas.group.consumer.assignor import GroupAssignment, GroupSpec


def assign_range(spec: GroupSpec) -> GroupAssignment:
    """Assign by ranges."""
    subscribers: Counter[bytes] = Counter()
    for subscription in spec.members.values():
        subscribers.update(subscription.topic_ids)
    next_start: Counter[bytes] = Counter()
    longer_left = {topic_id: spec.partition_counts[topic_id] % count for topic_id, count in subscribers.items()}
    assignment: GroupAssignment = {}
    for member_id in _in_order(spec):
        given = {}
        for topic_id in sorted(spec.members[member_id].topic_ids):
            quota = spec.partition_counts[topic_id] // subscribers[topic_id]
            if longer_left[topic_id] > 0:
                longer_left[topic_id] -= 1
                quota += 1
            start = next_start[topic_id]
            next_start[topic_id] = end = start + quota
            in_range = frozenset(range(start, end)) - spec.held.get(topic_id, frozenset())
            if in_range:
                given[topic_id] = in_range
        assignment[member_id] = given
    return assignment


def _in_order(spec: GroupSpec) -> list[str]:
    def key(member_id: str) -> tuple[bool, str]:
        instance_id = spec.members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    return sorted(spec.members, key=key)
