"""Small programs on other people's clients, which go on whatever happens to the cluster, and say what they were told.

    python -m tests.cluster.programs LIBRARY produce|consume BOOTSTRAP TOPIC PARTITIONS NAME

They print lines of JSON as Kafka's `kafka-verifiable-producer` and `-consumer` do, so that one reader understands all:

    {"name": "producer_send_success", "value": "17", "partition": 2}     a record was acknowledged
    {"name": "record_data", "value": "17", "partition": 2}               a record was read
    {"name": "sent", "count": 18}                                        the program was asked to end (SIGTERM), and has ended

`consume` joins the group NAME, and commits now and then.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

EVERY_SECONDS = 0.01
AHEAD = 200
"""Records that may wait for their acknowledgement."""

stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())


def say(name: str, **what: Any) -> None:
    print(json.dumps({"name": name, **what}), flush=True)


# kafka-python


def kafka_python_produce(bootstrap: list[str], topic: str, partitions: int, name: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, delivery_timeout_ms=600_000, client_id=name,
        request_timeout_ms=10_000, metadata_max_age_ms=2000,
    )  # fmt: skip
    waiting: list[Any] = []
    number = 0
    while not stopping.is_set():
        waiting = [each for each in waiting if not each.is_done]
        if len(waiting) < AHEAD:
            future = producer.send(topic, str(number).encode(), partition=number % partitions)
            future.add_callback(
                lambda told, number=number: say("producer_send_success", value=str(number), partition=told.partition)
            )
            future.add_errback(
                lambda error, number=number: say("producer_send_error", value=str(number), error=repr(error))
            )
            waiting.append(future)
            number += 1
        time.sleep(EVERY_SECONDS)
    producer.flush(timeout=120)
    say("sent", count=number)


def kafka_python_consume(bootstrap: list[str], topic: str, _: int, name: str) -> None:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest", auto_commit_interval_ms=500,
        session_timeout_ms=10_000, metadata_max_age_ms=2000,
    )  # fmt: skip
    while not stopping.is_set():
        for records in consumer.poll(timeout_ms=500).values():
            for each in records:
                say("record_data", value=each.value.decode(), partition=each.partition)
    consumer.close()


# aiokafka


async def aiokafka_produce(bootstrap: list[str], topic: str, partitions: int, name: str) -> None:
    number = 0
    waiting: set[asyncio.Task[None]] = set()

    async def told(future: Any, number: int) -> None:
        try:
            found = await future
        except Exception as error:
            say("producer_send_error", value=str(number), error=repr(error))
        else:
            say("producer_send_success", value=str(number), partition=found.partition)

    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, client_id=name, request_timeout_ms=10_000,
        metadata_max_age_ms=2000,
    ) as producer:  # fmt: skip
        while not stopping.is_set():
            if len(waiting) < AHEAD:
                future = await producer.send(topic, str(number).encode(), partition=number % partitions)
                task = asyncio.ensure_future(told(future, number))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                number += 1
            await asyncio.sleep(EVERY_SECONDS)
        await producer.flush()
        await asyncio.gather(*waiting)
    say("sent", count=number)


async def aiokafka_consume(bootstrap: list[str], topic: str, _: int, name: str) -> None:
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest", auto_commit_interval_ms=500,
        session_timeout_ms=10_000, metadata_max_age_ms=2000,
    )  # fmt: skip
    async with consumer:
        while not stopping.is_set():
            for records in (await consumer.getmany(timeout_ms=500)).values():
                for each in records:
                    say("record_data", value=each.value.decode(), partition=each.partition)


PROGRAMS: dict[tuple[str, str], Callable[[list[str], str, int, str], Any]] = {
    ("kafka-python", "produce"): kafka_python_produce,
    ("kafka-python", "consume"): kafka_python_consume,
    ("aiokafka", "produce"): aiokafka_produce,
    ("aiokafka", "consume"): aiokafka_consume,
}


def main() -> None:
    library, role, bootstrap, topic, partitions, name = sys.argv[1:]
    done = PROGRAMS[library, role](bootstrap.split(","), topic, int(partitions), name)
    if done is not None:
        asyncio.run(done)


if __name__ == "__main__":
    main()
