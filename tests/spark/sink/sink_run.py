"""Runs a query's batches into the sink without Spark: a driver and its tasks in this process, killed on demand.

The runner keeps Spark's order and rules: a batch is logged as planned, its tasks run, the driver commits, the batch is
logged as done. After a kill the batch that is planned and not done is repeated with the same ids and the same rows, but
its rows may be split among other tasks.

A kill is an exception that no `except Exception` stops, raised before or after the n-th request: like SIGKILL, it sends
nothing more. The workers of a killed run are gone with it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.errors import ConnectionLost
from barnabas.client.offsets import LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from barnabas.client.outcome import results
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.spark.sink.options import SinkOptions, parse_stream_options
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch
from barnabas.spark.sink.task_producers import TaskProducers, open_cluster
from barnabas.spark.sink.task_writer import write_task

Split: TypeAlias = Callable[[Sequence[str]], list[Sequence[str]]]
"""Returns the rows of each task of a batch."""


class Killed(BaseException):
    """The process dies here."""


class Fault(Enum):
    """What happens at a request."""

    KILLED_BEFORE = "killed before it is sent"
    KILLED_AFTER = "killed when the broker has carried it out"
    LOST_BEFORE = "the connection ends before it is sent"
    LOST_AFTER = "the connection ends when the broker has carried it out"


class Watched:
    """Makes connections, counts their requests, and has one of them fail.

    Attributes:
        seen: the names of the requests, in order.
    """

    def __init__(self, at: int | None = None, fault: Fault = Fault.KILLED_BEFORE) -> None:
        self.seen: list[str] = []
        self._at = at
        self._fault = fault

    def connect(self, host: str, port: int, **arguments: Any) -> BlockingConnection:
        return _WatchedConnection(self, host, port, **arguments)

    def count(self, name: str) -> Fault | None:
        self.seen.append(name)
        return self._fault if len(self.seen) - 1 == self._at else None


class _WatchedConnection(BlockingConnection):
    def __init__(self, watched: Watched, host: str, port: int, **arguments: Any) -> None:
        self._watched = watched
        super().__init__(host, port, **arguments)

    def send(self, message: Any, version: int | None = None, *, highest: int | None = None) -> int:
        fault = self._watched.count(type(message).__name__.removesuffix("Request"))
        if fault in (Fault.KILLED_BEFORE, Fault.LOST_BEFORE):
            self._fail_as(fault)
        sent = super().send(message, version, highest=highest)
        if fault is not None:
            self.receive()
            self._fail_as(fault)
        return sent

    def _fail_as(self, fault: Fault) -> None:
        self.close()
        if fault in (Fault.LOST_BEFORE, Fault.LOST_AFTER):
            raise ConnectionLost("the test ends it")
        raise Killed


class Query:
    """A streaming query: its checkpoint survives its runs.

    Args:
        batches: the rows of each batch.
        split: returns the rows of each task of a batch; called for each attempt.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        batches: Sequence[Sequence[str]],
        split: Split,
        query: str,
        **options: str,
    ) -> None:
        given = {"kafka.bootstrap.servers": servers, "topic": topic, "kafka.delivery.timeout.ms": "20000", **options}
        self.options: SinkOptions = parse_stream_options(given)
        self.query = query
        self.done = 0
        self.batches = batches
        self._split = split
        self._runs = 0

    def run(self, connect: Callable[..., BlockingConnection] = BlockingConnection, workers: int = 2) -> None:
        """Run until every batch is done. `Killed` passes through."""
        self.begin(connect, workers)
        try:
            while self.done < len(self.batches):
                self.run_batch(self.done, connect)
                self.done += 1
        finally:
            for worker in self.workers:
                worker.cluster(self.options).close()

    def begin(self, connect: Callable[..., BlockingConnection] = BlockingConnection, workers: int = 2) -> None:
        """Begin a run, with workers of its own; the caller runs its batches."""
        self._runs += 1
        self.workers = [TaskProducers(connect=connect) for _ in range(workers)]

    def run_batch(self, number: int, connect: Callable[..., BlockingConnection] = BlockingConnection) -> None:
        """Run one attempt of a batch."""
        batch = self.batch(number)
        prepared = self.run_tasks(batch)
        self.commit(batch, prepared, connect)

    def batch(self, number: int) -> SinkBatch:
        return SinkBatch(self.options.sink_name(self.query), self.query, f"run-{self._runs}", number)

    def run_tasks(self, batch: SinkBatch) -> list[Prepared]:
        return [
            write_task(self.workers[task % len(self.workers)], self.options, batch, task, [rows_of(values)])
            for task, values in enumerate(self._split(self.batches[batch.batch]))
        ]

    def commit(
        self,
        batch: SinkBatch,
        prepared: list[Prepared],
        connect: Callable[..., BlockingConnection] = BlockingConnection,
    ) -> None:
        with open_cluster(self.options, connect) as cluster:
            driver = self.driver(cluster, batch)
            try:
                driver.commit(prepared)
            except Exception:
                # As Spark does, whatever failed.
                driver.abort(prepared)
                raise

    def driver(self, cluster: Cluster, batch: SinkBatch) -> SinkDriver:
        options = self.options
        return SinkDriver(
            cluster,
            batch,
            options.delivery_timeout_ms,
            topic=options.topic,
            fail_on_different=options.fail_on_different,
        )


