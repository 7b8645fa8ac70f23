"""A plan that evens out the weights of replicas: their bytes on disk, or the bytes that are written to them.

It takes a replica from the broker that has most and gives it to the broker that has least. Of the replicas it takes the one whose weight
is closest to the surplus of the first or the deficit of the second, whichever is smaller. If no replica fits, it tries the next two
brokers. It ends when no replica fits anywhere, or when no two brokers are further apart than `TOLERATED` of the mean: the last few
percent would copy much for little. The promises of `placement` hold for these plans too.

A large partition is not divided, so it may keep a broker above the others. Each step makes the sum of the squares smaller, so it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.placement import Placement, Plan, Racks, State, Weights, even_out, loads

__all__ = ["TOLERATED", "rebalance_by"]

TOLERATED = 0.1


def rebalance_by(
    weights: Weights, placement: Placement, serving: Collection[int], racks: Racks, *, has_leader_weights: bool
) -> Plan:
    """Return the plan that evens out weights over the brokers that serve, and then the preferred leaders.

    Args:
        has_leader_weights: leaders are evened out by weight; otherwise they are counted.
    """
    state = State(placement, racks)
    brokers = sorted(serving)
    held, _ = loads(placement, weights)

    def held_by(source: int) -> Iterable[TopicPartition]:
        return (at for of_topic in state.held.get(source, {}).values() for at in of_topic)

    _even_out_weights(brokers, held, weights, held_by, state.may_move, state.move)
    if has_leader_weights:
        _, led = loads(state.replicas, weights)
        _even_out_weights(
            brokers,
            led,
            weights,
            lambda source: state.led.get(source, {}),
            lambda at, source, target: target in state.replicas[at],
            state.swap,
        )
    else:
        even_out(brokers, state.leaders_of, state.leadership_to_move, state.swap)
    return state.plan()


def _even_out_weights(
    brokers: list[int],
    load: Counter[int],
    weights: Weights,
    of: Callable[[int], Iterable[TopicPartition]],
    may_move: Callable[[TopicPartition, int, int], bool],
    move: Callable[[TopicPartition, int, int], None],
) -> None:
    """Move partitions from heavy brokers to light ones; `load` changes with each.

    Args:
        of: returns the partitions that a broker could give away.
    """
    mean = sum(load[each] for each in brokers) / max(len(brokers), 1)

    def next_move() -> tuple[TopicPartition, int, int] | None:
        by_load = sorted(brokers, key=lambda each: (load[each], each))
        for source in reversed(by_load):
            for target in by_load:
                apart = load[source] - load[target]
                if apart <= TOLERATED * mean:
                    break
                fitting = [at for at in of(source) if 0 < weights.get(at, 0) < apart and may_move(at, source, target)]
                if fitting:
                    wanted = min(load[source] - mean, mean - load[target])
                    # Racks may leave two brokers on the same side of the mean.
                    wanted = wanted if wanted > 0 else apart / 2
                    return min(fitting, key=lambda at: (abs(weights[at] - wanted), at)), source, target
        return None

    while (found := next_move()) is not None:
        at, source, target = found
        move(at, source, target)
        load[source] -= weights[at]
        load[target] += weights[at]
