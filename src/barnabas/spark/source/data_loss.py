"""Records that the query should read are gone: `failOnDataLoss` decides, as in Spark's own source.

- `true`: the query fails.
- `false`: the query continues without them. The process that noticed logs a warning: the driver's when a query is planned, an
  executor's when a task reads. With `lossesTopic` it also writes a record to that topic for each range of offsets, and
  continues only when the broker has it. Driver and executors share nothing but the cluster, so the record goes there.

A record's key is the partition, `orders-0`, and its value is JSON:

    {"topic": "orders", "partition": 0, "from": 10, "to": 15, "reason": "orders-0 now begins at offset 15",
     "at": "2026-11-22T10:49:54.063Z", "query": "6b4f…", "batch": "7"}

`to` is the first offset after the range, or null if it is unknown because the partition is gone. `query` and `batch`
are Spark's, and null in the driver, where Spark does not provide them. A batch that is repeated may record a range again.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.partition_records import append_batch
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.spark.denied import Access, denied
from barnabas.spark.named_topics import nearest_topic
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.source.options import SourceOptions

logger = logging.getLogger("barnabas.spark")


class DataLoss(QueryError):
    """Records that the query should read are no longer there."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The offsets `start <= offset < end` of a partition that the query skips; `end` is None if it is unknown."""

    topic: str
    partition: int
    start: int
    end: int | None


class LossReports:
    """Fails the query, or records the ranges that it skips. It connects only to record something.

    Args:
        options: the query's options.
        connect, clock_ns: seams for tests; `clock_ns` is nanoseconds since 1970.
    """

    def __init__(
        self,
        options: SourceOptions,
        connect: Callable[..., BlockingConnection] = BlockingConnection,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._options = options
        self._connect = connect
        self._clock_ns = clock_ns
        self._reported: set[tuple[str, Loss]] = set()

    def __repr__(self) -> str:
        return f"<LossReports fail={self._options.fail_on_data_loss} topic={self._options.losses_topic}>"

    def check(self) -> None:
        """Check, before anything is lost, that losses can be recorded.

        Raises:
            ValueError: `lossesTopic` does not exist.
            KafkaError: it cannot be written to.
        """
        topic = self._options.losses_topic
        if topic is None or self._options.fail_on_data_loss:
            return
        cluster = self._cluster()
        try:
            error = cluster.metadata([topic]).errors.get(topic)
            if error is not None and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                meant = nearest_topic(cluster, topic)
                raise ValueError(f"lossesTopic: topic {topic} does not exist; create it, then start the query{meant}")
            if error is not None:
                raise denied(error, Access("Write", "topic", topic))
        finally:
            cluster.close()

    def report(self, reason: str, losses: Sequence[Loss], what: str | None = None) -> None:
        """Report records that are gone. The caller continues without them.

        Args:
            reason: why they are gone, in a sentence without a full stop.
            losses: which records.
            what: the sentence for the user; None for `reason`.

        Raises:
            DataLoss: `failOnDataLoss` is true.
            KafkaError: they could not be recorded.
        """
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{what or reason}. {self._options.words.gone}")
        new = [loss for loss in losses if (reason, loss) not in self._reported]
        if losses and not new:
            return
        skips = self._options.words.skips
        logger.warning("%s; continuing without them, because %s", what or reason, skips)
        if self._options.losses_topic is not None and new:
            self._write(self._options.losses_topic, reason, new)
        self._reported.update((reason, loss) for loss in new)

    def _write(self, topic: str, reason: str, losses: Sequence[Loss]) -> None:
        now_ns = self._clock_ns()
        records = [
            (now_ns // 1_000_000, f"{loss.topic}-{loss.partition}".encode(), _value(reason, loss, now_ns), ())
            for loss in losses
        ]
        batch = build_batch(records)
        cluster = self._cluster()
        try:
            cluster.retry(lambda: append_batch(cluster, TopicPartition(topic, 0), batch))
        except KafkaError as failure:
            error = denied(failure, Access("Write", "topic", topic))
            raise KafkaError(error.code, f"cannot record what was skipped in topic {topic}: {error.message}") from None
        finally:
            cluster.close()

    def _cluster(self) -> Cluster:
        consumer = self._options.consumer
        return Cluster(
            self._options.bootstrap_servers,
            client_id=consumer.client_id,
            timeout_ms=consumer.request_timeout_ms,
            connect=self._connect,
            security=self._options.security.client(),
        )


def _value(reason: str, loss: Loss, now_ns: int) -> bytes:
    moment = datetime.fromtimestamp(now_ns // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")
    table = {
        "topic": loss.topic,
        "partition": loss.partition,
        "from": loss.start,
        "to": loss.end,
        "reason": reason,
        "at": moment.replace("+00:00", "Z"),
        "query": _task_property("sql.streaming.queryId"),
        "batch": _task_property("streaming.sql.batchId"),
    }
    return json.dumps(table, ensure_ascii=False).encode()


def _task_property(name: str) -> str | None:
    # Only a process of Spark's has a task, and it has imported pyspark. `barnabas.read` does without.
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.TaskContext.get()
    return None if context is None else context.getLocalProperty(name)
