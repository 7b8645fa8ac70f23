"""Reading committed records: to the end, past open transactions or up to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.embedded.broker import Broker
from barnabas.retries.committed_records import READER_SETTINGS, last_of_key, log_ends, read_committed, read_messages
from tests.retries.records import values, write


def reader(broker: Broker) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", **READER_SETTINGS})


@pytest.mark.slow
def test_from_an_offset_to_the_end(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=2)
    write(barnabas.bootstrap_servers, "orders", [(None, "a"), ("k", "b")])
    consumer = reader(barnabas)
    assert values(read_committed(consumer, {("orders", 0): 1, ("orders", 1): -1})) == ["b"]
    assert values(read_committed(consumer, {("orders", 0): -1})) == ["a", "b"]
    assert list(read_committed(consumer, {("orders", 0): 2})) == []


@pytest.mark.slow
def test_an_open_transaction(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=1)
    write(barnabas.bootstrap_servers, "orders", [(None, "a")])
    producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "b", partition=0)
    producer.flush()
    write(barnabas.bootstrap_servers, "orders", [(None, "c")])
    consumer = reader(barnabas)
    assert values(read_committed(consumer, {("orders", 0): 0})) == ["a"]
    ends = log_ends(AdminClient({"bootstrap.servers": barnabas.bootstrap_servers}), [("orders", 0)])
    assert ends == {("orders", 0): 3}
    seconds = iter((0.0, 0.0, 121.0))
    with pytest.raises(KafkaException, match="cannot read orders-0 to its end"):
        list(read_committed(consumer, {("orders", 0): 1}, ends, clock=lambda: next(seconds, 121.0)))
    producer.abort_transaction()
    assert values(read_committed(consumer, {("orders", 0): 0}, ends)) == ["a", "c"]


@pytest.mark.slow
def test_records_that_are_deleted_while_they_are_read_are_an_error(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=1)
    write(barnabas.bootstrap_servers, "orders", [(None, each) for each in "abc"])
    admin = AdminClient({"bootstrap.servers": barnabas.bootstrap_servers})

    class Late(Consumer):
        """Reads after retention has deleted records that were there when it looked."""

        def assign(self, partitions: list[TopicPartition]) -> None:
            for deleted in admin.delete_records([TopicPartition("orders", 0, 2)]).values():
                deleted.result(30)
            super().assign(partitions)

    consumer = Late({"bootstrap.servers": barnabas.bootstrap_servers, "group.id": "reader", **READER_SETTINGS})
    with pytest.raises(KafkaException, match="orders-0 lost records while it was read"):
        list(read_committed(consumer, {("orders", 0): 0}))
    assert values(read_committed(reader(barnabas), {("orders", 0): 0})) == ["c"]


@pytest.mark.slow
def test_the_last_record_of_a_key(barnabas: Broker) -> None:
    barnabas.create_topic("notes")
    write(barnabas.bootstrap_servers, "notes", [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")])
    admin = AdminClient({"bootstrap.servers": barnabas.bootstrap_servers})
    consumer = reader(barnabas)
    found = last_of_key(consumer, admin, "notes", b"a")
    assert found is not None
    assert found.value == b"3"
    assert last_of_key(consumer, admin, "notes", b"d") is None


@pytest.mark.slow
@pytest.mark.parametrize("end", [1, 3])
def test_deleted_offsets_are_an_error_for_a_reader_that_does_not_skip_them(barnabas: Broker, end: int) -> None:
    barnabas.create_topic("orders")
    write(barnabas.bootstrap_servers, "orders", [(None, "a"), (None, "b"), (None, "c")])
    admin = AdminClient({"bootstrap.servers": barnabas.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition("orders", 0, 2)]).values():
        deleted.result(30)
    consumer = reader(barnabas)
    begin, ends = {("orders", 0): 0}, {("orders", 0): end}
    assert len(list(read_messages(consumer, begin, ends))) == end // 3
    with pytest.raises(KafkaException, match="lost records while it was read"):
        list(read_messages(consumer, begin, ends, skips_deleted=False))


class Unlucky(Consumer):
    """Its broker is down when it asks for the bounds of a partition, and is started while it waits."""

    broker: Broker
    failures: ClassVar[list[str]] = []

    def get_watermark_offsets(self, partition: TopicPartition, *_: Any, **__: Any) -> Any:
        try:
            return super().get_watermark_offsets(partition, 1.0)
        except KafkaException as failure:
            self.failures.append(failure.args[0].name())
            raise

    def poll(self, seconds: float) -> Any:
        self.broker.start()
        return super().poll(seconds)


@pytest.mark.slow
def test_a_leader_that_is_down_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        broker.create_topic("orders", partitions=1)
        write(broker.bootstrap_servers, "orders", [(None, "a")])
        consumer = Unlucky({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", **READER_SETTINGS})
        consumer.broker = broker
        broker.stop()
        assert values(read_committed(consumer, {("orders", 0): 0})) == ["a"]
        assert consumer.failures
        broker.stop()
        seconds = iter((0.0,))
        with pytest.raises(KafkaException, match="Failed to get watermark offsets"):
            list(read_committed(consumer, {("orders", 0): 0}, clock=lambda: next(seconds, 121.0)))
        consumer.close()


@pytest.mark.slow
def test_a_topic_that_does_not_exist_is_no_leader_that_is_down(barnabas: Broker) -> None:
    with pytest.raises(KafkaException, match="watermark"):
        list(read_committed(reader(barnabas), {("none.such", 0): 0}))
