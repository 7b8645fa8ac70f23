"""The loads themselves: what arrives, what ends them, how they fail."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.cli.failure import Failure
from barnabas.cli.perf_load import ConsumeLoad, ProduceLoad, RoundTrips
from barnabas.embedded.broker import Broker

pytestmark = pytest.mark.slow


def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 20_000})


def consumer(broker: Broker, **more: Any) -> Consumer:
    return Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": True, **more}
    )


def ends(broker: Broker, partitions: int) -> list[int]:
    reader = consumer(broker)
    found = [reader.get_watermark_offsets(TopicPartition("load", each), 20)[1] for each in range(partitions)]
    reader.close()
    return found


def test_each_record_that_is_counted_is_in_the_partition(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=2)
    load = ProduceLoad(producer(barnabas), "load", records=500, size=70, partition=1)
    load.run()
    assert load.figures().records_sent == load.acknowledged == 500
    assert ends(barnabas, 2) == [0, 500]


def test_a_value_has_its_size_and_does_not_repeat(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    ProduceLoad(producer(barnabas), "load", records=20, size=100).run()
    reader = consumer(barnabas)
    reader.assign([TopicPartition("load", 0, 0)])
    values = [message.value() for message in reader.consume(20, 20)]
    reader.close()
    assert {len(value or b"") for value in values} == {100}
    assert len(set(values)) == 20


def test_a_rate_holds_records_back(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    load = ProduceLoad(producer(barnabas), "load", records=200, size=10, rate=1000)
    load.run()
    assert load.figures().records_per_sec <= 1010
    assert load.figures().latency.max_latency_ms > 0


def test_time_ends_a_load_of_any_size(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    load = ProduceLoad(producer(barnabas), "load", records=10**12, size=10, seconds=0.05)
    load.run()
    assert [load.acknowledged] == ends(barnabas, 1)


def test_a_record_that_is_too_large_ends_the_load(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1, config={"max.message.bytes": "500"})
    with pytest.raises(Failure, match="topic load"):
        ProduceLoad(producer(barnabas), "load", records=10, size=1000).run()


def test_a_reader_counts_each_record_once(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=2)
    for partition in (0, 1):
        ProduceLoad(producer(barnabas), "load", records=300, size=1024, partition=partition).run()
    bounds = {("load", 0): (100, 300), ("load", 1): (0, 300)}
    reader = consumer(barnabas)
    load = ConsumeLoad(reader, bounds, records=None, timeout_s=20)
    load.run()
    reader.close()
    assert load.wanted == load.figures().data_consumed_in_nmsg == 500
    assert load.figures().data_consumed_in_mb == pytest.approx(500 / 1024, abs=0.001)


def test_a_reader_ends_where_offsets_hold_no_record(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    sender = Producer({"bootstrap.servers": barnabas.bootstrap_servers, "transactional.id": "t"})
    sender.init_transactions(20)
    sender.begin_transaction()
    sender.produce("load", b"x")
    sender.commit_transaction(20)
    reader = consumer(barnabas)
    load = ConsumeLoad(reader, {("load", 0): (0, 2)}, records=None, timeout_s=20)
    load.run()
    reader.close()
    assert (load.wanted, load.records) == (2, 1)


def test_round_trips_skip_what_others_send(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    ProduceLoad(producer(barnabas), "load", records=50, size=100).run()
    reader = consumer(barnabas)
    # From the beginning: the records of the other load come first.
    load = RoundTrips(producer(barnabas), reader, {("load", 0): 0}, records=5, size=100, timeout_s=20)
    load.run()
    reader.close()
    assert load.done == 5
    assert 0 < load.figures().p50_ms <= load.figures().max_latency_ms


def test_a_record_that_does_not_come_back_is_one_sentence(barnabas: Broker) -> None:
    barnabas.create_topic("load", partitions=1)
    reader = consumer(barnabas)
    load = RoundTrips(producer(barnabas), reader, {("load", 0): 0}, records=1, size=100, timeout_s=0)
    with pytest.raises(Failure, match="did not come back from topic load within 0 s"):
        load.run()
    reader.close()
