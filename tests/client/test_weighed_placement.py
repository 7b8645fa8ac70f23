"""Plans by weight, for clusters at random: what holds for each, and what is left that one move could even out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.placement import Placement, Plan, Racks, State, loads
from barnabas.client.weighed_placement import TOLERATED, rebalance_by
from tests.client.test_placement import check, clusters, placed, spread

WEIGHT = st.integers(0, 1000)


def is_even(heavy: int, light: int, mean: float) -> bool:
    return heavy - light <= TOLERATED * mean


@settings(max_examples=30)
@given(clusters(racks=3), st.data(), st.booleans())
def test_no_move_is_left_that_would_even_out_what_brokers_hold(
    cluster: tuple[Placement, list[int], Racks], data: st.DataObject, has_leader_weights: bool
) -> None:
    placement, serving, racks = cluster
    weights = {at: data.draw(WEIGHT) for at in placement}
    plan: Plan = rebalance_by(weights, placement, serving, racks, has_leader_weights=has_leader_weights)
    after = check(placement, plan, serving)
    assert all(spread(plan[at], racks) >= spread(placement[at], racks) for at in plan)
    held, led = loads(after, weights)
    mean = sum(held[each] for each in serving) / len(serving)
    mean_led = sum(led[each] for each in serving) / len(serving)
    state = State(after, racks)
    for source in serving:
        for target in serving:
            apart = held[source] - held[target]
            if apart > 0 and not is_even(held[source], held[target], mean):
                fitting = [at for at in after if source in after[at] and 0 < weights[at] < apart]
                assert not [at for at in fitting if state.may_move(at, source, target)]
            apart = led[source] - led[target]
            if has_leader_weights and apart > 0 and not is_even(led[source], led[target], mean_led):
                led_here = [at for at in after if after[at][0] == source and target in after[at]]
                assert not [at for at in led_here if 0 < weights[at] < apart]


@settings(max_examples=30)
@given(clusters(racks=3), st.data())
def test_the_heaviest_and_the_lightest_broker_come_no_further_apart(
    cluster: tuple[Placement, list[int], Racks], data: st.DataObject
) -> None:
    placement, serving, racks = cluster
    weights = {at: data.draw(WEIGHT) for at in placement}
    after = {**placement, **rebalance_by(weights, placement, serving, racks, has_leader_weights=False)}
    before_held, after_held = (loads(each, weights)[0] for each in (placement, after))
    assert max(after_held[each] for each in serving) <= max(before_held[each] for each in serving)
    assert min(after_held[each] for each in serving) >= min(before_held[each] for each in serving)


@pytest.mark.parametrize(
    ("sizes", "moved"),
    [
        # One large partition balances three small ones: as many replicas do not.
        ((90, 30, 30, 30), {0}),
        # Nearly even already.
        ((100, 1, 1, 1), {0}),
        ((0, 0, 0, 0), set()),
    ],
)
def test_the_partition_that_fits_best_moves(sizes: Sequence[int], moved: set[int]) -> None:
    placement = placed([1], [1], [1], [1])
    weights = {TopicPartition("t", index): size for index, size in enumerate(sizes)}
    plan = rebalance_by(weights, placement, [1, 2], {}, has_leader_weights=True)
    assert {at.partition for at in plan} == moved


def test_what_is_nearly_even_stays() -> None:
    weights = {TopicPartition("t", index): size for index, size in enumerate((103, 2, 100))}
    assert rebalance_by(weights, placed([1], [1], [2]), [1, 2], {}, has_leader_weights=False) == {}


def test_leaders_are_evened_out_by_weight_without_a_copy() -> None:
    placement = placed([1, 2], [1, 2], [1, 2])
    weights = {TopicPartition("t", index): size for index, size in enumerate((60, 30, 30))}
    plan = rebalance_by(weights, placement, [1, 2], {}, has_leader_weights=True)
    assert plan == {TopicPartition("t", 0): [2, 1]}
