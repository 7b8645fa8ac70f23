"""One broker and its clients: a run drawn from a seed and played to its end.

A run is a few lives of one broker over one disk. In each, clients work until its process is killed or the power of the
room goes, at a moment the seed picks: between two events, or in the middle of a write to the disk. Meanwhile connections
break, the broker stands still, its threads are slow, writes come up short and calls to the disk fail. Clients outlive a
killed broker, but not a power cut. In the last life the broker is left in peace: the logs and the committed offsets are
read, the broker stops, and the checkers judge what the clients had been told.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from barnabas.config.cannot_start import CannotStart
from barnabas.protocol.errors import ErrorCode
from barnabas.simulation.world import World
from barnabas.simulation.world_loop import Crash
from tests.simulation.client import Client
from tests.simulation.creator import CREATED, Creator, create_topic
from tests.simulation.deliberate_bugs import BUGS
from tests.simulation.final_reading import FinalReading
from tests.simulation.history import History, Partition
from tests.simulation.result import Result, played
from tests.simulation.transactions import CommittedReader, Transactor
from tests.simulation.workload import NOT_YET, Committer, Producer, Reader

SECONDS = 3600.0
"""Far more than any run lasts that does not hang."""


@dataclass(frozen=True)
class Plan:
    """What a seed means."""

    seed: int
    power_cuts: bool
    flush_every_write: bool
    partitions: int
    producers: int
    committers: int
    lives: int
    seconds_per_life: float
    index_entries_per_segment: int
    short_write_rate: float
    disk_error_rate: float
    reset_every_seconds: float
    crash_in_write_rate: float
    transactors: int
    executor_seconds: float
    pause_every_seconds: float
    sync_seconds: float

    @staticmethod
    def draw(seed: int) -> Plan:
        rng = random.Random(seed)
        return Plan(
            seed=seed,
            power_cuts=rng.random() < 0.5,
            flush_every_write=rng.random() < 0.5,
            partitions=rng.randrange(1, 4),
            producers=rng.randrange(1, 5),
            committers=rng.randrange(1, 3),
            lives=rng.randrange(1, 4),
            seconds_per_life=rng.uniform(0.3, 3.0),
            index_entries_per_segment=rng.choice((3, 20, 1_000_000)),
            short_write_rate=rng.choice((0.0, 0.0, 0.1)),
            disk_error_rate=rng.choice((0.0, 0.0, 0.0, 0.005)),
            reset_every_seconds=rng.choice((0.2, 1.0, 1000.0)),
            crash_in_write_rate=rng.choice((0.0, 0.005, 0.05)),
            transactors=rng.choice((0, 1, 2)),
            executor_seconds=rng.choice((0.0, 0.0, 0.01, 0.3)),
            pause_every_seconds=rng.choice((1.0, 1000.0, 1000.0)),
            sync_seconds=rng.choice((0.0, 0.0, 0.005)),
        )


class OneBroker:
    """The world of one run: the broker, its clients, and what happens to them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.rng = self.world.random("faults")
        self.broker = self.world.add_broker("broker", self.properties())
        self.broker.slow_threads(plan.executor_seconds)
        if plan.sync_seconds:
            self.broker.disk.duration = lambda call, _: plan.sync_seconds if call.startswith("sync") else 0.0
        self.clients = self.world.add_node("clients")
        self.work: asyncio.Future[Any] | None = None
        self.history = History()
        self.partitions = [Partition("t", index) for index in range(plan.partitions)]
        self.producers = [
            Producer(f"p{n}", self.partitions[n % plan.partitions], self.history, self.world.random(f"p{n}"))
            for n in range(plan.producers)
        ]
        self.committers = [
            Committer(f"g{n}", self.partitions[0], self.history, self.world.random(f"g{n}"))
            for n in range(plan.committers)
        ]
        self.shared = [Partition("x", index) for index in range(2)]
        self.transactors = [
            Transactor(f"x{n}", n % 2 + 1, self.shared, self.history, self.world.random(f"x{n}"))
            for n in range(plan.transactors)
        ]
        self.creator = Creator(self.history, self.world.random("creator"))

    def properties(self) -> dict[str, str]:
        properties = {
            "offsets.topic.num.partitions": "3",
            # Segments may not be small, but their indexes may, and a full index ends its segment.
            "log.index.interval.bytes": "500",
            "log.index.size.max.bytes": str(8 * self.plan.index_entries_per_segment),
            "log.retention.check.interval.ms": "1000",
            # The coordinators' topics are compacted all the time.
            "log.cleaner.backoff.ms": "200",
            "log.cleaner.min.cleanable.ratio": "0.01",
            "log.cleaner.dedupe.buffer.size": "100000",
            "group.initial.rebalance.delay.ms": "0",
        }
        if self.plan.flush_every_write:
            # With an odd seed the acknowledgement waits for the sync, not the append.
            before_ack = self.plan.seed % 2 == 1
            properties.update(
                {"barnabas.flush.before.ack": "true"} if before_ack else {"log.flush.interval.messages": "1"}
            )
        return properties

    # Lives

    async def story(self) -> None:
        for life in range(self.plan.lives):
            if await self.start():
                await self.live(with_faults=life > 0 or self.plan.lives == 1)
            self.end_life()
            await asyncio.sleep(1.0)
        if self.clients.is_up:
            self.clients.kill("ends its work")
        if await self.start():
            self.clients.boot()
            await self.clients.run(self.read_everything())
            await self.broker.stop()

    async def start(self) -> bool:
        began = self.world.loop.time()
        try:
            await self.broker.start()
        except (CannotStart, OSError) as error:
            self.history.recoveries.append((self.world.loop.time() - began, repr(error)))
            return False
        if self.history.crashes:
            self.history.recoveries.append((self.world.loop.time() - began, ""))
        return True

    async def live(self, *, with_faults: bool) -> None:
        """Let clients work until the broker dies, or is to die."""
        if not self.clients.is_up:
            self.clients.boot()
            self.work = None
        if self.work is None:
            await self.clients.run(self.create_topic("t", self.plan.partitions))
            await self.clients.run(self.create_topic("x", len(self.shared)))
            self.work = self.clients.run(self.workers())
        faults = []
        if with_faults:
            self.noisy_disk()
            faults = [asyncio.ensure_future(each) for each in (self.break_connections(), self.stand_still())]
        ended = self.broker.run(self.broker.server.wait_failed())
        time_is_up = asyncio.ensure_future(asyncio.sleep(self.plan.seconds_per_life * self.rng.uniform(0.2, 1.0)))
        await asyncio.wait({self.work, ended, time_is_up}, return_when=asyncio.FIRST_COMPLETED)
        for task in (*faults, time_is_up):
            task.cancel()
        if self.work.done():
            self.work.result()  # Workers only end by an assertion of theirs.

    def end_life(self) -> None:
        self.quiet_disk()
        if self.plan.power_cuts and self.rng.random() < 0.7:
            self.broker.lose_power()
            self.clients.lose_power()
            self.history.power_cut(self.plan.flush_every_write)
        else:
            self.broker.kill()
            self.history.kill()

    def connect(self, client_id: str) -> Client:
        return Client(self.broker.address, client_id)

    async def workers(self) -> None:
        """Run in the clients' process."""
        readers = [Reader(partition, self.history) for partition in self.partitions]
        workers: list[Any] = [*self.producers, *self.committers, *self.transactors, *readers, self.creator]
        if self.transactors:
            workers.append(CommittedReader(self.shared, self.history))
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(worker.run(self.connect, loop) for worker in workers))

    # Faults

    def noisy_disk(self) -> None:
        disk, rate = self.broker.disk, self.plan.crash_in_write_rate
        disk.short_write_rate = self.plan.short_write_rate
        disk.error_rate = self.plan.disk_error_rate
        disk.end_in_write = lambda: Crash() if rate and self.rng.random() < rate else None

    def quiet_disk(self) -> None:
        disk = self.broker.disk
        disk.short_write_rate = disk.error_rate = 0.0
        disk.end_in_write = None

    async def break_connections(self) -> None:
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / self.plan.reset_every_seconds))
            self.world.network.reset_one()

    async def stand_still(self) -> None:
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / self.plan.pause_every_seconds))
            self.broker.pause()
            try:
                await asyncio.sleep(self.rng.random() * 0.5)
            finally:
                self.broker.go_on()

    # What is done outside the workload

    async def create_topic(self, name: str, partitions: int) -> None:
        client = Client(self.broker.address, "admin")
        while (error := await create_topic(client, name, partitions)) not in CREATED:
            if error not in NOT_YET:
                raise AssertionError(f"the topic could not be created: {ErrorCode(error).name}")
            await asyncio.sleep(0.1)

    async def read_everything(self) -> None:
        reading = FinalReading(self.connect("final"), self.history)
        await reading.read(self.partitions, self.committers, self.transactors, self.shared)


def run(seed: int, bug: str | None = None) -> Result:
    """Play one seed, with one deliberate bug switched on if named, and judge it."""
    world = OneBroker(Plan.draw(seed))
    history = world.history

    def crashes() -> str:
        return ", ".join(history.crashes) or "no crash"

    with BUGS[bug]() if bug is not None else nullcontext():
        return played(
            world.plan,
            world.world,
            world.story(),
            history,
            seconds=SECONDS,
            met=crashes,
            may_forget_producers=True,
        )
