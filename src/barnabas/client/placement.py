"""Plans of which broker has which replica: to empty a broker, or to spread the replicas evenly.

A plan names each partition that changes with its new replicas; the first is the preferred leader. Whatever the plan:

- A partition keeps its number of replicas, and no broker has two of them.
- Only brokers that serve get replicas. A broker that does not serve keeps its replicas, unless the plan is to empty it.
- A partition's replicas are in no fewer racks than before. Only `drain` may have no other choice.
- The same cluster has the same plan.

`rebalance` first evens out the replicas, which copies records, and then the preferred leaders by the order of the replicas, which
copies nothing. It shifts one replica, or one leadership, along the shortest chain of brokers from one with many to one with at least two
fewer, until no such chain is left. Without racks every broker then has as many replicas as the others, or one more, and no plan moves
fewer. Racks, and partitions with few replicas, may keep the loads further apart.

Replicas are counted here; `weighed_placement` evens out their bytes or their load. `drain` and `loads` take such weights too.

Sources: org.apache.kafka.admin.AdminUtils (racks); Harvey et al., Semi-matchings for bipartite graphs and load balancing (2006).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from barnabas.client.cluster_metadata import TopicPartition

Placement = Mapping[TopicPartition, Sequence[int]]
"""The replicas of each partition, the preferred leader first."""
Plan = dict[TopicPartition, list[int]]
"""The new replicas of the partitions that change."""
Racks = Mapping[int, str | None]
"""The rack of each known broker."""
Weights = Mapping[TopicPartition, int]
"""The weight of each replica of a partition; a partition that is absent weighs nothing."""


class TooFewBrokers(Exception):
    """A partition cannot keep its number of replicas; `partition` and `replicas` say which, and how many."""

    def __init__(self, partition: TopicPartition, replicas: int) -> None:
        super().__init__(f"{partition} has {replicas} replicas")
        self.partition = partition
        self.replicas = replicas


def loads(placement: Placement, weights: Weights | None = None) -> tuple[Counter[int], Counter[int]]:
    """Return how many replicas each broker has, and of how many partitions it is the preferred leader; or the sums of their weights."""
    held: Counter[int] = Counter()
    led: Counter[int] = Counter()
    for at, replicas in placement.items():
        weight = _weight(at, weights)
        held.update(dict.fromkeys(replicas, weight))
        led.update(dict.fromkeys(replicas[:1], weight))
    return held, led


def _weight(at: TopicPartition, weights: Weights | None) -> int:
    return 1 if weights is None else weights.get(at, 0)


def drain(
    placement: Placement, drained: int, serving: Collection[int], racks: Racks, weights: Weights | None = None
) -> Plan:
    """Return the plan that leaves a broker without replicas.

    Each of its replicas goes to a broker in a rack where the partition has none, among these to the one with the fewest
    replicas. The leadership goes to the replica that is the preferred leader of the fewest partitions. With weights the heaviest
    replica goes first, to the broker whose replicas weigh least, and the leadership to the broker whose led partitions weigh least.

    Args:
        serving: the brokers that may get replicas; `drained` gets none.
        weights: None to count replicas.

    Raises:
        TooFewBrokers: every other broker that serves has a replica of the partition.
    """
    targets = sorted(serving)
    held, led = loads(placement, weights)
    of_topic = Counter((at.topic, broker) for at, replicas in placement.items() for broker in replicas)
    plan: Plan = {}
    for at, replicas in sorted(placement.items(), key=lambda each: (-_weight(each[0], weights), each[0])):
        if drained not in replicas:
            continue
        weight = _weight(at, weights)
        others = [each for each in replicas if each != drained]
        taken = {racks.get(each) for each in others}
        free = [each for each in targets if each not in replicas]
        if not free:
            raise TooFewBrokers(at, len(replicas))
        chosen = min(free, key=lambda each: (racks.get(each) in taken, held[each], of_topic[at.topic, each], each))
        after = [chosen if each == drained else each for each in replicas]
        if replicas[0] == drained:
            leader = min((each for each in after if each in targets), key=lambda each: (led[each], each == chosen))
            after = [leader, *(each for each in after if each != leader)]
            led[leader] += weight
        held[chosen] += weight
        of_topic[at.topic, chosen] += 1
        plan[at] = after
    return plan


def rebalance(placement: Placement, serving: Collection[int], racks: Racks) -> Plan:
    """Return the plan that evens out replicas and preferred leaders over the brokers that serve."""
    state = State(placement, racks)
    brokers = sorted(serving)
    even_out(brokers, state.replicas_of, state.replica_to_move, state.move)
    even_out(brokers, state.leaders_of, state.leadership_to_move, state.swap)
    return state.plan()


class State:
    """A placement while it changes."""

    def __init__(self, placement: Placement, racks: Racks) -> None:
        self.racks = racks
        self.before = placement
        self.replicas = {at: list(replicas) for at, replicas in sorted(placement.items())}
        self.held: dict[int, dict[str, dict[TopicPartition, None]]] = {}
        self.led: dict[int, dict[TopicPartition, None]] = {}
        self._count: Counter[int] = Counter()
        for at in self.replicas:
            self._add(at)

    def __repr__(self) -> str:
        return f"<State {len(self.replicas)} partitions>"

    def plan(self) -> Plan:
        return {at: after for at, after in self.replicas.items() if after != list(self.before[at])}

    def replicas_of(self, broker: int) -> int:
        return self._count[broker]

    def leaders_of(self, broker: int) -> int:
        return len(self.led.get(broker, ()))

    def replica_to_move(self, source: int, target: int) -> TopicPartition | None:
        """Return a partition whose replica the plan may move from one broker to the other, or None.

        It is one of the topic of which the source has most, compared with the target; and one that evens out the leaders too.
        """
        here, there = self.held.get(source, {}), self.held.get(target, {})
        leads_more = self.leaders_of(source) > self.leaders_of(target)
        for topic in sorted(here, key=lambda name: (len(there.get(name, ())) - len(here[name]), name)):
            found = None
            for at in here[topic]:
                if self.may_move(at, source, target):
                    found = at
                    if (self.replicas[at][0] == source) == leads_more:
                        break
            if found is not None:
                return found
        return None

    def may_move(self, at: TopicPartition, source: int, target: int) -> bool:
        """Return whether the target has no replica of the partition, and its rack loses nothing."""
        before = self.replicas[at]
        if target in before:
            return False
        rack = self.racks.get
        others = {rack(each) for each in before if each != source}
        return rack(target) not in others or rack(source) in others

    def leadership_to_move(self, source: int, target: int) -> TopicPartition | None:
        """Return a partition that the source leads and the target may lead, or None."""
        return next((at for at in self.led.get(source, ()) if target in self.replicas[at]), None)

    def move(self, at: TopicPartition, source: int, target: int) -> None:
        """Give the target the source's replica, and its place."""
        self._put(at, [target if each == source else each for each in self.replicas[at]])

    def swap(self, at: TopicPartition, source: int, target: int) -> None:
        """Exchange the places of two replicas."""
        places = {source: target, target: source}
        self._put(at, [places.get(each, each) for each in self.replicas[at]])

    def _put(self, at: TopicPartition, replicas: list[int]) -> None:
        before = self.replicas[at]
        del self.led[before[0]][at]
        for each in before:
            self._count[each] -= 1
            del self.held[each][at.topic][at]
        self.replicas[at] = replicas
        self._add(at)

    def _add(self, at: TopicPartition) -> None:
        replicas = self.replicas[at]
        self.led.setdefault(replicas[0], {})[at] = None
        for each in replicas:
            self._count[each] += 1
            self.held.setdefault(each, {}).setdefault(at.topic, {})[at] = None


