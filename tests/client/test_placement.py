"""Plans for clusters at random: what holds for each, and that none moves more than it must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.placement import Placement, Plan, Racks, State, TooFewBrokers, _shifted, drain, loads, rebalance

A, B = "a", "b"


def placed(*replicas: Sequence[int], topic: str = "t") -> dict[TopicPartition, Sequence[int]]:
    return {TopicPartition(topic, index): each for index, each in enumerate(replicas)}


@st.composite
def clusters(draw: st.DrawFn, racks: int = 0) -> tuple[Placement, list[int], Racks]:
    """Draw partitions of up to three topics, the brokers that serve, and the racks of all."""
    brokers = list(range(1, draw(st.integers(2, 7)) + 1))
    down = draw(st.lists(st.sampled_from(brokers), max_size=2, unique=True))
    serving = [each for each in brokers if each not in down] or brokers[:1]
    rack_of = {each: f"r{draw(st.integers(1, racks))}" if racks else None for each in brokers}
    # Brokers that came late hold nothing.
    old = draw(st.lists(st.sampled_from(brokers), min_size=1, unique=True))
    replicas = st.lists(st.sampled_from(old), min_size=1, max_size=3, unique=True)
    topics = draw(st.lists(st.lists(replicas, max_size=12), max_size=3))
    placement = {
        TopicPartition(f"t{number}", index): each
        for number, partitions in enumerate(topics)
        for index, each in enumerate(partitions)
    }
    return placement, serving, rack_of


def spread(replicas: Sequence[int], racks: Racks) -> int:
    return len({racks[each] for each in replicas})


def check(placement: Placement, plan: Plan, serving: Sequence[int]) -> Placement:
    """Check what holds for every plan; return what it leads to."""
    for at, after in plan.items():
        before = placement[at]
        assert after != list(before)
        assert len(after) == len(set(after)) == len(before)
        assert set(after) - set(before) <= set(serving)
    return {**placement, **plan}


@given(clusters(racks=3), st.integers(1, 7))
def test_a_drained_broker_is_empty_and_no_other_replica_moves(
    cluster: tuple[Placement, list[int], Racks], drained: int
) -> None:
    placement, serving, racks = cluster
    others = [each for each in serving if each != drained]
    held = {at: replicas for at, replicas in placement.items() if drained in replicas}
    if any(set(others) <= set(replicas) for replicas in held.values()):
        with pytest.raises(TooFewBrokers) as caught:
            drain(placement, drained, serving, racks)
        assert set(others) <= set(held[caught.value.partition])
        return
    plan = drain(placement, drained, serving, racks)
    after = check(placement, plan, others)
    assert loads(after)[0][drained] == 0
    assert plan.keys() == held.keys()
    for at, replicas in plan.items():
        kept = [each for each in placement[at] if each != drained]
        assert len(set(replicas) - set(kept)) == 1
        possible = max(spread([*kept, each], racks) for each in others if each not in kept)
        assert spread(replicas, racks) >= min(spread(placement[at], racks), possible)


@given(clusters())
def test_without_racks_a_rebalance_leaves_replicas_within_one_and_moves_no_more_than_it_must(
    cluster: tuple[Placement, list[int], Racks],
) -> None:
    placement, serving, racks = cluster
    before, _ = loads(placement)
    plan = rebalance(placement, serving, racks)
    after, _ = loads(check(placement, plan, serving))
    counts = [after[each] for each in serving]
    assert max(counts) - min(counts) <= 1
    low, more = divmod(sum(counts), len(serving))
    excess = sum(max(0, before[each] - low - bool(more)) for each in serving)
    deficit = sum(max(0, low - before[each]) for each in serving)
    moved = sum(len(set(replicas) - set(placement[at])) for at, replicas in plan.items())
    assert moved == max(excess, deficit)
    assert all(before[each] == after[each] for each in before if each not in serving)


@given(clusters(racks=3))
def test_a_rebalance_keeps_racks_apart_and_leaves_nothing_that_one_move_could_even_out(
    cluster: tuple[Placement, list[int], Racks],
) -> None:
    placement, serving, racks = cluster
    plan = rebalance(placement, serving, racks)
    after = check(placement, plan, serving)
    assert all(spread(plan[at], racks) >= spread(placement[at], racks) for at in plan)
    assert rebalance(after, serving, racks) == {}
    state = State(after, racks)
    for source in serving:
        for target in serving:
            if state.replicas_of(source) >= state.replicas_of(target) + 2:
                assert state.replica_to_move(source, target) is None
            if state.leaders_of(source) >= state.leaders_of(target) + 2:
                assert state.leadership_to_move(source, target) is None


@given(clusters())
def test_leaders_are_within_one_where_every_broker_has_every_partition(
    cluster: tuple[Placement, list[int], Racks],
) -> None:
    placement, serving, racks = cluster
    everywhere = dict.fromkeys(placement, serving)
    after = check(everywhere, rebalance(everywhere, serving, racks), serving)
    _, led = loads(after)
    counts = [led[each] for each in serving]
    assert max(counts) - min(counts) <= 1
    assert all(set(after[at]) == set(serving) for at in after)


def test_a_new_broker_gets_its_share_of_replicas_and_leaders() -> None:
    placement = placed(*([1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]) * 4)
    held, led = loads({**placement, **rebalance(placement, [1, 2, 3, 4], dict.fromkeys(range(1, 5)))})
    assert held == dict.fromkeys((1, 2, 3, 4), 12)
    assert led == dict.fromkeys((1, 2, 3, 4), 4)


def test_leaderships_go_along_a_chain_where_two_brokers_share_no_partition() -> None:
    # 1 leads three, 3 leads one, and they share none: 1 gives one to 2, and 2 gives one to 3.
    placement = placed([1, 2], [1, 2], [1, 2], [2, 3], [2, 3], [3, 2])
    plan = rebalance(placement, [1, 2, 3], dict.fromkeys((1, 2, 3)))
    assert loads({**placement, **plan})[1] == Counter({1: 2, 2: 2, 3: 2})


def test_replicas_go_along_a_chain_of_racks() -> None:
    # Rack A: 1 and 2, rack B: 3 and 4. Broker 1 has four and broker 4 none; each partition stays in two racks.
    racks = {1: A, 2: A, 3: B, 4: B}
    placement = placed([1, 3], [1, 3], [1, 3], [1, 3])
    plan = rebalance(placement, [1, 2, 3, 4], racks)
    assert loads({**placement, **plan})[0] == dict.fromkeys(racks, 2)
    assert all(spread(replicas, racks) == 2 for replicas in plan.values())


def test_a_topic_is_spread_by_the_moves_that_are_needed_anyway() -> None:
    placement = {**placed([1], [1], [1], topic="b"), **placed([1], [2], [2], topic="a"), **placed([3], topic="c")}
    plan = rebalance(placement, [1, 2, 3], dict.fromkeys((1, 2, 3)))
    assert [at.topic for at in plan] == ["b"]


def test_a_broker_that_leads_more_gives_a_leadership_away_with_the_replica() -> None:
    placement = placed([1, 2], [2, 1], [2, 1], [2, 1])
    plan = rebalance(placement, [1, 2, 3], dict.fromkeys((1, 2, 3)))
    assert plan == {TopicPartition("t", 1): [3, 1], TopicPartition("t", 2): [2, 3]}


def test_a_chain_that_breaks_changes_nothing() -> None:
    state = State(placed([1, 2], [2, 1]), {})
    steps = {(2, 3): TopicPartition("t", 0), (1, 2): None}
    assert not _shifted([1, 2, 3], lambda source, target: steps[source, target], state.move)
    assert list(state.replicas.values()) == [[1, 2], [2, 1]]
    assert [state.replicas_of(each) for each in (1, 2, 3)] == [2, 2, 0]


def test_a_drained_replica_goes_to_a_rack_where_the_partition_has_none() -> None:
    placement = {**placed([1, 2]), **placed([3], [3], [3], topic="u")}
    plan = drain(placement, 1, [1, 2, 3, 4], {1: A, 2: B, 3: A, 4: B})
    assert plan == {TopicPartition("t", 0): [2, 3]}


def test_drained_replicas_are_spread() -> None:
    placement = {TopicPartition(name, 0): [1] for name in "abcd"}
    assert loads(drain(placement, 1, [1, 2, 3], {}))[0] == {2: 2, 3: 2}


def test_a_drained_replica_goes_where_its_topic_has_least() -> None:
    placement = {**placed([1], [2]), **placed([3], topic="u")}
    assert drain(placement, 1, [1, 2, 3], {}) == {TopicPartition("t", 0): [3]}


def test_a_drained_broker_gives_its_leaderships_to_those_that_lead_least() -> None:
    placement = placed([1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 3, 1])
    _, led = loads(drain(placement, 1, [1, 2, 3, 4], dict.fromkeys(range(1, 5))))
    assert led == {2: 1, 3: 2, 4: 1}


def test_the_partition_that_cannot_keep_its_replicas_is_named() -> None:
    with pytest.raises(TooFewBrokers) as caught:
        drain(placed([2], [1, 2, 3]), 3, [1, 2, 3], {})
    assert (caught.value.partition, caught.value.replicas) == (TopicPartition("t", 1), 3)
    assert str(caught.value) == "t-1 has 3 replicas"


def test_a_drain_by_weight_gives_the_heaviest_to_the_one_that_has_least() -> None:
    placement = placed([1], [1], [1], [2])
    weights = {TopicPartition("t", index): size for index, size in enumerate((10, 50, 10, 30))}
    plan = drain(placement, 1, [1, 2, 3], {}, weights)
    assert {at.partition: to for at, to in plan.items()} == {1: [3], 0: [2], 2: [2]}
