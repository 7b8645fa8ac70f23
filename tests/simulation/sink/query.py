"""A query, and the user who restarts it: one driver runs after the other, until the source's rows are written.

A driver that stands still may be taken for dead: then the next one begins beside it, and it goes on later. The workers of a driver that
died are killed, some at once and some after a while; those of a query that failed serve its next life.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from barnabas.client.cluster import Cluster
from barnabas.protocol.errors import KafkaError
from barnabas.simulation.node import NodeDied
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decisions import DecisionLog
from barnabas.spark.sink.options import parse_batch_options, parse_stream_options
from tests.simulation.sink.checkpoint import Checkpoint
from tests.simulation.sink.driver import Driver, TakenOver, TasksFailed
from tests.simulation.sink.plan import EXPIRATION_MS, SinkPlan
from tests.simulation.sink.process import Process, ProcessFault
from tests.simulation.sink.reading import committed_now
from tests.simulation.sink.sink_history import Failed, SinkHistory
from tests.simulation.sink.worker import Worker

if TYPE_CHECKING:
    from barnabas.simulation.world import World

LOOK_SECONDS = 0.1
OVERLAPPING = 3
"""So many batch writes of a sequence may run at the same time."""
PATIENCE = 8
"""So many drivers may fail one after the other with an error for the user, before he gives up."""


class Query:
    """A query or a sequence of batch writes.

    Args:
        number: among the run's queries.
        addresses: of the brokers.

    Attributes:
        available: how many rows its source has by now.
        plans: the rows of each batch, as often as a driver planned or repeated it.
        is_calm: no process has faults any more.
        first_faults: of its next drivers.
        first_address: the broker that new drivers ask first, None for any.
        last_address: the broker that other new processes ask last.
    """

    def __init__(self, world: World, plan: SinkPlan, number: int, addresses: list[str], history: SinkHistory) -> None:
        prefix, self.query_id = plan.names[number]
        self.plan, self.history = plan, history
        self.topic = f"out{number}"
        given = {
            "kafka.bootstrap.servers": ",".join(addresses),
            "topic": self.topic,
            "transactionalIdPrefix": prefix,
            "kafka.request.timeout.ms": "3000",
            "kafka.delivery.timeout.ms": "30000",
        }
        if plan.are_writes:
            self.options = parse_batch_options({**given, "queryId": self.query_id, "batchId": "0"})
        else:
            self.options = parse_stream_options(given)
        self.sink = self.options.sink_name(self.query_id)
        self.checkpoint = Checkpoint()
        self.available = plan.rows
        self.plans: dict[int, list[tuple[str, ...]]] = {}
        self.is_calm = False
        self.first_faults: list[ProcessFault] = []
        self.first_address: str | None = None
        self.last_address: str | None = None
        self._failures = 0
        self._late: set[int] = set()
        self._world, self._number, self._addresses = world, number, addresses
        self._rng = world.random(f"query {number}")
        self._drivers: list[tuple[Driver, asyncio.Future[None]]] = []
        self._zombies: list[asyncio.Future[None]] = []
        self._all_workers: list[Worker] = []
        self._users: list[Process] = []

    def __repr__(self) -> str:
        return f"<Query {self.sink} batches={len(self.checkpoint.done)} drivers={len(self._drivers)}>"

    def values(self, rows: range) -> tuple[str, ...]:
        return tuple(f"{self._number}-{row}" for row in rows)

    # Its processes

    def _shuffled(self) -> list[str]:
        """Return the brokers' addresses, in the order in which a new process asks them."""
        addresses = self._rng.sample(self._addresses, len(self._addresses))
        return sorted(addresses, key=lambda each: each == self.last_address)

    def bootstrap(self) -> str:
        """Return them for a driver or a reader."""
        return ",".join(sorted(self._shuffled(), key=lambda each: each != self.first_address))

    def cluster(self, process: Process) -> Cluster:
        """Return a driver's view of the cluster, as new as each call's is."""
        return process.cluster(self.bootstrap(), self.options.client_id, self.options.request_timeout_ms)

    def new_worker(self) -> Worker:
        fault = None if self.is_calm else self.plan.worker_fault(self._rng)
        process = Process(self._world, f"worker {self._number}-{len(self._all_workers)}", fault)
        pauses = (0.0, 0.3, 2.0, 4.0) if self.plan.scenario == "overlap" else (0.0, 0.0, 0.3, 2.0)
        slowness = 0.0 if self.is_calm else self._rng.choice(pauses)
        rng = random.Random(self._rng.random())
        worker = Worker(
            process,
            ",".join(self._shuffled()),
            self.options,
            rng,
            slowness=slowness,
            rows_at_a_time=self.plan.rows_at_a_time,
        )
        self._all_workers.append(worker)
        return worker

    @property
    def driver(self) -> Driver:
        """The last that began."""
        return self._drivers[-1][0]

    def _new_driver(self, workers: list[Worker], job: int | None) -> tuple[Driver, asyncio.Future[None]]:
        is_alone = self.are_zombies_done
        fault = self._next_fault()
        number = len(self._drivers)
        process = Process(self._world, f"driver {self._number}-{number}", fault)
        rng = random.Random(self._rng.random())
        driver = Driver(self, process, number, workers, rng, job=job, is_alone=is_alone)
        future = process.node.run(driver.run())
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        life = (driver, future)
        self._drivers.append(life)
        self.history.counts["drivers"] += 1
        return life

    def _next_fault(self) -> ProcessFault | None:
        if self.first_faults:
            return self.first_faults.pop(0)
        return None if self.is_calm else self.plan.driver_fault(self._rng)

    # Its lives

    async def live(self) -> None:
        """Restart the query until all its rows are written."""
        if self.plan.scenario != "overlap":
            await self._repeat(None)
            return
        jobs: list[asyncio.Future[None]] = []
        while self.checkpoint.end < self.available:
            batch = max(self.checkpoint.planned, default=-1) + 1
            self.checkpoint.plan(batch, self.checkpoint.draw(self.plan.largest_batch, self.available, self._rng))
            jobs.append(asyncio.ensure_future(self._repeat(batch)))
            await asyncio.wait(jobs, timeout=self._rng.choice((0.1, 1.0, 3.0)))
            while sum(not each.done() for each in jobs) >= OVERLAPPING:
                await asyncio.sleep(LOOK_SECONDS)
        await asyncio.gather(*jobs)

    async def _repeat(self, job: int | None) -> None:
        """Begin one driver after the other, until one has written this batch, or all."""
        workers: list[Worker] = []
        while True:
            driver, future = self._new_driver(workers, job)
            while not future.done() and not self._is_taken_for_dead(driver):
                await asyncio.sleep(LOOK_SECONDS)
            if not future.done():
                self.history.counts["zombie drivers"] += 1
                self._zombies.append(future)
                workers = []
            elif self._has_ended(driver, future) or self._failures >= PATIENCE or self._is_too_late(job, future):
                return
            elif driver.process.is_up:
                driver.process.kill("exits")
                await self._help(driver, future)
                workers = driver.workers
            else:
                self._leave(driver.workers)
                workers = []
            await asyncio.sleep(self._pause_seconds())
            self._change_checkpoint()

    async def _help(self, driver: Driver, future: asyncio.Future[None]) -> None:
        """Do what an error asks of the user: look for the rows of a decided batch, and say that they are there."""
        if "the brokers have forgotten" not in str(future.exception()):
            return
        process = Process(self._world, f"user {len(self._users)} of {self._number}")
        self._users.append(process)
        cluster = self.cluster(process)
        log = DecisionLog(cluster, self.sink, self.options.delivery_timeout_ms, new_token=lambda: b"no claim")

        def look() -> bool:
            is_there = committed_now(cluster, self.topic) >= set(driver.values)
            if is_there:
                log.note_done(driver.batch)
            return is_there

        self.history.counts["batches that a user found"] += await process.node.run(process.call(look))

    def _is_too_late(self, job: int | None, future: asyncio.Future[None]) -> bool:
        """Return whether a batch write has failed for good, because a later one of its sequence is written."""
        if job is None:
            return False
        if job in self.checkpoint.done:
            return True
        if "is older than batch" not in str(future.exception()):
            return False
        self.history.counts["writes that came too late"] += 1
        self._late.add(job)
        self.checkpoint.finish(job)
        return True

    def _is_taken_for_dead(self, driver: Driver) -> bool:
        return driver.process.is_frozen

    def _has_ended(self, driver: Driver, future: asyncio.Future[None]) -> bool:
        """Look at the end of a life; return whether everything was written."""
        error = future.exception()
        self._failures = self._failures + 1 if isinstance(error, QueryError) else 0
        if error is None:
            driver.process.kill("has finished")
            return True
        if isinstance(error, NodeDied):
            self.history.counts[
                f"drivers {driver.process.struck.kind}" if driver.process.struck else "drivers killed"
            ] += 1
            return False
        driver.process.node.note(f"fails: {error!r}")
        if isinstance(error, (QueryError, KafkaError)):
            self._write_down(driver, error)
        elif not isinstance(error, (TakenOver, TasksFailed)):
            raise error
        self.history.counts[f"drivers that failed: {type(error).__name__}"] += 1
        return False

    def _write_down(self, driver: Driver, error: Exception) -> None:
        is_alone = driver.is_alone and self.plan.scenario != "overlap"
        differs = len(set(self.plans[driver.batch])) > 1
        self.history.failed.append(
            Failed(
                driver.name,
                self.sink,
                driver.batch,
                str(error),
                is_alone,
                differs,
                self.checkpoint.is_old,
                error.code if isinstance(error, KafkaError) else None,
                any((each.sink, each.batch) == (self.sink, driver.batch) for each in self.history.reported),
                self.plan.scenario == "expired" and not self.plan.two_phase,
            )
        )
        if isinstance(error, QueryError) and self.checkpoint.restore():
            self.history.counts["checkpoints restored to the newest"] += 1

    def _leave(self, workers: list[Worker]) -> None:
        """Let the workers of a dead driver end, some of them later."""
        for each in workers:
            if self._rng.random() < 0.5:
                each.process.kill("ends with its driver")
            else:
                self.history.counts["workers that outlive their driver"] += 1
                self._world.loop.call_later(self._rng.choice((2.0, 10.0)), each.process.kill, "ends late")

    def _pause_seconds(self) -> float:
        if self.plan.scenario == "expired" and not self.is_calm and self._rng.random() < 0.5:
            return 2.5 * EXPIRATION_MS / 1000
        return self._rng.choice((0.0, 0.5, 2.0))

    def _change_checkpoint(self) -> None:
        if self.is_calm or self._rng.random() >= self.plan.restores:
            return
        batches, plans = self._rng.choice((1, 1, 1, 2)), self._rng.random() < 0.7
        if self.checkpoint.lose(batches, plans=plans):
            self.history.counts["checkpoints that got older"] += 1

    # The end

    def calm_down(self) -> None:
        """Give no further process a fault, and let those that stand still go on."""
        self.is_calm = True
        for process in self.processes:
            process.go_on()

    @property
    def has_written_all(self) -> bool:
        _, rows = self.checkpoint.next_batch()
        return rows is None and self.checkpoint.end >= self.available

    @property
    def are_zombies_done(self) -> bool:
        """Whether no driver is at work, and no task."""
        return all(future.done() for _, future in self._drivers) and not any(each.is_busy for each in self._all_workers)

    @property
    def processes(self) -> list[Process]:
        """All that there ever were."""
        drivers, workers = (each.process for each, _ in self._drivers), (each.process for each in self._all_workers)
        return [*drivers, *workers, *self._users]

    def write_down(self) -> None:
        """Write down which rows a reader should find."""
        wanted: list[str] = []
        undecided: list[str] = []
        for batch, rows in self.checkpoint.planned.items():
            (undecided if batch in self._late else wanted).extend(self.values(rows))
        self.history.wanted[self.topic], self.history.undecided[self.topic] = wanted, undecided

    def look_at_zombies(self) -> None:
        """Count how drivers ended that were taken for dead; any error of the sink's protocol is right for these."""
        for future in self._zombies:
            error = future.exception()
            if error is not None and not isinstance(error, (NodeDied, TakenOver, TasksFailed, KafkaError, QueryError)):
                raise error
            how = "finished" if error is None else type(error).__name__
            self.history.counts[f"zombies' ends: {how}"] += 1
