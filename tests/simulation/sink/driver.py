"""A driver as Spark's: it plans a batch, has its tasks run, commits, and writes down that the batch is done.

All of this runs in the driver's process, and dies or stands still with it. The driver looks at its tasks now and then, because
messages between processes of Spark are not simulated.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.protocol.errors import KafkaError
from barnabas.simulation.node import NodeDied
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch
from tests.simulation.sink.plan import LOG
from tests.simulation.sink.process import Process
from tests.simulation.sink.sink_history import Reported
from tests.simulation.sink.worker import Attempt, Worker

if TYPE_CHECKING:
    from tests.simulation.sink.query import Query

LOOK_SECONDS = 0.05
TASK_FAILURES = 4
"""So often Spark lets a task fail."""
SPECULATE_SECONDS = 1.5


class TakenOver(Exception):
    """Another driver has written the checkpoint; Spark says that several queries use it."""


class TasksFailed(Exception):
    """A task failed too often."""


@dataclass(eq=False)
class _Task:
    number: int
    values: Sequence[str]
    attempts: list[Attempt] = field(default_factory=list)
    failures: int = 0

    @property
    def done(self) -> Attempt | None:
        """The first attempt that succeeded."""
        return next((each for each in self.attempts if each.is_done and each.error is None), None)


class Driver:
    """One life of a query.

    Args:
        number: among the query's drivers.
        job: the one batch that it writes, which is planned; None for all that are left.

    Attributes:
        is_alone: whether no other driver or task was at work when it began.
        workers: the Python workers of its application; a query that failed leaves them to the next life.
        batch: the number of its present batch.
    """

    def __init__(
        self,
        query: Query,
        process: Process,
        number: int,
        workers: list[Worker],
        rng: random.Random,
        *,
        job: int | None,
        is_alone: bool,
    ) -> None:
        self.query, self.process, self.workers = query, process, workers
        self.is_alone = is_alone
        self._number, self._rng, self._job = number, rng, job
        self._only_counts = False
        self.batch = -1
        self.values: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Driver {self.process.node.name} batch={self.batch}>"

    @property
    def name(self) -> str:
        return self.process.node.name

    async def run(self) -> None:
        """Run until the source has no more rows.

        Raises:
            TakenOver: another driver works on the checkpoint.
            TasksFailed, QueryError, KafkaError: a batch failed.
        """
        checkpoint = self.query.checkpoint
        if self._job is not None:
            await self._run_and_finish(self._job, checkpoint.planned[self._job])
            return
        number, rows = checkpoint.next_batch()
        while True:
            if rows is None:
                if checkpoint.end >= self.query.available:
                    return
                rows = checkpoint.draw(self.query.plan.largest_batch, self.query.available, self._rng)
                if not checkpoint.plan(number, rows):
                    raise TakenOver
            await self._run_and_finish(number, rows)
            number, rows = number + 1, None

    async def _run_and_finish(self, number: int, rows: range) -> None:
        self.batch, self.values = number, self.query.values(rows)
        await self._run_batch()
        await self.process.step(LOG)
        if not self.query.checkpoint.finish(number):
            raise TakenOver

    async def _run_batch(self) -> None:
        self.process.node.note(f"begins batch {self.batch}: {' '.join(self.values)}")
        self.query.plans.setdefault(self.batch, []).append(self.values)
        run = "" if self.query.plan.are_writes else f"run-{self._number}"
        batch = SinkBatch(self.query.sink, self.query.query_id, run, self.batch)
        self._only_counts = False
        if self.query.plan.are_writes:
            self._only_counts = await self.process.call(lambda: self._sink(batch).recover())
            self.query.history.counts["writes found written"] += self._only_counts
        tasks = [_Task(index, values) for index, values in enumerate(self._split(self.values))]
        try:
            prepared = await self._run_tasks(batch, tasks)
        except TasksFailed:
            reported = [each.done.outcome for each in tasks if each.done is not None]
            await self._abort(batch, reported)
            raise
        await self._commit(batch, prepared)

    def _split(self, values: Sequence[str]) -> list[list[str]]:
        tasks: list[list[str]] = [[] for _ in range(self._rng.randint(1, 3))]
        for value in values:
            self._rng.choice(tasks).append(value)
        return tasks

    # The tasks

    async def _run_tasks(self, batch: SinkBatch, tasks: list[_Task]) -> list[Prepared]:
        for task in tasks:
            self._begin(batch, task)
        began = self.process.clock()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for task in tasks:
                self._look_at(batch, task, began)
            if all(task.done for task in tasks):
                return [task.done.outcome for task in tasks if task.done is not None]

    def _begin(self, batch: SinkBatch, task: _Task) -> None:
        idle = [each for each in self.workers if each.is_idle and not each.process.is_frozen]
        if not idle:
            idle = [self.query.new_worker()]
            self.workers += idle
        task.attempts.append(
            self._rng.choice(idle).begin(batch, task.number, task.values, only_counts=self._only_counts)
        )

    def _look_at(self, batch: SinkBatch, task: _Task, began: float) -> None:
        if task.done is not None:
            return
        failed = [each for each in task.attempts if each.is_done]
        for each in failed:
            if not isinstance(each.error, (NodeDied, KafkaError, QueryError)):
                raise AssertionError(f"{each} failed: {each.error!r}")
            task.attempts.remove(each)
            task.failures += 1
            self.query.history.counts["attempts that failed"] += 1
        if task.failures >= TASK_FAILURES:
            raise TasksFailed(f"task {task.number} of batch {batch.batch} failed too often")
        if not task.attempts:
            self._begin(batch, task)
        elif self._is_slow(task, began):
            self.query.history.counts["speculative attempts"] += 1
            self._begin(batch, task)

    def _is_slow(self, task: _Task, began: float) -> bool:
        is_late = self.process.clock() - began > SPECULATE_SECONDS
        return self.query.plan.speculates and is_late and len(task.attempts) == 1

    # The end of the batch

    def _sink(self, batch: SinkBatch) -> SinkDriver:
        options = self.query.options
        return SinkDriver(
            self.query.cluster(self.process),
            batch,
            options.delivery_timeout_ms,
            topic=options.topic,
            new_token=lambda: self._rng.randbytes(8),
        )

    async def _commit(self, batch: SinkBatch, prepared: list[Prepared]) -> None:
        try:
            await self.process.call(lambda: self._sink(batch).commit(prepared))
        except Exception:
            await self._abort(batch, prepared)
            raise
        self._report(batch, prepared)

    async def _abort(self, batch: SinkBatch, prepared: list[Prepared]) -> None:
        """As Spark does, whatever failed; the sink itself only logs why it cannot."""
        try:
            await self.process.call(lambda: self._sink(batch).abort(prepared))
        except KafkaError as error:
            self.process.node.note(f"cannot abort: {error}")

    def _report(self, batch: SinkBatch, prepared: list[Prepared]) -> None:
        transactions = frozenset(each.transaction for each in prepared if each.transaction is not None)
        self.process.node.note(f"has committed batch {batch.batch}")
        self.query.history.reported.append(Reported(self.name, self.query.sink, batch.batch, self.values, transactions))
