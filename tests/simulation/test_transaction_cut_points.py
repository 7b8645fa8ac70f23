"""kill -9 at every write of the transactional protocol: before it, in the middle of it, and after it.

The story: a producer commits, aborts and commits transactions over two partitions and a group's offset; then one is left open and
fenced by a second producer of the same name, which commits in turn. Every write to a log that belongs to it (`__transaction_state`,
`__consumer_offsets`, the partitions) is a point where the broker may end. For each point the story is played again from the same
disk, the broker killed there and started again, and then

- a transaction whose outcome was decided is finished by the broker alone, and one that was open is aborted by the next InitProducerId;
- each transaction is seen by read_committed readers in all of its partitions, or in none;
- a commit that was acknowledged is seen, an abort that was acknowledged is not;
- the group's offset is that of the last transaction that is seen;
- the last stable offset is the end of every partition;
- the next transaction works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from barnabas.simulation.disk import SimDisk
from barnabas.simulation.world import World
from barnabas.simulation.world_loop import Crash
from tests.simulation.client import Client
from tests.simulation.transactions import (
    GROUP,
    READ_COMMITTED,
    TRANSACTION,
    TransactionalProducer,
    committed_offset,
    end_offset,
    find_coordinator,
    read_committed,
    state_of,
)

PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
WATCHED = ("/__transaction_state-", "/__consumer_offsets-", "/t-")
PARTITIONS = (0, 1)

Play = Callable[[Client], Coroutine[Any, Any, None]]


class Told:
    """What the producers were told."""

    def __init__(self) -> None:
        self.committed: set[int] = set()
        self.aborted: set[int] = set()


def play(disk: SimDisk, began: float, story: Play) -> float:
    """Run a broker over the disk until the story ends, or the broker does; returns the time of the end."""
    # Another seed in each life: a process that starts again is another incarnation of its broker.
    world = World(round(began * 1000), began)
    broker, client = world.add_broker("broker", PROPERTIES, disk), world.add_node("client")

    async def live() -> None:
        await broker.start()
        told = client.run(story(Client(broker.address, "story")))
        ended = broker.run(broker.server.wait_failed())
        await asyncio.wait({told, ended}, return_when=asyncio.FIRST_COMPLETED)
        disk.end_in_write = None
        if broker.is_up:
            await told
            await broker.stop()

    world.play(live())
    return world.loop.time() + 1.0


async def prepare(client: Client) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=len(PARTITIONS), replication_factor=1)
    answer = await client.request(
        ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=1000), CreateTopicsResponse
    )
    assert answer.topics[0].error_code == ErrorCode.NONE
    await find_coordinator(client, TRANSACTION, "tx")
    await find_coordinator(client, GROUP, "g")


async def transaction(producer: TransactionalProducer, number: int, told: Told, *, commit: bool) -> None:
    for index in PARTITIONS:
        await producer.send("t", index, b"%d" % number)
    await producer.commit_offset("g", "t", 0, number)
    await producer.end(commit=commit)
    (told.committed if commit else told.aborted).add(number)


def story(version: int, told: Told) -> Play:
    async def tell(client: Client) -> None:
        await find_coordinator(client, TRANSACTION, "tx")
        await find_coordinator(client, GROUP, "g")
        first = TransactionalProducer(client, "tx", version)
        await first.init()
        await transaction(first, 1, told, commit=True)
        await transaction(first, 2, told, commit=False)
        await transaction(first, 3, told, commit=True)
        await first.send("t", 0, b"4")
        await first.commit_offset("g", "t", 0, 4)
        second = TransactionalProducer(client, "tx", version)
        await second.init()
        told.aborted.add(4)
        await transaction(second, 5, told, commit=True)

    return tell


def check(version: int, told: Told) -> Play:
    async def look(client: Client) -> None:
        await find_coordinator(client, TRANSACTION, "tx")
        await find_coordinator(client, GROUP, "g")
        await asyncio.sleep(0.5)
        if told.committed or told.aborted:
            state = await state_of(client, "tx")
            assert not state.startswith("Prepare"), "what was decided is finished without a producer"
        producer = TransactionalProducer(client, "tx", version)
        await producer.init()
        seen = []
        for index in PARTITIONS:
            values = await read_committed(client, "t", index)
            assert len(set(values)) == len(values), f"t-{index} holds {values}"
            seen.append({int(value) for value in values})
            high_watermark = await end_offset(client, "t", index, 0)
            assert await end_offset(client, "t", index, READ_COMMITTED) == high_watermark
        assert seen[0] == seen[1], "a torn transaction"
        assert told.committed <= seen[0], "an acknowledged commit is lost"
        assert not told.aborted & seen[0], "an aborted transaction is seen"
        assert await committed_offset(client, "g", "t", 0) == max(seen[0], default=-1)
        await transaction(producer, 9, told, commit=True)
        for index in PARTITIONS:
            assert b"9" in await read_committed(client, "t", index)
        assert await committed_offset(client, "g", "t", 0) == 9

    return look


def writes_of(disk: SimDisk, start: float, tell: Play) -> list[str]:
    """The files of the story's writes, in order."""
    paths: list[str] = []
    disk.on_call = lambda call, path: paths.append(path) if call == "pwrite" and is_watched(path) else None  # type: ignore[func-returns-value]
    play(disk, start, tell)
    return paths


def is_watched(path: str) -> bool:
    return path.endswith(".log") and any(name in path for name in WATCHED)


class EndAt:
    """Ends the broker in the n-th watched write, when a part of it is done."""

    def __init__(self, disk: SimDisk, number: int, part: Callable[[int], int]) -> None:
        self._left = number
        self._is_next = False
        self._disk = disk
        disk.on_call = self._on_call
        disk.end_in_write = self._end
        disk.random.randint = lambda low, high: part(high)  # type: ignore[method-assign]

    def _on_call(self, call: str, path: str) -> None:
        self._is_next = False
        if call == "pwrite" and is_watched(path):
            self._left -= 1
            self._is_next = self._left == 0

    def _end(self) -> BaseException | None:
        return Crash() if self._is_next else None


PARTS = {"before": lambda size: 0, "midst": lambda size: size // 2, "after": lambda size: size}


def prepared_disk() -> tuple[SimDisk, float]:
    disk = SimDisk(1)
    return disk, play(disk, 0.0, prepare)


@pytest.mark.slow
@pytest.mark.parametrize("part", list(PARTS))
@pytest.mark.parametrize("version", [1, 2])
def test_every_point_leaves_whole_transactions(version: int, part: str) -> None:
    prepared, start = prepared_disk()
    told = Told()
    points = writes_of(prepared.copy(), start, story(version, told))
    assert (told.committed, told.aborted) == ({1, 3, 5}, {2, 4})
    # Per transaction: partitions added, two batches, the offset, Prepare, three markers, Complete.
    assert len(points) >= 40
    assert {name for name in WATCHED if any(name in path for path in points)} == set(WATCHED)
    for number in range(1, len(points) + 1):
        disk = prepared.copy()
        told = Told()
        EndAt(disk, number, PARTS[part])
        later = play(disk, start, story(version, told))
        assert told.committed != {1, 3, 5} or number == len(points), "the broker was to end before"
        disk.on_call = None
        try:
            play(disk, later, check(version, told))
        except AssertionError as error:
            error.add_note(f"killed {part} write {number} of {len(points)}, to {points[number - 1]}")
            raise


def test_the_story_without_an_end() -> None:
    prepared, start = prepared_disk()
    told = Told()
    later = play(prepared, start, story(2, told))
    play(prepared, later, check(2, told))
    assert told.committed == {1, 3, 5, 9}
