"""The index of partitions by broker: what it holds, and what one commit changes of it."""

from __future__ import annotations

from hypothesis import given, settings

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import NOT_PREFERRED, REASSIGNING, WITHOUT_LEADER, IndexDelta
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from tests.metadata.test_delta import record_lists, replay

A, B = b"a" * 16, b"b" * 16


def partition(leader: int, isr: str, elr: str = "", **moves: tuple[int, ...]) -> PartitionRegistration:
    in_sync, eligible = (tuple(map(int, digits)) for digits in (isr, elr))
    return PartitionRegistration((1, 2, 3), in_sync, leader, 0, 0, elr=eligible, **moves)


def test_each_partition_is_where_it_concerns_somebody() -> None:
    image = TopicsImage.of(
        [
            TopicImage("a", A, {0: partition(1, "12"), 1: partition(2, "2", "3"), 2: partition(-1, "", "13")}),
            TopicImage("b", B, {0: partition(1, "1", adding_replicas=(3,)), 1: partition(1, "1")}),
        ]
    )
    assert image.partition_index == {
        1: {A: (0, 2), B: (0, 1)},
        2: {A: (0, 1)},
        3: {A: (1, 2)},
        WITHOUT_LEADER: {A: (2,)},
        NOT_PREFERRED: {A: (1, 2)},
        REASSIGNING: {B: (0,)},
    }


@settings(derandomize=True, deadline=None, max_examples=100)
@given(record_lists())
def test_the_index_is_what_a_look_at_every_partition_finds(records: list[MetadataRecord]) -> None:
    topics = replay(MetadataImage(), records).topics
    found: dict[int, dict[bytes, tuple[int, ...]]] = {}
    for topic_id, topic in topics.by_id.items():
        for index, each in topic.partitions.items():
            keys = {*each.isr, *each.elr}
            keys |= {WITHOUT_LEADER} if each.leader == -1 else set()
            keys |= {NOT_PREFERRED} if each.leader != each.replicas[0] else set()
            keys |= {REASSIGNING} if each.is_reassigning else set()
            for key in keys:
                of_key = found.setdefault(key, {})
                of_key[topic_id] = (*of_key.get(topic_id, ()), index)
    assert topics.partition_index == found


def test_a_change_shares_what_it_does_not_touch() -> None:
    before = TopicsImage.of(
        [TopicImage("a", A, {0: partition(1, "12")}), TopicImage("b", B, {0: partition(1, "123")})]
    ).partition_index
    delta = IndexDelta(before)
    delta.change(A, 0, partition(1, "12"), partition(1, "13"))
    assert repr(delta) == "<IndexDelta changed=[2, 3]>"
    after = delta.apply()
    assert after[1] is before[1]
    assert (after[2], after[3]) == ({B: (0,)}, {B: (0,), A: (0,)})
    assert before[2] == {A: (0,), B: (0,)}
    same = IndexDelta(after)
    same.change(A, 0, partition(1, "13"), partition(1, "31"))
    assert same.apply() is after