def rows_of(values: Sequence[str]) -> pa.RecordBatch:
    """Return rows whose key is their value."""
    column = pa.array([value.encode() for value in values], pa.binary())
    return pa.record_batch({"key": column, "value": column})


def random_split(seed: int) -> Split:
    """Return a function that splits rows into one to four tasks, each time another way."""
    chance = random.Random(seed)

    def split(values: Sequence[str]) -> list[Sequence[str]]:
        tasks: list[list[str]] = [[] for _ in range(chance.randint(1, 4))]
        for value in values:
            chance.choice(tasks).append(value)
        return list(tasks)

    return split


def committed(servers: str, topic: str) -> Counter[str]:
    """Return how often each value is in the topic, for a reader of committed records; no transaction may be open."""
    with Cluster(servers, timeout_ms=10_000) as cluster:
        return committed_values(cluster, topic)


def committed_values(cluster: Cluster, topic: str) -> Counter[str]:
    """Return what `committed` does."""
    found: Counter[str] = Counter()
    count = len(cluster.metadata([topic]).topics[topic].partitions)
    partitions = [TopicPartition(topic, index) for index in range(count)]
    deadline, attempt = cluster.deadline(), -4
    # A broker answers EndTxn before the markers are written.
    while (ends := _ends(cluster, partitions, READ_UNCOMMITTED)) != _ends(cluster, partitions, READ_COMMITTED):
        assert cluster.pause(attempt, deadline), "a transaction was left open"
        attempt += 1
    for partition in partitions:
        found.update(_values(cluster, partition, ends[partition]))
    return found


def _ends(cluster: Cluster, partitions: list[TopicPartition], isolation_level: int) -> dict[TopicPartition, int]:
    found = results(list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation_level=isolation_level))
    return {partition: each.offset for partition, each in found.items()}


def _values(cluster: Cluster, partition: TopicPartition, end: int) -> list[str]:
    values: list[str] = []
    offset = 0
    while offset < end:
        request = messages.FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            topics=[
                messages.FetchRequest.FetchTopic(
                    topic=partition.topic,
                    partitions=[
                        messages.FetchRequest.FetchPartition(
                            partition=partition.partition, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
            ],
        )
        answer = cluster.connection(cluster.leader(*partition)).request(request, highest=12)
        data = answer.responses[0].partitions[0]
        aborted = sorted((a.first_offset, a.producer_id) for a in data.aborted_transactions or ())
        offset = _read(memoryview(data.records or b""), offset, aborted, values)
    return values


def _read(records: memoryview, offset: int, aborted: list[tuple[int, int]], values: list[str]) -> int:
    open_aborted: set[int] = set()
    for at, header in iter_batches(records):
        while aborted and aborted[0][0] <= header.last_offset:
            open_aborted.add(aborted.pop(0)[1])
        if header.is_control:
            open_aborted.discard(header.producer_id)
        elif header.next_offset > offset and header.producer_id not in open_aborted:
            values += [bytes(r.value).decode() for r in iter_records(records, at, header=header) if r.value is not None]
        offset = max(offset, header.next_offset)
    return offset
