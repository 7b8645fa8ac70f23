"""The producers of one Python worker. They live as long as the worker does, and serve one task after the other.

A task's transaction stays open until the driver ends it, while the worker's next task writes in another one. So the
worker has several producers for a sink, each with a transactional id of its own:

    PREFIX/QUERY/WORKER/0, PREFIX/QUERY/WORKER/1, …       WORKER is random: no other process ever uses these ids

A producer serves a later task only if that task's batch is at least two above, and its last transaction was committed:
see `protocol`. Else the worker forgets it.

Limits: a worker keeps `_KEPT` idle producers; the transactional ids of forgotten ones expire on the broker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.sink.options import SinkOptions
from barnabas.spark.sink.sink_batch import SinkBatch
from barnabas.spark.sink.sink_transactions import SEPARATOR, was_committed

_KEPT = 64
# Another process has taken the id, or the broker forgot it.
_TAKEN = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@dataclass(slots=True)
class _Idle:
    sink: str
    batch: int
    producer: Producer


class TaskProducers:
    """The producers of this process.

    Args:
        connect: a seam for tests.
        worker: the random part of the transactional ids.
    """

    def __init__(
        self, *, connect: Callable[..., BlockingConnection] = BlockingConnection, worker: str | None = None
    ) -> None:
        self._connect = connect
        self._worker = worker or secrets.token_hex(6)
        self._clusters: dict[tuple[str, str, int], Cluster] = {}
        self._idle: list[_Idle] = []
        self._next = 0

    def __repr__(self) -> str:
        return f"<TaskProducers worker={self._worker} idle={len(self._idle)}>"

    def cluster(self, options: SinkOptions) -> Cluster:
        """Return the connections that the worker's tasks share."""
        key = (options.bootstrap_servers, options.client_id, options.request_timeout_ms)
        if key not in self._clusters:
            self._clusters[key] = open_cluster(options, self._connect)
        return self._clusters[key]

    def begin(self, options: SinkOptions, batch: SinkBatch | None) -> Producer:
        """Return a producer whose transaction may begin; None for `batch` gives one without transactions.

        Raises:
            KafkaError: no coordinator answers, or it rejects the settings.
        """
        if batch is None:
            producer = Producer(self.cluster(options), delivery_timeout_ms=options.delivery_timeout_ms)
            producer.begin()
            return producer
        cluster = self.cluster(options)
        while (idle := self._take(batch)) is not None:
            if not was_committed(cluster, idle.transaction, options.delivery_timeout_ms):
                continue
            try:
                idle.begin()
                return idle
            except KafkaError as error:
                if error.code not in _TAKEN:
                    raise
        producer = Producer(
            cluster,
            transactional_id=SEPARATOR.join((batch.name, self._worker, str(self._next))),
            transaction_timeout_ms=options.transaction_timeout_ms,
            two_phase=True,
            delivery_timeout_ms=options.delivery_timeout_ms,
        )
        self._next += 1
        producer.begin()
        return producer

    def keep(self, batch: SinkBatch, producer: Producer) -> None:
        """Take back the producer of a task that is done."""
        self._idle.append(_Idle(batch.name, batch.batch, producer))
        del self._idle[:-_KEPT]

    def _take(self, batch: SinkBatch) -> Producer | None:
        for each in self._idle:
            if each.sink == batch.name and each.batch < batch.batch - 1:
                self._idle.remove(each)
                return each.producer
        return None


def open_cluster(options: SinkOptions, connect: Callable[..., BlockingConnection] = BlockingConnection) -> Cluster:
    """Return the cluster that the options name; nothing is dialled yet."""
    return Cluster(
        options.bootstrap_servers, client_id=options.client_id, timeout_ms=options.request_timeout_ms, connect=connect
    )


_of_process: dict[int, TaskProducers] = {}


def of_this_process() -> TaskProducers:
    """Return the producers of this process; a fork has none of its parent's."""
    found = _of_process.get(os.getpid())
    if found is None:
        _of_process.clear()
        found = _of_process[os.getpid()] = TaskProducers()
    return found
