"""Load for `bench.choices`, by librdkafka in a process of its own: each word prints one JSON line of figures.

python -m bench.choice_load write BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ACKS
python -m bench.choice_load read BOOTSTRAP TOPIC PARTITIONS COUNT
python -m bench.choice_load commit BOOTSTRAP TOPIC PARTITIONS SECONDS SIZE COMMIT_EVERY_SECONDS
python -m bench.choice_load follow BOOTSTRAP TOPIC PARTITIONS SECONDS RATE COMMIT_EVERY_SECONDS
python -m bench.choice_load fill BOOTSTRAP TOPIC GIGABYTES

Each record of `write` has its number as its key; `read` counts the records of a partition that do not come in this order. A
COMMIT_EVERY_SECONDS of 0 stands for an idempotent producer without transactions.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.librdkafka_load import read_all

BATCH = 131_072
FILL_BATCH = 1_000_000
FILL_SIZE = 1000
Figures = dict[str, float]


def _producer(servers: str, **more: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": servers,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": BATCH,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 512_000,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


def _consumer(servers: str, topic: str, partitions: int, *, latest: bool = False) -> Consumer:
    # librdkafka stops fetching for a second when 100,000 records wait in its queue, unless told otherwise.
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "choices",
            "enable.auto.commit": False,
            "auto.offset.reset": "latest" if latest else "error",
            "fetch.message.max.bytes": 1 << 20,
            "queued.max.messages.kbytes": 65_536,
            "check.crcs": False,
            "fetch.queue.backoff.ms": 1,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, each, -1 if latest else 0) for each in range(partitions)])
    return consumer


def _send(producer: Producer, topic: str, value: bytes, partition: int, key: bytes | None = None) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
            return
        except BufferError:
            producer.poll(0.01)


def _flush(producer: Producer) -> None:
    if producer.flush(280):
        raise SystemExit("records were left over")


def write(servers: str, topic: str, partitions: int, count: int, size: int, acks: str) -> Figures:
    """Write as fast as it goes, a batch for each partition in turn."""
    producer = _producer(servers, acks=acks, enable_idempotence=acks == "all")
    producer.list_topics(topic, 30)
    value = os.urandom((size - 8) // 2 + 1).hex().encode()[: size - 8]
    run = max(1, BATCH // size)
    began = time.perf_counter()
    for number in range(count):
        _send(producer, topic, value, number // run % partitions, number.to_bytes(8, "big"))
        if not number % 10_000:
            producer.poll(0)
    _flush(producer)
    return {"seconds": time.perf_counter() - began}


def read(servers: str, topic: str, partitions: int, count: int) -> Figures:
    """Read all twice: the time of the first, and how many records of the second come out of order."""
    consumer = _consumer(servers, topic, partitions)
    seconds = read_all(consumer, count)
    consumer.close()
    consumer = _consumer(servers, topic, partitions)
    highest: dict[int, int] = {}
    got = late = 0
    while got < count:
        for message in consumer.consume(min(10_000, count - got), 10):
            number, partition = int.from_bytes(message.key() or b"", "big"), message.partition() or 0
            late += number <= highest.get(partition, -1)
            highest[partition] = max(number, highest.get(partition, -1))
            got += 1
    consumer.close()
    return {"seconds": seconds, "out of order": late}


def _transactional(servers: str, every: float, **more: object) -> Producer:
    if not every:
        return _producer(servers, enable_idempotence=True, **more)
    producer = _producer(servers, transactional_id=f"choices-{os.getpid()}", **more)
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


def commit(servers: str, topic: str, partitions: int, seconds: float, size: int, every: float) -> Figures:
    """Write for some seconds as fast as it goes, and commit every so often."""
    producer = _transactional(servers, every)
    producer.list_topics(topic, 30)
    value = os.urandom(size // 2).hex().encode()
    run = max(1, BATCH // size)
    number = 0
    began = time.perf_counter()
    commit_at = began + every
    while (now := time.perf_counter()) < began + seconds:
        for _ in range(100):
            _send(producer, topic, value, number // run % partitions)
            number += 1
        producer.poll(0)
        if every and now >= commit_at:
            producer.commit_transaction(60)
            producer.begin_transaction()
            commit_at = time.perf_counter() + every
    if every:
        producer.commit_transaction(60)
    _flush(producer)
    return {"seconds": time.perf_counter() - began, "records": number}


def follow(servers: str, topic: str, partitions: int, seconds: float, rate: float, every: float) -> Figures:
    """Write at a rate; return the seconds from when a record was due until a read_committed consumer had it."""
    consumer = _consumer(servers, topic, partitions, latest=True)
    producer = _transactional(servers, every, linger_ms=0)
    taken: list[float] = []
    count = int(seconds * rate)
    _await_positions(consumer, producer, topic, partitions, bool(every))

    def receive() -> None:
        while len(taken) < count:
            message = consumer.poll(30)
            if message is None:
                return
            value = message.value() or b""
            if message.error() is None and len(value) > 8:
                taken.append(time.perf_counter() - struct.unpack_from(">d", value)[0])

    receiver = threading.Thread(target=receive)
    receiver.start()
    filler = os.urandom(992)
    began = time.perf_counter()
    commit_at = began + every
    for number in range(count):
        due = began + number / rate
        while (early := due - time.perf_counter()) > 0:
            producer.poll(early)
        _send(producer, topic, struct.pack(">d", due) + filler, number % partitions)
        if every and time.perf_counter() >= commit_at:
            producer.commit_transaction(60)
            producer.begin_transaction()
            commit_at = time.perf_counter() + every
    if every:
        producer.commit_transaction(60)
    _flush(producer)
    receiver.join()
    consumer.close()
    if len(taken) != count:
        raise SystemExit(f"{len(taken)} of {count} records came")
    taken.sort()
    return {"p50": taken[count // 2], "p99": taken[count * 99 // 100]}


def _await_positions(consumer: Consumer, producer: Producer, topic: str, partitions: int, in_transaction: bool) -> None:
    """Return when the consumer reads every partition at its end: it has seen a record of each. These have eight bytes."""
    unseen = set(range(partitions))
    while unseen:
        for partition in unseen:
            _send(producer, topic, b"warm up.", partition)
        if in_transaction:
            producer.commit_transaction(60)
            producer.begin_transaction()
        _flush(producer)
        while (message := consumer.poll(0.5)) is not None:
            if message.error() is None:
                unseen.discard(message.partition() or 0)


def fill(servers: str, topic: str, gigabytes: float) -> Figures:
    """Fill one partition with records of 1,000 random bytes, in batches of 1 MB."""
    producer = _producer(servers, acks="1", linger_ms=50, batch_size=FILL_BATCH)
    producer.list_topics(topic, 30)
    pool = os.urandom(64_000_000)
    chance = random.Random(1)
    places = [chance.randrange(len(pool) - FILL_SIZE) for _ in range(100_003)]
    count = int(gigabytes * 1e9 / FILL_SIZE)
    began = time.perf_counter()
    for number in range(count):
        # Pieces of a pool of random bytes, in a fixed and irregular order: nothing on the way can make them smaller.
        at = places[number * 7919 % len(places)]
        _send(producer, topic, pool[at : at + FILL_SIZE], 0)
        if not number % 10_000:
            producer.poll(0)
    _flush(producer)
    return {"seconds": time.perf_counter() - began, "records": count}


def main(what: str, servers: str, topic: str, *more: str) -> None:
    numbers = [float(each) for each in more if each != "all"]
    if what == "write":
        partitions, count, size = map(int, more[:3])
        found = write(servers, topic, partitions, count, size, more[3])
    elif what == "read":
        found = read(servers, topic, *map(int, more))
    elif what == "commit":
        found = commit(servers, topic, int(numbers[0]), numbers[1], int(numbers[2]), numbers[3])
    elif what == "follow":
        found = follow(servers, topic, int(numbers[0]), numbers[1], numbers[2], numbers[3])
    elif what == "fill":
        found = fill(servers, topic, numbers[0])
    else:
        raise SystemExit(f"{what} is not one of write, read, commit, follow, fill")
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
