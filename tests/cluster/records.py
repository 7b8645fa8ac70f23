"""Everything that a topic holds, read by a consumer, and compared with what a producer was told."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tests.cluster.load import QUICK, Load
from tests.cluster.probe import Probe
from tests.cluster.way_in import way_in

READ_SECONDS = 240.0
NO_OFFSET = (-1, -1001)
NOT_YET = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)


def read_partition(
    bootstrap_servers: str, topic: str, partition: int, *, committed_only: bool = False
) -> list[tuple[int, bytes]]:
    """Return the (offset, value) of every record from the beginning to the end."""
    isolation = "read_committed" if committed_only else "read_uncommitted"
    consumer = Consumer({
        "bootstrap.servers": bootstrap_servers, "group.id": "reads-all", "enable.auto.commit": False,
        "enable.partition.eof": True, "isolation.level": isolation, **QUICK, **way_in.library,
    })  # fmt: skip
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + READ_SECONDS
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while True:
            assert time.monotonic() < deadline, f"{topic}-{partition} is not read to its end: {len(found)} records"
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                offset, value = message.offset(), message.value()
                assert offset is not None
                assert value is not None
                found.append((offset, value))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            elif not error.retriable() and error.code() not in NOT_YET:
                raise KafkaException(error)
    finally:
        consumer.close()


def elsewhere(records: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the records that a producer was told to be at another offset.

    The answer to a batch may have no offset: a failure that later turned out to be none, or a duplicate. librdkafka counts on from
    there, and says -1, 0, 1, 2 for the records of such a batch.

    Args:
        records: (offset, offset that the producer was told), in order.
    """
    found = []
    follows_none: int | None = None
    for offset, told in records:
        if told in NO_OFFSET or (told == follows_none and told != offset):
            follows_none = told + 1
            continue
        follows_none = None
        if told != offset:
            found.append((offset, told))
    return found


def check_exactly_once(bootstrap_servers: str, load: Load | Probe) -> None:
    """Every acknowledged record is there, once, in the order in which it was sent, at the offset that its producer was told."""
    assert not load.failures, f"the producer gave up: {load.failures[:3]}"
    told = {index: {} for index in range(load.partitions)}  # type: dict[int, dict[int, int]]
    for each in load.acknowledged:
        told[each.partition][each.number] = each.offset
    for index in range(load.partitions):
        there = [(offset, int(value)) for offset, value in read_partition(bootstrap_servers, load.topic, index)]
        where = f"{load.topic}-{index}"
        numbers = [number for _, number in there]
        lost = sorted(set(told[index]) - set(numbers))
        assert not lost, f"{where} has lost {len(lost)} acknowledged records: {lost[:10]}"
        assert numbers == sorted(set(numbers)), f"{where} has records twice or out of order"
        assert numbers == sorted(told[index]), f"{where} has records that were not acknowledged"
        assert [offset for offset, _ in there] == list(range(len(there))), f"{where} has gaps in its offsets"
        moved = elsewhere((offset, told[index][number]) for offset, number in there)
        assert not moved, (
            f"{where} has {len(moved)} records at other offsets than their producer was told (offset, told):"
            f" {moved[:10]}"
        )
