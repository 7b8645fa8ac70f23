"""Leaders and in-sync replicas when brokers are fenced and unfenced."""

from __future__ import annotations

import pytest

from barnabas.metadata.cluster_image import BrokerRegistration, ClusterImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_leaders import on_broker_back, on_broker_gone
from barnabas.metadata.topics_image import PartitionRegistration, TopicImage, TopicsImage
from barnabas.protocol import messages


def image(leader: int, isr: tuple[int, ...], *, fenced: tuple[int, ...] = ()) -> MetadataImage:
    """One partition on brokers 1, 2, 3 and on 4, which is not registered."""
    brokers = {i: BrokerRegistration(i, 1, b"i" * 16, (), {}, None, i in fenced, False, ()) for i in (1, 2, 3)}
    topic = TopicImage("a", b"a" * 16, {0: PartitionRegistration((1, 2, 3, 4), isr, leader, 0, 0)})
    return MetadataImage(cluster=ClusterImage(brokers), topics=TopicsImage({"a": topic}, {topic.topic_id: topic}))


@pytest.mark.parametrize(
    ("leader", "isr", "fenced", "new_leader", "new_isr"),
    [
        (1, (1, 2, 3), (), 2, [2, 3]),
        (1, (1, 3, 2), (), 2, [3, 2]),
        (1, (1, 2, 3), (2,), 3, [2, 3]),
        (1, (1, 4, 3), (), 3, [4, 3]),
        (2, (1, 2, 3), (), None, [2, 3]),
        (1, (1, 2), (2,), -1, [2]),
        (1, (1,), (), -1, None),
    ],
)
def test_a_broker_that_is_fenced_leaves_the_isr_and_leads_nothing(
    leader: int, isr: tuple[int, ...], fenced: tuple[int, ...], new_leader: int | None, new_isr: list[int] | None
) -> None:
    (change,) = on_broker_gone(image(leader, isr, fenced=fenced), 1)
    expected = messages.PartitionChangeRecord(partition_id=0, topic_id=b"a" * 16, isr=new_isr)
    if new_leader is not None:
        expected.leader = new_leader
    assert change == expected


@pytest.mark.parametrize(("leader", "isr"), [(2, (2, 3)), (-1, (1,))])
def test_a_broker_without_a_part_in_a_partition_changes_nothing(leader: int, isr: tuple[int, ...]) -> None:
    assert on_broker_gone(image(leader, isr), 1) == []


@pytest.mark.parametrize(("leader", "isr", "leads"), [(-1, (1,), True), (-1, (2,), False), (2, (1, 2), False)])
def test_a_broker_that_is_unfenced_leads_what_waits_for_it(leader: int, isr: tuple[int, ...], leads: bool) -> None:
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=b"a" * 16, leader=1)
    assert on_broker_back(image(leader, isr), 1) == ([change] if leads else [])
