"""The assignors: balance, stickiness, ranges; by example and at random."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from barnabas.group.consumer.assignor import GroupAssignment, GroupSpec, MemberSubscription
from barnabas.group.consumer.assignors import find_assignor
from barnabas.group.consumer.range_assignor import assign_range
from barnabas.group.consumer.uniform_assignor import assign_uniform
from barnabas.protocol.errors import ErrorCode, KafkaError

T, U, V = (bytes([number]) * 16 for number in (1, 2, 3))


def spec_of(
    members: dict[str, set[bytes]],
    partitions: dict[bytes, int],
    last: GroupAssignment | None = None,
    instances: dict[str, str] | None = None,
) -> GroupSpec:
    owners: dict[bytes, dict[int, str]] = {}
    for member_id, assignment in (last or {}).items():
        for topic_id, indexes in assignment.items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(indexes, member_id))
    return GroupSpec(
        members={
            member_id: MemberSubscription(frozenset(topics), (instances or {}).get(member_id))
            for member_id, topics in members.items()
        },
        homogeneous=len({frozenset(topics) for topics in members.values()}) <= 1,
        assigned=last or {},
        owners=owners,
        partition_counts=partitions,
    )


def shown(assignment: GroupAssignment) -> dict[str, list[str]]:
    names = {T: "t", U: "u", V: "v"}
    return {
        member_id: sorted(f"{names[topic_id]}{index}" for topic_id, indexes in topics.items() for index in indexes)
        for member_id, topics in assignment.items()
    }


def sizes(assignment: GroupAssignment) -> list[int]:
    return [sum(map(len, topics.values())) for topics in assignment.values()]


def test_the_assignors_are_found_by_name() -> None:
    assert find_assignor("uniform") is assign_uniform
    assert find_assignor("range") is assign_range
    with pytest.raises(KafkaError) as raised:
        find_assignor("sticky")
    assert raised.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR


# -- range -----------------------------------------------------------------------------------------------------------


def test_ranges_are_co_partitioned() -> None:
    spec = spec_of({"b": {T, U}, "a": {T, U}}, {T: 3, U: 3})
    assert shown(assign_range(spec)) == {"a": ["t0", "t1", "u0", "u1"], "b": ["t2", "u2"]}


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    spec = spec_of({"a": {T}, "b": {T}, "c": {T}}, {T: 3}, instances={"c": "1", "b": "2"})
    assert shown(assign_range(spec)) == {"c": ["t0"], "b": ["t1"], "a": ["t2"]}


def test_a_topic_is_cut_for_its_own_subscribers() -> None:
    spec = spec_of({"a": {T}, "b": {T, U}, "c": {U}}, {T: 3, U: 2})
    assert shown(assign_range(spec)) == {"a": ["t0", "t1"], "b": ["t2", "u0"], "c": ["u1"]}


def test_more_members_than_partitions_leave_some_with_nothing() -> None:
    assert shown(assign_range(spec_of({"a": {T}, "b": {T}}, {T: 1}))) == {"a": ["t0"], "b": []}


def test_range_of_an_empty_group() -> None:
    assert assign_range(spec_of({}, {})) == {}


# -- uniform, all alike ----------------------------------------------------------------------------------------------


def test_uniform_from_nothing() -> None:
    # The one more goes to who comes last: whoever has it already may keep it.
    assert shown(assign_uniform(spec_of({"a": {T}, "b": {T}}, {T: 3}))) == {"a": ["t0"], "b": ["t1", "t2"]}


def test_uniform_without_members_or_topics() -> None:
    assert assign_uniform(spec_of({}, {T: 3})) == {}
    assert assign_uniform(spec_of({"a": set()}, {T: 3})) == {}


def test_a_new_member_takes_from_those_who_have_more_than_their_share() -> None:
    last = {"a": {T: frozenset({0, 1, 2})}, "b": {T: frozenset({3, 4, 5})}}
    after = assign_uniform(spec_of({"a": {T}, "b": {T}, "c": {T}}, {T: 6}, last))
    assert shown(after) == {"a": ["t0", "t1"], "b": ["t3", "t4"], "c": ["t2", "t5"]}


def test_what_a_member_that_left_had_is_spread_over_the_others() -> None:
    last = {"a": {T: frozenset({0, 1})}, "b": {T: frozenset({2, 3})}}
    after = assign_uniform(spec_of({"a": {T}, "b": {T}}, {T: 6}, last))
    assert shown(after) == {"a": ["t0", "t1", "t4"], "b": ["t2", "t3", "t5"]}


def test_topics_that_are_not_consumed_any_more_are_given_up() -> None:
    last = {"a": {T: frozenset({0}), U: frozenset({0})}}
    assert shown(assign_uniform(spec_of({"a": {T}}, {T: 1, U: 1}, last))) == {"a": ["t0"]}


# -- uniform, each its own -------------------------------------------------------------------------------------------


def test_each_gets_only_what_it_consumes() -> None:
    after = assign_uniform(spec_of({"a": {T}, "b": {T, U}, "c": {U}}, {T: 4, U: 4}))
    assert sizes(after) in ([3, 2, 3], [3, 3, 2], [2, 3, 3])
    assert all(name.startswith("t") for name in shown(after)["a"])
    assert all(name.startswith("u") for name in shown(after)["c"])


def test_partitions_move_from_the_most_to_the_least_loaded() -> None:
    last = {"a": {T: frozenset(range(6))}, "b": {}, "c": {U: frozenset({0, 1})}}
    after = assign_uniform(spec_of({"a": {T}, "b": {T, U}, "c": {U}}, {T: 6, U: 2}, last))
    assert shown(after)["c"] == ["u0", "u1"]
    assert shown(after)["a"] == ["t0", "t1", "t2"]
    assert shown(after)["b"] == ["t3", "t4", "t5"]


# -- at random -------------------------------------------------------------------------------------------------------


def complete(spec: GroupSpec, assignment: GroupAssignment) -> None:
    """Every partition of a consumed topic has one owner, who consumes it."""
    given = Counter(
        (topic_id, index) for topics in assignment.values() for topic_id, indexes in topics.items() for index in indexes
    )
    consumed = {topic_id for subscription in spec.members.values() for topic_id in subscription.topic_ids}
    assert given == Counter({(t, index): 1 for t in consumed for index in range(spec.partition_counts[t])})
    for member_id, topics in assignment.items():
        assert topics.keys() <= spec.members[member_id].topic_ids


@pytest.mark.parametrize("seed", range(60))
def test_a_group_that_changes_stays_balanced_and_moves_little(seed: int) -> None:
    rng = random.Random(seed)
    partitions = {topic_id: rng.randrange(1, 20) for topic_id in (T, U, V)}
    members: dict[str, set[bytes]] = {}
    last: GroupAssignment = {}
    alike = seed % 2 == 0
    for step in range(12):
        if members and rng.random() < 0.4:
            gone = rng.choice(sorted(members))
            del members[gone]
            last.pop(gone, None)
        else:
            members[f"m{step}"] = {T, U} if alike else set(rng.sample([T, U, V], rng.randrange(1, 4)))
        spec = spec_of(members, partitions, last)
        after = assign_uniform(spec)
        if not members:
            assert after == {}
            continue
        complete(spec, after)
        complete(spec, assign_range(spec))
        if alike:
            assert max(sizes(after)) - min(sizes(after)) <= 1
            # Nothing moves between two members that were both there, except from one that has more than its share.
            share = max(sizes(after))
            for member_id, topics in last.items():
                before = {(t, index) for t, indexes in topics.items() for index in indexes}
                kept = {(t, index) for t, indexes in after[member_id].items() for index in indexes} & before
                assert len(kept) >= min(len(before), share - 1)
        last = after


@pytest.mark.parametrize("seed", range(20))
def test_no_partition_could_move_to_a_better_place(seed: int) -> None:
    rng = random.Random(seed)
    partitions = {topic_id: rng.randrange(1, 30) for topic_id in (T, U, V)}
    members = {f"m{number}": set(rng.sample([T, U, V], rng.randrange(1, 4))) for number in range(rng.randrange(2, 8))}
    after = assign_uniform(spec_of(members, partitions))
    load = {member_id: sum(map(len, topics.values())) for member_id, topics in after.items()}
    for member_id, topics in after.items():
        for topic_id in topics:
            others = [load[other] for other, consumed in members.items() if topic_id in consumed]
            assert load[member_id] - min(others) <= 1, (seed, load)


@pytest.mark.parametrize("assignor", [assign_uniform, assign_range])
@pytest.mark.parametrize("seed", range(20))
def test_no_assignor_gives_out_a_held_partition(assignor: Any, seed: int) -> None:
    """Nor does it keep one that a member had; every other partition is given out once."""
    rng = random.Random(seed)
    counts = {topic_id: rng.randint(1, 9) for topic_id in (T, U, V)}
    members = {f"m{number}": set(rng.sample([T, U, V], rng.randint(1, 3))) for number in range(rng.randint(1, 5))}
    last: GroupAssignment = {}
    for _ in range(3):
        spec = spec_of(members, counts, last)
        held = {
            topic_id: frozenset(rng.sample(range(count), rng.randint(0, count))) for topic_id, count in counts.items()
        }
        last = assignor(replace(spec, held=held))
        given = [
            (topic_id, index) for topics in last.values() for topic_id, indexes in topics.items() for index in indexes
        ]
        consumed = set().union(*members.values())
        assert sorted(given) == sorted(
            (topic_id, index)
            for topic_id, count in counts.items()
            for index in range(count)
            if topic_id in consumed and index not in held[topic_id]
        )
        assert all(indexes for topics in last.values() for indexes in topics.values())
