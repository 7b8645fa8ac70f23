"""Load by librdkafka in a process of its own: prints one JSON line with the seconds the work took.

python -m bench.librdkafka_load produce BOOTSTRAP TOPIC COUNT SIZE BATCH_BYTES ACKS
python -m bench.librdkafka_load consume BOOTSTRAP TOPIC COUNT
"""

from __future__ import annotations

import json
import os
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

PARTITIONS = 6


def produce(bootstrap: str, topic: str, count: int, size: int, batch_bytes: int, acks: str) -> float:
    producer = Producer({
        "bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 5, "batch.size": batch_bytes,
        "queue.buffering.max.messages": 200_000, "queue.buffering.max.kbytes": 512_000,
    })  # fmt: skip
    producer.list_topics(topic, 30)
    payload = os.urandom(size // 2).hex().encode()
    # A run of records per partition, so that batches fill in all of them.
    run = max(1, batch_bytes // size)
    began = time.perf_counter()
    for index in range(count):
        while True:
            try:
                producer.produce(topic, payload, partition=index // run % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
        if not index % 10_000:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("records were left over")
    return time.perf_counter() - began


def consume(bootstrap: str, topic: str, count: int) -> float:
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "auto.offset.reset": "error",
        "fetch.message.max.bytes": 1 << 20, "queued.max.messages.kbytes": 65_536, "check.crcs": False,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    got = len(consumer.consume(1, 60))
    began = time.perf_counter()
    while got < count:
        messages = consumer.consume(min(10_000, count - got), 10)
        if not messages:
            raise SystemExit(f"{got} of {count} records came")
        got += len(messages)
    return time.perf_counter() - began


def main(what: str, bootstrap: str, topic: str, count: str, *more: str) -> None:
    if what == "produce":
        size, batch_bytes, acks = more
        seconds = produce(bootstrap, topic, int(count), int(size), int(batch_bytes), acks)
    else:
        seconds = consume(bootstrap, topic, int(count))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
