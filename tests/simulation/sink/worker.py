"""A Python worker of a simulated executor: it runs the sink's own `write_task`, one task after the other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.client.cluster import Cluster
from barnabas.spark.sink.options import SinkOptions
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch
from barnabas.spark.sink.task_producers import TaskProducers
from barnabas.spark.sink.task_writer import write_task
from tests.simulation.sink.process import Process
from tests.spark.sink.sink_run import rows_of

if TYPE_CHECKING:
    import pyarrow as pa


class _Producers(TaskProducers):
    """Producers whose connections are the process's."""

    def __init__(self, process: Process, bootstrap: str, worker: str) -> None:
        super().__init__(worker=worker)
        self._process, self._bootstrap = process, bootstrap
        self._cluster: Cluster | None = None

    def cluster(self, options: SinkOptions) -> Cluster:
        if self._cluster is None:
            self._cluster = self._process.cluster(self._bootstrap, options.client_id, options.request_timeout_ms)
        return self._cluster


class Attempt:
    """An attempt of a task: `outcome` is ready when `is_done`."""

    def __init__(self, task: int, values: Sequence[str], worker: Worker, future: asyncio.Future[Prepared]) -> None:
        self.task, self.values, self.worker = task, values, worker
        self._future = future
        # Nobody has to look at an attempt's error.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def __repr__(self) -> str:
        return f"<Attempt of task {self.task} on {self.worker.process.node.name}>"

    @property
    def is_done(self) -> bool:
        return self._future.done()

    @property
    def error(self) -> BaseException | None:
        return self._future.exception() if self._future.done() else None

    @property
    def outcome(self) -> Prepared:
        return self._future.result()


class Worker:
    """A worker's process.

    Args:
        slowness: the longest pause between two parts of a task's rows, in seconds.
    """

    def __init__(
        self,
        process: Process,
        bootstrap: str,
        options: SinkOptions,
        rng: random.Random,
        *,
        slowness: float,
        rows_at_a_time: int,
    ) -> None:
        self.process = process
        self._options, self._rng, self._slowness = options, rng, slowness
        self._rows_at_a_time = rows_at_a_time
        self._producers = _Producers(process, bootstrap, process.node.name.replace(" ", ""))
        self._attempt: Attempt | None = None

    def __repr__(self) -> str:
        return f"<Worker {self.process.node.name}>"

    @property
    def is_idle(self) -> bool:
        return self.process.is_up and (self._attempt is None or self._attempt.is_done)

    @property
    def is_busy(self) -> bool:
        return self.process.is_up and not self.is_idle

    def begin(self, batch: SinkBatch, task: int, values: Sequence[str], *, only_counts: bool) -> Attempt:
        """Begin an attempt of a task."""
        self.process.node.note(f"begins task {task} of batch {batch.batch}: {' '.join(values)}")
        future = self.process.node.run(self.process.call(lambda: self._write(batch, task, values, only_counts)))
        self._attempt = Attempt(task, values, self, future)
        return self._attempt

    def _write(self, batch: SinkBatch, task: int, values: Sequence[str], only_counts: bool) -> Prepared:
        return write_task(
            self._producers,
            self._options,
            batch,
            task,
            self._parts(values),
            now_ms=self.process.now_ms,
            only_counts=only_counts,
        )

    def _parts(self, values: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(values), self._rows_at_a_time):
            if self._slowness:
                self.process.sleep(self._rng.random() * self._slowness)
            yield rows_of(values[begin : begin + self._rows_at_a_time])
