"""Time that a test lets pass: on the loop alone, and for a whole broker with librdkafka's clients."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

import barnabas
from barnabas.embedded.virtual_loop import VirtualLoop

PATIENCE_SECONDS = 30.0


def test_timers_become_due_one_after_the_other_and_set_the_next() -> None:
    loop = VirtualLoop()
    began, rung, steps = loop.time(), list[int](), list[float]()

    def ring() -> None:
        rung.append(round(loop.time() - began))
        loop.call_later(10, ring)

    async def run() -> None:
        loop.call_later(10, ring)
        await loop.advance(35.5, steps.append)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    assert (rung, sum(steps), max(steps)) == ([10, 20, 30], 35.5, 1.0)
    assert repr(loop) == "<VirtualLoop ahead_s=35.5>"


def test_a_broker_without_virtual_time_says_how_to_get_it(barnabas_broker: barnabas.Broker) -> None:
    with pytest.raises(RuntimeError, match=r"make it with barnabas\.Broker\(virtual_time=True\)"):
        barnabas_broker.advance(1)


@pytest.mark.slow
def test_sessions_and_retention_end_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with barnabas.Broker(virtual_time=True) as broker:
        for seconds in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=f"^seconds={seconds}: "):
                broker.advance(seconds)
        broker.create_topic("orders", config={"retention.ms": 3_600_000, "message.timestamp.type": "LogAppendTime"})
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        written: list[Message] = []
        producer.produce("orders", b"old", on_delivery=lambda _, message: written.append(message))
        assert producer.flush(PATIENCE_SECONDS) == 0

        lost: list[TopicPartition] = []
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"], on_lost=lambda _, partitions: lost.extend(partitions))
        first = consumer.poll(PATIENCE_SECONDS)
        assert first is not None
        assert first.value() == b"old"

        broker.advance(46)  # session.timeout.ms is 45 s
        for _ in range(100):
            if lost:
                break
            consumer.poll(PATIENCE_SECONDS / 100)
        assert [each.partition for each in lost] == [0]

        broker.advance(2 * 3600)
        producer.produce("orders", b"new", on_delivery=lambda _, message: written.append(message))
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert consumer.get_watermark_offsets(TopicPartition("orders", 0), PATIENCE_SECONDS) == (1, 2)
        assert 7_246_000 <= written[1].timestamp()[1] - first.timestamp()[1] < 7_346_000
        consumer.close()
    assert [each.message for each in caplog.records if "fenced" in each.message.lower()] == []
