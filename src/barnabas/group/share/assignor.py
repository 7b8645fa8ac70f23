"""The simple assignor: spreads partitions over the members of a share group, several to a partition if need be.

    members ≤ partitions   every partition has one member
    members > partitions   every partition has ⌈members / partitions⌉ members at most, so that no member is idle

Members that consume the same topics share all their partitions; otherwise each topic is spread over its subscribers.

- Sticky: what a member has it keeps, unless it has more than its part, or the partition more members than it may.
- Members' parts differ by one at most.

Source: Kafka's `SimpleAssignor`; KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from barnabas.group.modern_group import Assignment

NAME = "simple"

Partition = tuple[bytes, int]


def assign(
    subscriptions: Mapping[str, frozenset[bytes]],
    assignable: Mapping[bytes, Iterable[int]],
    assigned: Mapping[str, Assignment],
    *,
    homogeneous: bool,
) -> dict[str, Assignment]:
    """Spread partitions.

    Args:
        subscriptions: the topics of each member, in the order in which they joined.
        assignable: by topic id, the partitions with initialized state.
        assigned: what each member has by the last assignment.
        homogeneous: all members consume the same topics.
    """
    held: dict[str, set[Partition]] = {
        member_id: {
            (topic_id, partition)
            for topic_id, partitions in assigned.get(member_id, {}).items()
            if topic_id in topics
            for partition in partitions
        }
        for member_id, topics in subscriptions.items()
    }
    topic_ids = dict.fromkeys(topic_id for topics in subscriptions.values() for topic_id in sorted(topics))
    targets = {topic_id: [(topic_id, p) for p in sorted(assignable.get(topic_id, ()))] for topic_id in topic_ids}
    if homogeneous:
        everything = [partition for partitions in targets.values() for partition in partitions]
        _spread(list(subscriptions), everything, held)
    else:
        for topic_id, partitions in targets.items():
            subscribers = [member_id for member_id, topics in subscriptions.items() if topic_id in topics]
            of_topic = {
                member_id: {held_one for held_one in held[member_id] if held_one[0] == topic_id}
                for member_id in subscribers
            }
            before = {member_id: set(partitions) for member_id, partitions in of_topic.items()}
            _spread(subscribers, partitions, of_topic)
            for member_id in subscribers:
                held[member_id] = (held[member_id] - before[member_id]) | of_topic[member_id]
    return {member_id: _by_topic(partitions) for member_id, partitions in held.items()}


def _by_topic(partitions: Iterable[Partition]) -> Assignment:
    topics: dict[bytes, set[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(indexes) for topic_id, indexes in topics.items()}


def _spread(members: Sequence[str], partitions: Sequence[Partition], held: dict[str, set[Partition]]) -> None:
    """Change `held` so that partitions are spread evenly over members."""
    sharing = -(-len(members) // len(partitions)) if partitions else 0
    parts = _parts(len(members), sharing * len(partitions))
    wanted = dict(zip(members, parts, strict=True))
    known = set(partitions)
    owners: dict[Partition, list[str]] = {partition: [] for partition in partitions}
    for member_id in members:
        held[member_id] &= known
        for surplus in sorted(held[member_id])[: max(0, len(held[member_id]) - wanted[member_id])]:
            held[member_id].discard(surplus)
        for partition in sorted(held[member_id]):
            owners[partition].append(member_id)
    for partition, sharers in owners.items():
        while len(sharers) > sharing:
            held[sharers.pop(0)].discard(partition)
    unfilled = [member_id for member_id in members if len(held[member_id]) < wanted[member_id]]
    turn = 0
    for partition, sharers in owners.items():
        skipped = 0
        while len(sharers) < sharing and unfilled and skipped < len(unfilled):
            turn %= len(unfilled)
            member_id = unfilled[turn]
            if member_id in sharers:
                skipped += 1
                turn += 1
                continue
            skipped = 0
            sharers.append(member_id)
            held[member_id].add(partition)
            if len(held[member_id]) >= wanted[member_id]:
                del unfilled[turn]
            else:
                turn += 1


def _parts(members: int, total: int) -> list[int]:
    """Cut a total into as many parts, the larger ones spread evenly."""
    borders = [-(-total * index // members) for index in range(members + 1)] if members else [0]
    return [after - before for before, after in pairwise(borders)]
