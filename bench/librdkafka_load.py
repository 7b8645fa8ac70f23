"""Load by librdkafka in a process of its own: prints one JSON line with the seconds the work took, and with the latencies of `pace`.

python -m bench.librdkafka_load produce BOOTSTRAP TOPIC COUNT SIZE BATCH_BYTES ACKS
python -m bench.librdkafka_load transact BOOTSTRAP TOPIC COUNT SIZE BATCH_BYTES RECORDS_PER_TRANSACTION ABORT_EVERY
python -m bench.librdkafka_load consume BOOTSTRAP TOPIC COUNT
python -m bench.librdkafka_load pace BOOTSTRAP TOPIC COUNT SIZE RECORDS_PER_SECOND [ACKS]
python -m bench.librdkafka_load touch BOOTSTRAP TOPIC,TOPIC,… PARTITIONS

The variable BENCH_LIBRDKAFKA may name a JSON file with more settings of the client: how it logs in.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

PARTITIONS = 6
SETTINGS = "BENCH_LIBRDKAFKA"


def common(bootstrap: str) -> dict[str, Any]:
    """Return what every client needs: the address, and how it logs in."""
    file = os.environ.get(SETTINGS)
    return {"bootstrap.servers": bootstrap, **(json.loads(Path(file).read_text()) if file else {})}


def produce(
    bootstrap: str,
    topic: str,
    count: int,
    size: int,
    batch_bytes: int,
    acks: str,
    per_transaction: int = 0,
    aborted: int = 0,
) -> float:
    """Seconds to produce `count` records; in transactions of `per_transaction`, of which every `aborted`-th is aborted."""
    config = {
        **common(bootstrap), "acks": acks, "linger.ms": 5, "batch.size": batch_bytes,
        "queue.buffering.max.messages": 200_000, "queue.buffering.max.kbytes": 512_000,
    }  # fmt: skip
    if per_transaction:
        config["transactional.id"] = f"bench-{os.getpid()}"
    producer = Producer(config)
    if per_transaction:
        producer.init_transactions(60)
    producer.list_topics(topic, 30)
    transactions = 0
    payload = os.urandom(size // 2).hex().encode()
    # A run of records per partition, so that batches fill in all of them.
    run = max(1, batch_bytes // size)
    began = time.perf_counter()
    for index in range(count):
        if per_transaction and not index % per_transaction:
            if index:
                transactions += 1
                end_transaction(producer, abort=bool(aborted) and not transactions % aborted)
            producer.begin_transaction()
        while True:
            try:
                producer.produce(topic, payload, partition=index // run % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
        if not index % 10_000:
            producer.poll(0)
    if per_transaction:
        end_transaction(producer, abort=False)
    if producer.flush(280):
        raise SystemExit("records were left over")
    return time.perf_counter() - began


def end_transaction(producer: Producer, *, abort: bool) -> None:
    if abort:
        # Sent first: librdkafka may else end a transaction that the coordinator has not heard of (INVALID_TXN_STATE).
        producer.flush(60)
        producer.abort_transaction(60)
    else:
        producer.commit_transaction(60)


def consume(bootstrap: str, topic: str, count: int) -> float:
    # librdkafka reads with isolation.level=read_committed unless told otherwise. When 100,000 records wait in its queue, it stops
    # fetching for a second, unless told otherwise: the rate would be that of these seconds, whatever the broker does.
    consumer = Consumer({
        **common(bootstrap), "group.id": "bench", "enable.auto.commit": False, "auto.offset.reset": "error",
        "fetch.message.max.bytes": 1 << 20, "queued.max.messages.kbytes": 65_536, "check.crcs": False,
        "fetch.queue.backoff.ms": 1,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    return read_all(consumer, count)


def read_all(consumer: Consumer, count: int) -> float:
    """Read so many records; return the seconds from the first one on."""
    got = len(consumer.consume(1, 60))
    began = time.perf_counter()
    while got < count:
        messages = consumer.consume(min(10_000, count - got), 10)
        if not messages:
            raise SystemExit(f"{got} of {count} records came")
        got += len(messages)
    return time.perf_counter() - began


def pace(bootstrap: str, topic: str, count: int, size: int, rate: int, acks: str = "all") -> dict[str, float]:
    """Send single records at a rate; return the seconds from `produce` to the acknowledgement."""
    producer = Producer({**common(bootstrap), "acks": acks, "linger.ms": 0})
    payload = os.urandom(size // 2).hex().encode()
    # A connection to each leader, and what the first requests cost, are not counted.
    for partition in range(PARTITIONS):
        producer.produce(topic, payload, partition=partition)
    producer.flush(60)
    taken: list[float] = []
    began = time.perf_counter()
    for index in range(count):
        while (early := began + index / rate - time.perf_counter()) > 0:
            producer.poll(early)
        sent = time.perf_counter()
        producer.produce(
            topic, payload, partition=index % PARTITIONS,
            on_delivery=lambda error, _, sent=sent: taken.append(float("inf") if error else time.perf_counter() - sent),
        )  # fmt: skip
        producer.poll(0)
    if producer.flush(280):
        raise SystemExit("records were left over")
    taken.sort()
    return {
        "seconds": time.perf_counter() - began,
        "p50": taken[count // 2],
        "p99": taken[count * 99 // 100],
    }


def touch(bootstrap: str, topics: list[str], partitions: int) -> float:
    """Seconds to write a record to each partition, with acks=all."""
    producer = Producer({**common(bootstrap), "acks": "all", "queue.buffering.max.messages": 200_000})
    began = time.perf_counter()
    for topic in topics:
        for partition in range(partitions):
            producer.produce(topic, b"x", partition=partition)
    if producer.flush(280):
        raise SystemExit("records were left over")
    return time.perf_counter() - began


def main(what: str, bootstrap: str, topic: str, count: str, *more: str) -> None:
    if what == "produce":
        size, batch_bytes, acks = more
        seconds = produce(bootstrap, topic, int(count), int(size), int(batch_bytes), acks)
    elif what == "transact":
        size, batch_bytes, per_transaction, aborted = more
        seconds = produce(
            bootstrap, topic, int(count), int(size), int(batch_bytes), "all", int(per_transaction), int(aborted)
        )
    elif what == "pace":
        size, rate, *acks = more
        print(json.dumps(pace(bootstrap, topic, int(count), int(size), int(rate), *acks)))
        return
    elif what == "touch":
        seconds = touch(bootstrap, topic.split(","), int(count))
    else:
        seconds = consume(bootstrap, topic, int(count))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
