"""A delta of many partitions takes many turns of the loop: how much is done in each, and what requests see between two of them."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from barnabas.replication.partition import Partition
from barnabas.replication.replica_changes import apply_delta
from barnabas.steps import in_background
from barnabas.turns import REPLICA, new_budget
from tests.replication.hosting import NODE, Hosting, topic_id
from tests.short_turns import set_turn

PER_TURN = 10
FIRST = PER_TURN + 1
"""What a partition has cost is spent when it is changed."""


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, PER_TURN * REPLICA)


def created(name: str, number: int, partitions: int) -> list[MetadataRecord]:
    return [
        TopicRecord(name=name, topic_id=topic_id(number)),
        *(
            PartitionRecord(partition_id=index, topic_id=topic_id(number), replicas=[NODE], isr=[NODE], leader=NODE)
            for index in range(partitions)
        ),
    ]


def begin(hosting: Hosting, *records: MetadataRecord) -> asyncio.Future[None]:
    """Begin to apply records, in a turn of their own."""
    new_budget()
    delta = MetadataDelta(hosting.image)
    for record in records:
        delta.replay(record)
    hosting.image = delta.apply()
    return in_background(apply_delta(hosting.replicas, delta, hosting.image), hosting.loop)


def in_turns(hosting: Hosting, monkeypatch: pytest.MonkeyPatch, *records: MetadataRecord) -> list[int]:
    """Return with how many partitions each turn had to do; others have turns in between."""
    counts = [0]
    notify = hosting.replicas.notify_changed

    def counting(partition: Partition) -> None:
        counts[-1] += 1
        notify(partition)

    monkeypatch.setattr(hosting.replicas, "notify_changed", counting)

    async def story() -> None:
        applying = begin(hosting, *records)
        while not applying.done():
            counts.append(0)
            await asyncio.sleep(0)

    hosting.loop.run_until_complete(story())
    return [count for count in counts if count]


def test_many_new_partitions_take_a_turn_for_each_few(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_turns(hosting, monkeypatch, *created("a", 1, 25), *created("b", 2, 10)) == [11, 10, 10, 4]
    assert [len(hosting.replicas.topics[name].partitions) for name in "ab"] == [25, 10]


def test_few_take_one_turn(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_turns(hosting, monkeypatch, *created("a", 1, PER_TURN - 1)) == [PER_TURN - 1]


def test_topics_without_a_partition_here_count_too(hosting: Hosting) -> None:
    elsewhere = [created(f"t{number}", number, 1) for number in range(25)]
    for _, partition in elsewhere:
        partition.replicas = partition.isr = [NODE + 1]
        partition.leader = NODE + 1
    hosting.loop.run_until_complete(begin(hosting, *(record for topic in elsewhere for record in topic)))
    broker_setting = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="1")
    assert turns(hosting, broker_setting) == 5
    assert turns(hosting, *(RemoveTopicRecord(topic_id=topic_id(number)) for number in range(25))) == 5


def turns(hosting: Hosting, *records: MetadataRecord) -> int:
    """Return how many turns of the loop it takes to apply records; every other one is for others."""

    async def story() -> int:
        applying, count = begin(hosting, *records), 1
        while not applying.done():
            await asyncio.sleep(0)
            count += 1
        return count

    return hosting.loop.run_until_complete(story())


def test_deleted_and_changed_partitions_are_counted_together(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    hosting.loop.run_until_complete(begin(hosting, *created("a", 1, 15)))
    records = [RemoveTopicRecord(topic_id=topic_id(1)), *created("a", 2, 8)]
    assert in_turns(hosting, monkeypatch, *records) == [11, 10, 2]
    assert hosting.replicas.topics["a"].topic_id == topic_id(2)


def test_new_settings_reach_the_partitions_in_turns(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    hosting.loop.run_until_complete(begin(hosting, *created("a", 1, 15), *created("b", 2, 8)))
    of_broker = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="5")
    assert in_turns(hosting, monkeypatch, of_broker) == [11, 10, 2]


def test_between_two_turns_a_partition_is_not_led_yet(hosting: Hosting) -> None:
    applying = begin(hosting, *created("a", 1, 15))
    assert hosting.replicas.partition("a", FIRST - 1).is_leader
    with pytest.raises(KafkaError) as refused:
        hosting.replicas.partition("a", FIRST)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "clients try again"
    hosting.loop.run_until_complete(applying)
    assert hosting.replicas.partition("a", FIRST).is_leader


def test_nothing_more_is_applied_after_the_end(hosting: Hosting) -> None:
    applying = begin(hosting, *created("a", 1, 25))
    hosting.replicas.close()
    hosting.loop.run_until_complete(applying)
    assert len(hosting.replicas.topics["a"].partitions) == FIRST