def even_out(
    brokers: list[int],
    load: Callable[[int], int],
    candidate: Callable[[int, int], TopicPartition | None],
    shift: Callable[[TopicPartition, int, int], None],
) -> None:
    """Shift along chains until none leads from a broker to one with at least two fewer."""
    while any(_shifted(chain, candidate, shift) for chain in _chains(brokers, load, candidate)):
        pass


def _shifted(
    chain: list[int],
    candidate: Callable[[int, int], TopicPartition | None],
    shift: Callable[[TopicPartition, int, int], None],
) -> bool:
    """Shift one from each broker of a chain to the next, the last first; return False if that went wrong, and nothing is changed.

    One shift may take away a replica that the next one needs.
    """
    done: list[tuple[TopicPartition, int, int]] = []
    for source, target in reversed(list(pairwise(chain))):
        at = candidate(source, target)
        if at is None:
            for back, gave, got in reversed(done):
                shift(back, got, gave)
            return False
        shift(at, source, target)
        done.append((at, source, target))
    return True


def _chains(
    brokers: list[int], load: Callable[[int], int], candidate: Callable[[int, int], TopicPartition | None]
) -> Iterator[list[int]]:
    """Yield for each broker, from the one with most, the shortest chain to one with at least two fewer."""
    by_load = sorted(brokers, key=lambda each: (load(each), each))
    for first in reversed(by_load):
        if load(first) < load(by_load[0]) + 2:
            return
        chains = {first: [first]}
        queue = [first]
        for source in queue:
            # The lightest first.
            for target in by_load:
                if target not in chains and candidate(source, target) is not None:
                    chains[target] = [*chains[source], target]
                    queue.append(target)
                    if load(target) <= load(first) - 2:
                        break
            else:
                continue
            yield chains[queue[-1]]
            break
