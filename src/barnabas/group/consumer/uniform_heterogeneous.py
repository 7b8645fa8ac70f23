"""The uniform assignor for members that consume different topics.

    1  each member keeps its partitions of the topics that it still consumes
    2  partitions without an owner go, topic by topic, to the subscriber with the fewest
    3  topic by topic, partitions move from the subscriber with most to the subscriber with fewest, until no topic can be improved

Topics with the most partitions per subscriber are assigned first: they leave the least choice. When topics share some subscribers
and not others, a perfect balance may need moves through several topics, and step 3 may stop just short of it, or after
`MAX_ITERATIONS`.

Invariants: balance before stickiness; subscribers of one topic that could exchange a partition of it differ by at most one.

Source: Kafka class `UniformHeterogeneousAssignmentBuilder`.
"""

from __future__ import annotations

import heapq

from barnabas.group.consumer.assignor import GroupAssignment, GroupSpec

MAX_ITERATIONS = 16
"""Each halves the imbalance, or so: Kafka's limit for the last step."""

_NOBODY, _HELD = -1, -2


def assign_heterogeneous(spec: GroupSpec) -> GroupAssignment:
    """Assign evenly, to each member only partitions of its topics."""
    return _Heterogeneous(spec).assign()


class _Heterogeneous:
    """One assignment under way; members go by their index."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._member_ids = list(spec.members)
        self._loads = [0] * len(self._member_ids)
        self._subscribers: dict[bytes, list[int]] = {}
        for member, subscription in enumerate(spec.members.values()):
            for topic_id in subscription.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(member)
        self._owners = {topic_id: [_NOBODY] * spec.partition_counts[topic_id] for topic_id in self._subscribers}
        for topic_id in self._owners.keys() & spec.held.keys():
            for partition in spec.held[topic_id]:
                self._owners[topic_id][partition] = _HELD
        self._topics = sorted(self._subscribers, key=self._topic_order)

    def _topic_order(self, topic_id: bytes) -> tuple[float, int, bytes]:
        subscribers = len(self._subscribers[topic_id])
        return -self._spec.partition_counts[topic_id] / subscribers, subscribers, topic_id

    def assign(self) -> GroupAssignment:
        self._keep()
        for topic_id in self._topics:
            self._give_out(topic_id)
        self._balance()
        return self._result()

    def _keep(self) -> None:
        for member, (member_id, subscription) in enumerate(self._spec.members.items()):
            for topic_id, partitions in self._spec.assignment_of(member_id).items():
                if topic_id in subscription.topic_ids:
                    for partition in partitions:
                        self._own(topic_id, partition, member)

    def _own(self, topic_id: bytes, partition: int, member: int) -> None:
        owners = self._owners[topic_id]
        if owners[partition] == _HELD:
            return
        if owners[partition] != _NOBODY:
            self._loads[owners[partition]] -= 1
        owners[partition] = member
        self._loads[member] += 1

    def _give_out(self, topic_id: bytes) -> None:
        least = [(self._loads[member], member) for member in self._subscribers[topic_id]]
        heapq.heapify(least)
        for partition, owner in enumerate(self._owners[topic_id]):
            if owner == _NOBODY:
                load, member = least[0]
                self._own(topic_id, partition, member)
                heapq.heapreplace(least, (load + 1, member))

    def _balance(self) -> None:
        topics = [topic_id for topic_id in self._topics if len(self._subscribers[topic_id]) > 1]
        unchanged = 0
        for topic_id in topics * MAX_ITERATIONS:
            unchanged = 0 if self._balance_topic(topic_id) else unchanged + 1
            if unchanged >= len(topics):
                return

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions of a topic from the fullest to the emptiest members; return whether any was moved."""
        subscribers = self._subscribers[topic_id]
        loads = [self._loads[member] for member in subscribers]
        if max(loads) - min(loads) <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        # Entries become stale as loads change; each is checked again when it is taken.
        least = [(self._loads[member], member) for member in subscribers]
        most = [(-self._loads[member], -member) for member in subscribers if member in owned]
        heapq.heapify(least)
        heapq.heapify(most)
        moved = False
        while most:
            giver, taker = -most[0][1], least[0][1]
            if -most[0][0] != self._loads[giver]:
                heapq.heapreplace(most, (-self._loads[giver], -giver))
                continue
            if least[0][0] != self._loads[taker]:
                heapq.heapreplace(least, (self._loads[taker], taker))
                continue
            if self._loads[giver] - self._loads[taker] <= 1:
                break
            if not owned[giver]:
                heapq.heappop(most)
                continue
            self._own(topic_id, owned[giver].pop(), taker)
            moved = True
        return moved

    def _result(self) -> GroupAssignment:
        given: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in self._member_ids}
        for topic_id in self._topics:
            for partition, member in enumerate(self._owners[topic_id]):
                if member not in (_NOBODY, _HELD):
                    given[self._member_ids[member]].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
            for member_id, topics in given.items()
        }
