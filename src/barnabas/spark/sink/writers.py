"""The writers that Spark calls: `df.writeStream.format("barnabas")` and `df.write.format("barnabas")`.

Spark makes a writer in a planning process, pickles it, and calls `write` in each task. It calls `commit` or `abort` in
a process of the driver: for a stream on a new writer, for a batch on the pickled one. So a writer holds only options,
a batch's also whether it is written already, and the tasks' messages bring the driver the rest.

A stream's ids are local properties of the task. A batch write has none; its options `queryId` and `batchId` stand for them.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.client.cluster import Cluster
from barnabas.client.configs import ConfigResource, ResourceType, describe_configs
from barnabas.client.outcome import result
from barnabas.protocol.errors import KafkaError
from barnabas.spark.denied import is_denied
from barnabas.spark.named_topics import partition_count
from barnabas.spark.plain_errors import plain_errors
from barnabas.spark.sink.decision_topic import create_decision_topic
from barnabas.spark.sink.new_topics import create_missing
from barnabas.spark.sink.options import Delivery, SinkOptions, parse_batch_options, parse_stream_options
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.schema import check_schema
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch
from barnabas.spark.sink.task_producers import lasting_cluster, of_this_process

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("barnabas.spark")

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_RUN_ID = "spark.jobGroup.id"
_GIVEN_UP_S = 3.0
"""So long a task may live on when its job has failed: then Spark has killed its worker (`spark.python.task.killTimeout`, 2 s)."""


class TaskMessage(WriterCommitMessage):
    """The report of a task: the batch it worked for, None for delivery at least once, and its transaction."""

    def __init__(self, batch: SinkBatch | None, prepared: Prepared) -> None:
        self.batch = batch
        self.prepared = prepared

    def __repr__(self) -> str:
        return f"<TaskMessage batch={self.batch} rows={self.prepared.rows}>"


class StreamSink(DataSourceStreamArrowWriter):
    """Writes the batches of a stream."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def __repr__(self) -> str:
        return f"<StreamSink servers={self._options.bootstrap_servers} topic={self._options.topic}>"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one task's rows; on an executor."""
        context = TaskContext.get()
        assert context is not None, "Spark calls write in a task"
        batch = None
        if self._options.delivery is Delivery.EXACTLY_ONCE:
            query = context.getLocalProperty(_QUERY_ID)
            number = context.getLocalProperty(_BATCH_ID)
            assert query is not None, "a stream's tasks have the query's id"
            assert number is not None, "a stream's tasks have the batch's id"
            run = context.getLocalProperty(_RUN_ID) or ""
            batch = SinkBatch(self._options.sink_name(query), query, run, int(number))
        return _write(self._options, batch, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make the batch's rows visible; on the driver, when every task is done."""
        _commit(self._options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Abort the transactions of a batch that failed."""
        _abort(self._options, messages, self._known(batchId))

    def _known(self, number: int) -> SinkBatch | None:
        """Return the batch if no task reports it: the checkpoint has the query's id, where this process can read it."""
        query = query_of(self._options.checkpoint)
        if query is None or self._options.delivery is not Delivery.EXACTLY_ONCE:
            return None
        return SinkBatch(self._options.sink_name(query), query, "", number)


class BatchSink(DataSourceArrowWriter):
    """Writes a DataFrame once."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._is_written = False
        batch = self._batch
        if batch is not None:
            with lasting_cluster(options) as cluster:
                self._is_written = _driver(options, cluster, batch).recover()
            if self._is_written:
                logger.warning(
                    "batch %d of %s was written before, nothing is written again: its rows are only compared",
                    batch.batch,
                    batch.name,
                )

    def __repr__(self) -> str:
        return f"<BatchSink servers={self._options.bootstrap_servers} topic={self._options.topic}>"

    @property
    def _batch(self) -> SinkBatch | None:
        options = self._options
        if options.delivery is not Delivery.EXACTLY_ONCE:
            return None
        assert options.query is not None, "the options were checked"
        assert options.batch is not None, "the options were checked"
        return SinkBatch(options.sink_name(options.query), options.query, "", options.batch)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write one task's rows; on an executor."""
        return _write(self._options, self._batch, iterator, only_counts=self._is_written)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the rows visible; on the driver, when every task is done."""
        _commit(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the transactions of a write that failed."""
        _abort(self._options, messages, self._batch)


def query_of(checkpoint: str | None) -> str | None:
    """Return the id of the query whose checkpoint this is; None where this process cannot read it."""
    try:
        return str(json.loads(_metadata(checkpoint or ""))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _metadata(checkpoint: str) -> bytes:
    scheme, separator, place = checkpoint.partition("://")
    if separator and scheme in ("s3", "s3a"):
        from pyarrow.fs import FileSystem  # half a second, which only a failure pays

        files, folder = FileSystem.from_uri(f"s3://{place}")
        with files.open_input_stream(f"{folder}/metadata") as metadata:
            return bytes(metadata.readall())
    folder = checkpoint.removeprefix("file://").removeprefix("file:")
    if not folder or "://" in folder:
        raise ValueError(f"no reader of {scheme}")
    return (Path(folder) / "metadata").read_bytes()


def stream_sink(given: Mapping[str, str], columns: Mapping[str, str]) -> StreamSink:
    """Return the writer of a stream.

    Args:
        given: the user's options.
        columns: types by name, as Spark's `simpleString` writes them.

    Raises:
        ValueError: an option or a column is not right; the message is for the user.
        QueryError: the topic does not exist, and the brokers do not create it.
        KafkaError: no broker answers, or it does not describe the topic.
    """
    options = parse_stream_options(given)
    _check(options, columns)
    return StreamSink(options)


def batch_sink(given: Mapping[str, str], columns: Mapping[str, str], *, overwrite: bool) -> BatchSink:
    """Return the writer of a batch; arguments and errors as in `stream_sink`."""
    if overwrite:
        raise ValueError('mode("overwrite") is not supported: a topic only grows; write with mode("append")')
    options = parse_batch_options(given)
    _check(options, columns)
    if options.delivery is Delivery.AT_LEAST_ONCE and "delivery" not in {name.lower() for name in given}:
        logger.warning(
            "this write is at least once: rows of a task that is repeated are there twice. The options queryId and"
            " batchId make it exactly once; delivery=at-least-once silences this line"
        )
    return BatchSink(options)


def _check(options: SinkOptions, columns: Mapping[str, str]) -> None:
    check_schema(columns, options.topic)
    with lasting_cluster(options) as cluster:
        create_missing(cluster, options.new_topics, options.delivery_timeout_ms)
        if options.topic is not None:
            partition_count(cluster, options.topic, options.delivery_timeout_ms)
        if options.delivery is Delivery.EXACTLY_ONCE:
            # Else a user who may not create it learns so when the tasks of the first batch are done.
            create_decision_topic(cluster, options.delivery_timeout_ms)
            if options.chooses_timeout:
                _check_timeout(cluster, options)


def _check_timeout(cluster: Cluster, options: SinkOptions) -> None:
    name = "transaction.max.timeout.ms"
    broker = ConfigResource(ResourceType.BROKER, str(next(iter(cluster.retry(cluster.nodes)))))
    try:
        entries = result(describe_configs(cluster, [broker], names=[name])[broker])
    except KafkaError as error:
        if is_denied(error):  # the first task says it then
            return
        raise
    largest = next((int(entry.value) for entry in entries if entry.name == name and entry.value), None)
    if largest is not None and options.transaction_timeout_ms > largest:
        raise ValueError(
            f"kafka.transaction.timeout.ms {options.transaction_timeout_ms} is above the brokers' {name} {largest}:"
            " lower it, or raise the brokers' limit"
        )


def _write(
    options: SinkOptions, batch: SinkBatch | None, rows: Iterator[pa.RecordBatch], *, only_counts: bool = False
) -> TaskMessage:
    # Only executors need pyarrow and numpy, not the process that plans a query.
    from barnabas.spark.sink.task_writer import write_task

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    with plain_errors():
        return TaskMessage(batch, write_task(of_this_process(), options, batch, task, rows, only_counts=only_counts))


def _commit(options: SinkOptions, messages: Sequence[Any]) -> None:
    batch, prepared = _reported(messages)
    if batch is not None:
        with plain_errors(), lasting_cluster(options) as cluster:
            _driver(options, cluster, batch).commit(prepared)


def _abort(options: SinkOptions, messages: Sequence[Any], known: SinkBatch | None) -> None:
    reported, prepared = _reported(messages)
    batch = reported or known
    if batch is None:
        return
    with lasting_cluster(options) as cluster:
        try:
            driver = _driver(options, cluster, batch)
            driver.abort(prepared)
            # The failed task has no report. Others without one may be at work yet, because Spark does not wait for them: such a
            # task may begin its transaction now, and a worker that is killed does not end it.
            if messages.count(None) > 1:
                time.sleep(_GIVEN_UP_S)
                driver.abort(())
        except KafkaError as error:
            logger.warning("transactions of a failed batch stay open until the next batch: %s", error)


def _reported(messages: Sequence[Any]) -> tuple[SinkBatch | None, list[Prepared]]:
    """Return the exactly-once batch that tasks reported, and what they prepared; None if none did."""
    known = [message for message in messages if message is not None and message.batch is not None]
    return (known[0].batch if known else None), [message.prepared for message in known]


def _driver(options: SinkOptions, cluster: Cluster, batch: SinkBatch) -> SinkDriver:
    return SinkDriver(
        cluster,
        batch,
        options.delivery_timeout_ms,
        topic=options.topic,
        fail_on_different=options.fail_on_different,
    )
