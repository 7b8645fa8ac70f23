"""A task's rows on their way to a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.options import parse_stream_options
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch
from barnabas.spark.sink.task_producers import TaskProducers
from barnabas.spark.sink.task_writer import write_task
from tests.spark.sink.sink_run import committed, rows_of

pytestmark = pytest.mark.slow
BATCH = SinkBatch("s", "q", "r", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def write(broker: barnabas.Broker, topic: str, batch: SinkBatch | None, rows, **options: str) -> Prepared:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, **options}
    return write_task(TaskProducers(), parse_stream_options(given), batch, 0, rows)


def test_at_least_once_is_there_at_once(broker):
    broker.create_topic("plain", partitions=3)
    found = write(broker, "plain", None, [rows_of(["a", "b"]), rows_of([]), rows_of(["c"])])
    assert found == Prepared(None, 3)
    assert committed(broker.bootstrap_servers, "plain") == {"a": 1, "b": 1, "c": 1}


def test_exactly_once_stays_open(broker):
    broker.create_topic("open")
    found = write(broker, "open", BATCH, [rows_of(["a"])])
    assert found.rows == 1
    assert found.transaction is not None
    with Admin(broker.bootstrap_servers) as admin:
        described = admin.describe_transactions([found.transaction.transactional_id])
    assert [each.state for each in described.values()] == ["Ongoing"]  # type: ignore[union-attr]


def test_rows_that_are_only_counted_have_the_same_digest(broker):
    broker.create_topic("counted")
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "counted"}
    counted = write_task(
        TaskProducers(), parse_stream_options(given), BATCH, 0, [rows_of(["a", "b"])], only_counts=True
    )
    assert committed(broker.bootstrap_servers, "counted") == {}
    written = write(broker, "counted", BATCH, [rows_of(["b"]), rows_of(["a"])])
    assert counted == Prepared(None, 2, digest=written.digest)
    assert written.digest


def test_without_rows_nothing_begins(broker):
    assert write(broker, "nowhere", BATCH, [rows_of([])]) == Prepared(None, 0)


def test_a_task_that_fails_leaves_nothing_open(broker):
    broker.create_topic("failed")

    def rows():
        yield rows_of(["a"] * 10)
        raise ZeroDivisionError("the user's code")

    with pytest.raises(ZeroDivisionError):
        write(broker, "failed", BATCH, rows())
    assert committed(broker.bootstrap_servers, "failed") == {}


def test_several_topics_and_more_rows_than_are_kept_in_memory(broker):
    for topic in ("one", "two"):
        broker.create_topic(topic, partitions=2)

    def rows():
        for number in range(12):
            values = [f"{number}-{i}".ljust(1000) for i in range(1000)]
            topics = pa.array(["two" if number == 10 else "one"] * 1000)
            yield pa.record_batch({"value": values, "topic": topics})

    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "delivery": "at-least-once"}
    assert write_task(TaskProducers(), parse_stream_options(given), None, 0, rows()).rows == 12_000
    counts = {topic: committed(broker.bootstrap_servers, topic) for topic in ("one", "two")}
    assert {topic: len(found) for topic, found in counts.items()} == {"one": 11_000, "two": 1_000}
    assert set(counts["one"].values()) == {1}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(broker, codec):
    broker.create_topic(codec)
    write(broker, codec, None, [rows_of(["x" * 1000] * 50)], **{"kafka.compression.type": codec})
    assert committed(broker.bootstrap_servers, codec) == {"x" * 1000: 50}


def test_a_topic_that_only_a_row_names_is_created(broker):
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "delivery": "at-least-once"}
    rows = pa.record_batch({"value": ["a"], "topic": ["named-by-a-row"]})
    assert write_task(TaskProducers(), parse_stream_options(given), None, 0, [rows]).rows == 1
    assert committed(broker.bootstrap_servers, "named-by-a-row") == {"a": 1}


def test_refusals_say_what_to_do(broker):
    broker.create_topic("tiny", config={"max.message.bytes": 1000})
    with pytest.raises(QueryError, match=r"larger than the topic's max\.message\.bytes"):
        write(broker, "tiny", None, [rows_of(["x" * 5000])])
    with pytest.raises(QueryError, match=r"'not\\na topic' is not a valid topic name"):
        write(broker, "not\na topic", None, [rows_of(["x"])])
    with pytest.raises(QueryError, match=r"above the brokers' transaction\.max\.timeout\.ms"):
        write(broker, "tiny", BATCH, [rows_of(["x"])], **{"kafka.transaction.timeout.ms": "99999999"})
