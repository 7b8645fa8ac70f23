"""The embedded broker, with librdkafka as its client in the same process."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest
from apache_kafka import free_port
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.config.config import ConfigError
from barnabas.embedded import broker as broker_module
from barnabas.node.broker import CannotStart
from barnabas.protocol.errors import KafkaError
from tests.embedded.own_process import threads_after

PATIENCE_SECONDS = 60


def produce(broker: barnabas.Broker, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_SECONDS) == 0


def consume(broker: barnabas.Broker, topic: str, count: int, group: str = "readers") -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: list[str] = []
    try:
        while len(values) < count:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, f"only {values} arrived"
            assert message.error() is None, message.error()
            values.append(message.value().decode())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return values


def topics(broker: barnabas.Broker) -> dict[str, int]:
    found = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=PATIENCE_SECONDS).topics
    return {name: len(topic.partitions) for name, topic in found.items() if not name.startswith("__")}


@pytest.mark.slow
def test_a_whole_test_in_ten_lines(barnabas: barnabas.Broker) -> None:
    produce(barnabas, "orders", ["one", "two"])
    assert consume(barnabas, "orders", 2) == ["one", "two"]


@pytest.mark.slow
def test_reset_leaves_it_as_new(barnabas: barnabas.Broker) -> None:
    for round_number in range(3):
        assert topics(barnabas) == {}
        barnabas.create_topic("orders", partitions=round_number + 1)
        assert topics(barnabas) == {"orders": round_number + 1}
        produce(barnabas, "orders", [f"round {round_number}"])
        # The group's committed offset of the round before would hide this record.
        assert consume(barnabas, "orders", 1) == [f"round {round_number}"]
        barnabas.reset()


class StoppedClock(asyncio.SelectorEventLoop):
    """A loop in which no time passes, so that no timer ever fires."""

    def time(self) -> float:
        return 0.0


@pytest.mark.slow
def test_reset_waits_neither_for_a_timer_nor_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes milliseconds, which a busy machine cannot show: what could make it take longer is not there."""
    synced: list[str] = []
    sync = os.fsync

    def noted(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        sync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(broker_module, "new_event_loop", StoppedClock)
    with barnabas.Broker() as broker:
        for _ in range(5):
            broker.create_topic("orders", partitions=3)
            produce(broker, "orders", ["one"])
            synced.clear()
            broker.reset()
            assert [path for path in synced if path.startswith(broker.data_dir)] == []
            assert topics(broker) == {}


def test_topics_are_created_with_settings(barnabas_broker: barnabas.Broker) -> None:
    barnabas_broker.reset()
    barnabas_broker.create_topic("compacted", partitions=4, config={"cleanup.policy": "compact", "retention.ms": 1000})
    assert topics(barnabas_broker) == {"compacted": 4}
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        barnabas_broker.create_topic("compacted")
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        barnabas_broker.create_topic("other", config={"no.such.setting": "1"})


@pytest.mark.slow
def test_a_data_dir_keeps_its_records(tmp_path: Path) -> None:
    with barnabas.Broker(data_dir=tmp_path) as broker:
        produce(broker, "orders", ["kept"])
        cluster_id = broker.cluster_id
        with pytest.raises(CannotStart, match="in use by another broker"):
            barnabas.Broker(data_dir=tmp_path).start()
    with barnabas.Broker(data_dir=tmp_path) as broker:
        assert broker.cluster_id == cluster_id
        assert consume(broker, "orders", 1) == ["kept"]


def test_stop_gives_back_its_threads() -> None:
    assert threads_after("barnabas.Broker().start().stop()") == []
    assert "barnabas" in threads_after("kept = barnabas.Broker().start()")


def test_stop_gives_back_port_and_folder() -> None:
    port = free_port()
    broker = barnabas.Broker(port=port).start()
    folder = broker.data_dir
    assert os.path.isdir(folder)
    broker.stop()
    broker.stop()
    assert not os.path.exists(folder)
    assert repr(broker) == "<barnabas.Broker stopped>"
    with pytest.raises(RuntimeError, match="has stopped"):
        _ = broker.bootstrap_servers
    with barnabas.Broker(port=port) as again:
        assert again.port == port


def test_a_stopped_broker_starts_again_as_new_on_its_port() -> None:
    broker = barnabas.Broker()
    with broker:
        broker.create_topic("orders")
        folder, port = broker.data_dir, broker.port
    with broker:
        broker.create_topic("orders")
        assert broker.data_dir != folder
        assert broker.port == port


def test_the_folder_goes_with_a_forgotten_broker() -> None:
    broker = barnabas.Broker().start()
    folder, loop, thread = broker.data_dir, broker._loop, broker._thread
    broker._call(broker._running().stop)
    assert os.path.isdir(folder)
    del broker
    gc.collect()
    assert not os.path.exists(folder)
    assert loop is not None
    assert thread is not None
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        barnabas.Broker(config={"num.partitions": "many"}).start()


def test_two_brokers_at_once() -> None:
    with barnabas.Broker() as one, barnabas.Broker() as other:
        one.create_topic("only-here")
        assert topics(one) == {"only-here": 1}
        assert topics(other) == {}
        assert one.cluster_id != other.cluster_id


def test_auto_creation_can_be_switched_off() -> None:
    with barnabas.Broker(config={"auto.create.topics.enable": False}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        found = admin.list_topics("missing", timeout=PATIENCE_SECONDS).topics["missing"]
        assert found.error is not None
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 200})
        failed: list[object] = []
        producer.produce("missing", "x", on_delivery=lambda error, _: failed.append(error))
        producer.flush(PATIENCE_SECONDS)
        assert failed[0] is not None


def test_librdkafka_sees_errors_not_silence(barnabas_broker: barnabas.Broker) -> None:
    admin = AdminClient({"bootstrap.servers": barnabas_broker.bootstrap_servers})
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics(["never-created"])["never-created"].result(PATIENCE_SECONDS)


def test_its_clock_moves_and_goes_right_again(barnabas: barnabas.Broker) -> None:
    def asked_at() -> int:
        barnabas.forget_requests()
        with Cluster(barnabas.bootstrap_servers) as cluster:
            cluster.any_connection()
        return barnabas.requests("ApiVersions")[0].time_ms

    before = asked_at()
    ahead, behind = barnabas.move_clock(7200), barnabas.move_clock(-3600)
    assert 3_600_000 <= asked_at() - before < 3_700_000
    assert (ahead.hits, ahead.settings) == (1, {"kind": "clock", "seconds": 7200})
    ahead.remove()
    assert -3_600_000 <= asked_at() - before < -3_500_000
    assert barnabas.faults == (behind,)
    barnabas.reset()
    assert 0 <= asked_at() - before < 100_000
