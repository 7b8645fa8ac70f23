"""One simulated run, drawn from a seed and played to its end.

A run is a few incarnations of one broker over one disk. In each, clients work until the process is killed or the power
is cut, at a moment the seed picks: between two events, or in the middle of a write to the disk. Meanwhile connections
break, writes come up short and calls to the disk fail. The last incarnation is left in peace: the logs and the
committed offsets are read, the broker stops, and the checkers judge what the clients had been told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas.server.broker import BrokerServer, CannotStart
from barnabas.server.config import BrokerConfig
from tests.simulation import checkers
from tests.simulation.client import Client
from tests.simulation.deliberate_bugs import BUGS
from tests.simulation.disk import SimDisk
from tests.simulation.history import History, Partition
from tests.simulation.network import Network
from tests.simulation.transactions import READ_COMMITTED, CommittedReader, Transactor, end_offset, read_committed
from tests.simulation.virtual_loop import Crash, Stuck, VirtualLoop
from tests.simulation.workload import LOST, NOT_YET, Committer, Producer, Reader, fetch

DATA_DIR = "/data"
HOST = "127.0.0.1"
EARLIEST, LATEST = -2, -1


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
        )


@dataclass
class Result:
    """What came of a run."""

    plan: Plan
    history: History
    violations: dict[str, list[str]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.violations

    def summary(self) -> str:
        acknowledged = sum(batch.acknowledged_at is not None for batch in self.history.batches)
        outcome = "clean" if self.passed else f"VIOLATED {', '.join(self.violations)}"
        crashes = ", ".join(self.history.crashes) or "no crash"
        return f"seed {self.plan.seed}: {outcome}; {acknowledged} batches acknowledged; {crashes}"


class World:
    """The things that outlive an incarnation: the disk, the network, the clients' memory, the clock."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed * 7919 + 1)
        self.clock: Callable[[], int] = lambda: 0
        self.disk = SimDisk(plan.seed, now_ms=lambda: self.clock())
        self.network = Network(random.Random(plan.seed * 7919 + 2))
        self.history = History()
        self.partitions = [Partition("t", index) for index in range(plan.partitions)]
        self.producers = [
            Producer(
                f"p{n}", self.partitions[n % plan.partitions], self.history, random.Random(plan.seed * 7919 + 10 + n)
            )
            for n in range(plan.producers)
        ]
        self.committers = [
            Committer(f"g{n}", self.partitions[0], self.history, random.Random(plan.seed * 7919 + 50 + n))
            for n in range(plan.committers)
        ]
        self.shared = [Partition("x", index) for index in range(2)]
        self.transactors = [
            Transactor(f"x{n}", n % 2 + 1, self.shared, self.history, random.Random(plan.seed * 7919 + 90 + n))
            for n in range(plan.transactors)
        ]
        self.time = 0.0
        self.port = 9092

    def config(self) -> BrokerConfig:
        properties = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": DATA_DIR,
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
            properties["log.flush.interval.messages"] = "1"
        return BrokerConfig.from_properties(properties)

    # --- lives -----------------------------------------------------------------------------------------------------

    def play(self) -> None:
        for life in range(self.plan.lives):
            with_faults = life > 0 or self.plan.lives == 1
            self.live(self.plan.seconds_per_life, with_faults)
            if self.plan.power_cuts and self.rng.random() < 0.7:
                self.disk.crash()
                self.history.power_cut(self.plan.flush_every_write)
            else:
                self.disk.last_write = None  # a torn write is one that the process died in, which end_in_write does
                self.disk.kill()
                self.history.kill()
        self.live(None, with_faults=False)

    def live(self, seconds: float | None, with_faults: bool) -> None:
        """One incarnation: up to a crash after about `seconds`, or, with None, to the final reading and a clean stop."""
        loop = VirtualLoop(self.network, self.time)
        self.clock = loop.now_ms
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self.incarnation(loop, seconds, with_faults))
        except Crash:
            pass
        except Stuck as stuck:
            self.history.errors.append(str(stuck))
        finally:
            self.time = loop.time() + 1.0
            self.history.errors += [describe(context) for context in loop.errors]
            self.quiet_disk()
            self.network.power_off()
            for task in asyncio.all_tasks(loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            asyncio.set_event_loop(None)
            loop.set_exception_handler(lambda _, context: None)
            loop.abandon()

    async def incarnation(self, loop: VirtualLoop, seconds: float | None, with_faults: bool) -> None:
        rng = random.Random(self.rng.random())
        began = loop.time()
        server = BrokerServer(
            self.config(),
            loop=loop,
            disk=self.disk,
            now_ms=loop.now_ms,
            random=rng,
            monotonic_ns=lambda: int(loop.time() * 1e9),
        )
        try:
            await server.start()
        except (CannotStart, OSError) as error:
            self.history.recoveries.append((loop.time() - began, repr(error)))
            raise Crash from error
        if self.history.crashes:
            self.history.recoveries.append((loop.time() - began, ""))
        address = (HOST, self.port)
        await self.create_topic(address, "t", self.plan.partitions)
        await self.create_topic(address, "x", len(self.shared))
        if seconds is None:
            await self.read_everything(address)
            await server.stop()
            return
        if with_faults:
            self.noisy_disk()
            self.break_connections(loop)
        readers = [Reader(partition, self.history) for partition in self.partitions]
        workers = [*self.producers, *self.committers, *self.transactors, *readers]
        if self.transactors:
            workers.append(CommittedReader(self.shared, self.history))
        tasks = [loop.create_task(worker.run(address, loop)) for worker in workers]
        loop.call_later(seconds * rng.uniform(0.2, 1.0), crash)
        for task in asyncio.as_completed(tasks):
            await task  # workers only end by an assertion of theirs

    def noisy_disk(self) -> None:
        self.disk.short_write_rate = self.plan.short_write_rate
        self.disk.error_rate = self.plan.disk_error_rate
        rate = self.plan.crash_in_write_rate
        self.disk.end_in_write = lambda: Crash() if rate and self.rng.random() < rate else None

    def quiet_disk(self) -> None:
        self.disk.short_write_rate = self.disk.error_rate = 0.0
        self.disk.end_in_write = None

    def break_connections(self, loop: VirtualLoop) -> None:
        def again() -> None:
            self.network.reset_one()
            loop.call_later(self.rng.expovariate(1 / self.plan.reset_every_seconds), again)

        loop.call_later(self.rng.expovariate(1 / self.plan.reset_every_seconds), again)

    # --- what is done outside the workload -----------------------------------------------------------------------------

    async def create_topic(self, address: tuple[str, int], name: str, partitions: int) -> None:
        client = Client(address, "admin")
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        while True:
            answer = await client.request(ApiKey.CREATE_TOPICS, 5, request, CreateTopicsResponse)
            error = answer.topics[0].error_code
            if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return
            if error not in NOT_YET:
                raise AssertionError(f"the topic could not be created: {ErrorCode(error).name}")
            await asyncio.sleep(0.1)

    async def read_everything(self, address: tuple[str, int]) -> None:
        client = Client(address, "final")
        for partition in self.partitions:
            start, end = [await self.bound(client, partition, time) for time in (EARLIEST, LATEST)]
            self.history.final_bounds[partition] = (start, end)
            records: list[tuple[int, bytes]] = []
            offset = start
            while offset < end:
                error, found = await fetch(client, partition, offset)
                if error or not found:
                    self.history.errors.append(f"{partition} cannot be read at {offset} of {end}: error {error}")
                    break
                records += found
                offset = found[-1][0] + 1
            self.history.final_logs[partition] = records
        for committer in self.committers:
            offset = await self.committed(client, committer.group, committer.partition)
            self.history.final_commits[committer.group, committer.partition] = offset
        await self.read_transactions(client)

    async def read_transactions(self, client: Client) -> None:
        """What read_committed readers see once every transactional id has been taken over, which aborts what is open."""
        if self.history.lost_unflushed_writes:
            return  # a partition may remember a transaction that its coordinator has lost, and wait for ever
        for transactor in self.transactors:
            self.history.final_transactional_offsets[transactor.name] = await transactor.take_over(client)
        for partition in self.shared if self.transactors else ():
            end, stable = [await end_offset(client, *partition, isolation) for isolation in (0, READ_COMMITTED)]
            if stable < end:
                self.history.held_back.append(f"{partition} is stable up to {stable} of {end}")
            self.history.final_committed[partition] = await read_committed(client, *partition)

    async def bound(self, client: Client, partition: Partition, time: int) -> int:
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition.index, timestamp=time)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=partition.topic, partitions=[wanted])
        while True:
            answer = await client.request(
                ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(topics=[topic]), ListOffsetsResponse
            )
            result = answer.topics[0].partitions[0]
            if result.error_code not in NOT_YET:
                assert not result.error_code, ErrorCode(result.error_code).name
                return int(result.offset)
            await asyncio.sleep(0.1)

    async def committed(self, client: Client, group: str, partition: Partition) -> int:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.index])
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
        committer = Committer(group, partition, History(), self.rng)
        while True:
            await committer.find(client)
            answer = await client.request(
                ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse
            )
            result = answer.groups[0]
            error = result.error_code or result.topics[0].partitions[0].error_code
            if error not in NOT_YET:
                assert not error, ErrorCode(error).name
                return int(result.topics[0].partitions[0].committed_offset)
            await asyncio.sleep(0.1)


def crash() -> None:
    raise Crash


def describe(context: dict[str, object]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"


def run(seed: int, bug: str | None = None) -> Result:
    """Play one seed, with one deliberate bug switched on if named, and judge it."""
    world = World(Plan.draw(seed))
    result = Result(world.plan, world.history)
    with ExitStack() as stack:
        if bug is not None:
            stack.enter_context(BUGS[bug]())
        try:
            world.play()
        except (AssertionError, KafkaError, *LOST) as error:
            world.history.errors.append(f"the run broke off: {error!r}")
    for name, check in checkers.ALL.items():
        found = check(world.history)
        if found:
            result.violations[name] = found
    return result
