"""The producers of one Python worker. They live as long as the worker does, and serve one task after the other.

A task's transaction stays open until the driver ends it, while the worker's next task writes in another one. So the
worker has several producers for a sink, each with a transactional id of its own:

    PREFIX/QUERY/WORKER/0, PREFIX/QUERY/WORKER/1, …       WORKER is random, and names the process that made the id

An id serves a later task only if that task's batch is at least two above, and the id's last transaction was committed:
see `protocol`. Else the worker forgets it. When the process ends, another one of its executor may adopt its ids
(`kept_ids`).

Limits: a worker keeps `_KEPT` ids at rest; forgotten ones expire on the broker.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Iterator
from typing import TypeAlias

from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.client.producer_transactions import ProducerIdentity, Transaction
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.security_options import SecurityOptions
from barnabas.spark.sink.kept_ids import KeptId, KeptIds, folder_of_this_user
from barnabas.spark.sink.options import SinkOptions
from barnabas.spark.sink.sink_batch import SinkBatch
from barnabas.spark.sink.sink_transactions import was_committed
from barnabas.words.sink_names import SEPARATOR

logger = logging.getLogger("barnabas.spark")

_KEPT = 64
# Another process has taken the id, or the broker forgot it.
_TAKEN = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


class TaskProducers:
    """The producers of this process.

    Args:
        connect: a seam for tests.
        worker: the random part of the transactional ids.
        kept: keeps ids that are at rest for a later worker; None keeps them for this process only.
    """

    def __init__(
        self,
        *,
        connect: Callable[..., BlockingConnection] = BlockingConnection,
        worker: str | None = None,
        kept: KeptIds | None = None,
    ) -> None:
        self._connect = connect
        self._worker = worker or new_worker()
        self._kept = kept
        self._clusters: dict[_Connections, Cluster] = {}
        self._at_rest: list[KeptId] = []
        self._next = 0

    def __repr__(self) -> str:
        return f"<TaskProducers worker={self._worker} at_rest={len(self._at_rest)}>"

    def cluster(self, options: SinkOptions) -> Cluster:
        """Return the connections that the worker's tasks share."""
        key = _connections(options)
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
        for transaction in self._transactions_at_rest(options, batch):
            if not was_committed(self.cluster(options), transaction, options.delivery_timeout_ms):
                continue
            producer = self._producer(options, transaction.transactional_id)
            producer.identity = ProducerIdentity(transaction.producer_id, transaction.epoch)
            try:
                producer.begin()
                return producer
            except KafkaError as error:
                if error.code not in _TAKEN:
                    raise
        producer = self._producer(options, SEPARATOR.join((batch.name, self._worker, str(self._next))))
        self._next += 1
        producer.begin()
        return producer

    def keep(self, options: SinkOptions, batch: SinkBatch, producer: Producer) -> None:
        """Take back the producer of a task that is done."""
        self._at_rest.append(KeptId(options.bootstrap_servers, batch.name, batch.batch, producer.transaction))
        self._save()

    def _producer(self, options: SinkOptions, transactional_id: str) -> Producer:
        return Producer(
            self.cluster(options),
            transactional_id=transactional_id,
            transaction_timeout_ms=options.transaction_timeout_ms,
            two_phase=True,
            delivery_timeout_ms=options.delivery_timeout_ms,
        )

    def _transactions_at_rest(self, options: SinkOptions, batch: SinkBatch) -> Iterator[Transaction]:
        """Take ids out of rest, those of workers that are gone after this worker's own, and yield the last transaction of each."""

        def fits(each: KeptId) -> bool:
            return (each.servers, each.sink) == (options.bootstrap_servers, batch.name) and each.batch < batch.batch - 1

        while True:
            found = next(filter(fits, self._at_rest), None)
            if found is None:
                adopted = self._kept.adopt(fits) if self._kept is not None else []
                if not adopted:
                    return
                self._at_rest += adopted
                continue
            self._at_rest.remove(found)
            self._save()
            yield found.transaction

    def _save(self) -> None:
        del self._at_rest[:-_KEPT]
        if self._kept is not None:
            try:
                self._kept.save(self._at_rest)
            except OSError as error:
                logger.warning("transactional ids of idle workers are not kept: %s", error)
                self._kept = None


def open_cluster(options: SinkOptions, connect: Callable[..., BlockingConnection] = BlockingConnection) -> Cluster:
    """Return the cluster that the options name; nothing is dialled yet."""
    return Cluster(
        options.bootstrap_servers,
        client_id=options.client_id,
        timeout_ms=options.request_timeout_ms,
        connect=connect,
        security=options.security.client(),
    )


_Connections: TypeAlias = tuple[str, str, int, SecurityOptions]


def _connections(options: SinkOptions) -> _Connections:
    """Return what two queries of a process must have in common to share connections: also who logs in."""
    return options.bootstrap_servers, options.client_id, options.request_timeout_ms, options.security


_lasting: dict[tuple[int, _Connections], Cluster] = {}


@contextlib.contextmanager
def lasting_cluster(options: SinkOptions) -> Iterator[Cluster]:
    """Lend the connections of this process of the driver, which outlive a batch; an error closes them.

    Spark plans and commits each batch in such a process, and keeps it for the next batch.
    """
    key = (os.getpid(), _connections(options))
    cluster = _lasting.get(key)
    if cluster is None:
        cluster = _lasting[key] = open_cluster(options)
    try:
        yield cluster
    except BaseException:
        # A request may be unanswered, and what the cluster knows may be old.
        _lasting.pop(key).close()
        raise


_of_process: dict[int, TaskProducers] = {}


def of_this_process() -> TaskProducers:
    """Return the producers of this process; a fork has none of its parent's."""
    found = _of_process.get(os.getpid())
    if found is None:
        _of_process.clear()
        worker = new_worker()
        found = _of_process[os.getpid()] = TaskProducers(worker=worker, kept=kept_ids(worker))
    return found


def new_worker() -> str:
    """Return a name that no other worker has."""
    return secrets.token_hex(6)


def kept_ids(worker: str) -> KeptIds | None:
    """Return the file of a worker's ids; None where none can be kept."""
    folder = folder_of_this_user()
    if folder is None:
        return None
    try:
        return KeptIds(folder, worker)
    except OSError as error:
        logger.info("transactional ids of idle workers are not kept: %s", error)
        return None
