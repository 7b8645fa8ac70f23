"""Find a consumer that loses orders, in virtual time, and the seed that shows how.

    PYTHONHASHSEED=0 python examples/lost_orders.py

Two workers share the orders of three partitions, and each order takes half a second. A worker is killed at some moment.
Its session ends 45 s later, and the other worker goes on from the group's offsets.

- `hasty` leaves the commits to its client, which is the default. Every five seconds the client commits what it has handed
  out. That may be more than what is done: if the worker dies, nobody does the rest of its batch.
- `careful` commits an order when it is done. After a kill an order may be done twice, but none is lost.

The program runs `hasty` with one seed after the other until orders are lost. Then it runs `careful` with the same seeds. A
run is a minute or more of virtual time, and takes less than a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

import barnabas.simulation as simulation

ORDERS = [b"order %d" % number for number in range(48)]
SECONDS_PER_ORDER = 0.5
SECONDS_BETWEEN_DOZENS = 4.0
PATIENCE_SECONDS = 120.0

Consume = Callable[[str, list[bytes]], Awaitable[None]]


async def hasty(bootstrap: str, done: list[bytes]) -> None:
    """Do orders, and let the client commit (the bug)."""
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=bootstrap, group_id="work", auto_offset_reset="earliest")
    async with consumer:
        while True:
            batches = await consumer.getmany(timeout_ms=1000)
            for records in batches.values():
                for record in records:
                    await asyncio.sleep(SECONDS_PER_ORDER)  # the work
                    done.append(record.value)


async def careful(bootstrap: str, done: list[bytes]) -> None:
    """Do orders, and commit each when it is done."""
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id="work", auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer:
        while True:
            record = await consumer.getone()
            await asyncio.sleep(SECONDS_PER_ORDER)  # the work
            done.append(record.value)
            # Otherwise another worker has the partition now, and does the order again.
            with contextlib.suppress(CommitFailedError, IllegalStateError):
                await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})


async def shop(bootstrap: str) -> None:
    """Send the orders, a dozen at a time."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number, order in enumerate(ORDERS):
            await producer.send_and_wait("orders", order, partition=number % 3)
            if number % 12 == 11:
                await asyncio.sleep(SECONDS_BETWEEN_DOZENS)


def lost(consume: Consume, seed: int) -> list[bytes]:
    """Return the orders that were never done in the run of a seed."""

    async def scenario(cluster: simulation.Cluster) -> list[bytes]:
        done: list[bytes] = []
        await cluster.create_topic("orders", partitions=3)
        workers = [cluster.process("worker 1"), cluster.process("worker 2")]
        for worker in workers:
            worker.run(consume(cluster.bootstrap_servers, done))
        selling = cluster.process("shop").run(shop(cluster.bootstrap_servers))
        await asyncio.sleep(cluster.random.uniform(0, 20))
        worker = cluster.random.choice(workers)
        worker.kill()
        await asyncio.sleep(cluster.random.uniform(0, 60))
        worker.run(consume(cluster.bootstrap_servers, done))
        await selling
        ends = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while set(ORDERS) - set(done) and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(1)
        return [order for order in ORDERS if order not in done]

    return simulation.run(scenario, seed=seed, nodes=1).value


def main(seeds: int = 20) -> int:
    """Print the first seed that finds the bug; return the exit code."""
    for seed in range(seeds):
        if orders := lost(hasty, seed):
            break
    else:
        print(f"hasty: no order is lost in seeds 0 to {seeds - 1}")
        return 1
    print(f"hasty: seed {seed} loses {len(orders)} of {len(ORDERS)} orders, the first is {orders[0].decode()!r}")
    for each in range(seed + 1):
        assert not lost(careful, each), f"seed {each} loses orders"
    print(f"careful: seeds 0 to {seed} lose none")
    return 0


if __name__ == "__main__":
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # killed workers and moved partitions are expected
    sys.exit(main())
