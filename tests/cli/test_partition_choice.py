"""The partitions that the command chooses: where the library puts a key, and one with a leader for records that may go anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as LibraryPartition

import barnabas
from barnabas.cli.partition_choice import PartitionChoice, may_choose
from barnabas.client.partitioner import PARTITIONERS

KEYS = [
    b"",
    b"a",
    b"\x00\xff\xfe",
    b"customer-42",
    "schlüssel".encode(),
    *(b"%x" % (number**5) for number in range(40)),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_a_key_goes_where_the_library_puts_it(broker: barnabas.Broker, partitioner: str) -> None:
    broker.create_topic(partitioner, partitions=7)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": partitioner, "linger.ms": 0})
    for key in KEYS:
        producer.produce(partitioner, None, key)
    assert producer.flush(30) == 0
    producer.close()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "none", "fetch.wait.max.ms": 10})
    consumer.assign([LibraryPartition(partitioner, number, 0) for number in range(7)])
    found: dict[bytes, int] = {}
    while len(found) < len(KEYS):
        found |= {each.key(): each.partition() for each in consumer.consume(len(KEYS) - len(found), 0.5)}
    consumer.close()
    choice = PartitionChoice(partitioner, [0] * 7)
    choice.begin()
    anywhere = {b""} if partitioner == "consistent_random" else set()
    assert {key: choice[key] for key in KEYS if key not in anywhere} == {
        key: place for key, place in found.items() if key not in anywhere
    }


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def last(numbers: Sequence[int]) -> int:
    return numbers[-1]


def test_records_without_a_key_stay_for_10_ms_in_a_partition_with_a_leader() -> None:
    clock, offered = Clock(), []

    def choose(numbers: Sequence[int]) -> int:
        offered.append(list(numbers))
        return numbers[len(offered) % len(numbers)]

    choice = PartitionChoice("murmur2_random", [1, -1, 2], choose=choose, clock=clock)
    choice.begin()
    assert choice[None] == 2
    clock.now += 0.009
    choice.begin()
    assert choice[None] == 2
    clock.now += 0.002
    choice.begin()
    assert choice[None] == 0
    assert offered == [[0, 2]] * 2


def test_without_any_leader_all_partitions_are_offered() -> None:
    choice = PartitionChoice("murmur2_random", [-1, -1], choose=last, clock=Clock())
    choice.begin()
    assert choice[None] == 1


def test_a_topic_that_grew_is_seen_after_a_minute() -> None:
    clock = Clock()
    choice = PartitionChoice("murmur2", [1], lambda: [1] * 100, clock=clock)
    choice.begin()
    assert {choice[key] for key in KEYS} == {0}
    clock.now += 59
    choice.begin()
    assert {choice[key] for key in KEYS} == {0}
    clock.now += 1
    choice.begin()
    assert len({choice[key] for key in KEYS}) > 20
    assert repr(choice).startswith("<PartitionChoice murmur2 partitions=100 any=")


def test_what_it_knows_stays_if_no_broker_answers() -> None:
    clock = Clock()
    choice = PartitionChoice("murmur2", [1, 1, 1], list, clock=clock)
    before = {key: choice[key] for key in KEYS}
    clock.now += 60
    choice.begin()
    assert {key: choice[key] for key in KEYS} == before


def test_keys_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.partition_choice._MOST_KEYS", 10)
    choice = PartitionChoice("murmur2", [1, 1, 1])
    for key in KEYS:
        choice.begin()
        assert choice[key] in range(3)
    assert len(choice) <= 11


def test_the_library_chooses_if_only_it_can() -> None:
    assert may_choose("murmur2_random", {"linger.ms": "5"})
    assert not may_choose("random", {})
    assert not may_choose("murmur2_random", {"partitioner": "consistent"})
    assert not may_choose("murmur2_random", {"sticky.partitioning.linger.ms": "0"})
