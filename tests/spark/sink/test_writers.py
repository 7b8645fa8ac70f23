"""Rows that Spark writes, and who sees them; the same on barnabas and on Apache Kafka."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.spark import start
from tests.spark.session import SPARK, Topics
from tests.spark.sink.sink_run import committed

pytestmark = SPARK


def copied(spark: Any, topics: Topics, source: str, target: str, folder: Path, **options: str) -> Any:
    """Return a stream that copies a topic in batches of 40."""
    rows = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", topics.servers)
        .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=40)
        .load()
        .selectExpr("key", "value", "array(struct('offset' as key, cast(string(offset) as binary) as value)) headers")
    )
    return (
        rows.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", topics.servers)
        .options(topic=target, checkpointLocation=str(folder / "checkpoint"), **options)
        .trigger(availableNow=True)
    )


def run(writer: Any) -> Any:
    query = start(writer)
    query.awaitTermination()
    return query


def test_a_stream_into_a_topic(spark, topics, tmp_path):
    source, target = topics.create(partitions=2), topics.create(partitions=3)
    topics.produce(source, [{"key": f"k{i % 9}", "value": f"v{i}"} for i in range(100)])
    query = run(copied(spark, topics, source, target, tmp_path))
    assert committed(topics.servers, target) == {f"v{i}": 1 for i in range(100)}
    rows = (
        spark.read.format("barnabas")
        .options(subscribe=target, includeHeaders="true", **{"kafka.bootstrap.servers": topics.servers})
        .load()
        .selectExpr("string(key) k", "partition", "headers[0].key h", "string(headers[0].value) o")
        .collect()
    )
    by_key = {row.k: row.partition for row in rows}
    assert all(by_key[row.k] == row.partition for row in rows)
    assert {row.h for row in rows} == {"offset"}
    with Admin(topics.servers) as admin:
        ids = [each.transactional_id for each in admin.list_transactions() if str(query.id) in each.transactional_id]
    # The driver's, and those of two tasks in two or three batches: workers keep theirs.
    assert 3 <= len(ids) <= 7
    topics.produce(source, [{"value": "more"}])
    run(copied(spark, topics, source, target, tmp_path))
    assert committed(topics.servers, target) == {"more": 1, **{f"v{i}": 1 for i in range(100)}}


def test_a_batch_that_fails_is_written_once_in_the_end(spark, topics, tmp_path):
    source, target = topics.create(partitions=2), topics.create()
    topics.produce(source, [{"value": f"v{i}", "partition": i % 2} for i in range(60)])
    broken = tmp_path / "broken"
    broken.touch()
    path = str(broken)

    def fail_once(batches: Any) -> Any:
        import os

        for batch in batches:
            yield batch
            if os.path.exists(path) and b"v59" in batch.column("value").to_pylist():
                os.remove(path)
                raise RuntimeError("the user's code")

    def writer() -> Any:
        rows = (
            spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", topics.servers)
            .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=40)
            .load()
            .select("value")
            .mapInArrow(fail_once, "value binary")
        )
        options = {"topic": target, "checkpointLocation": str(tmp_path / "checkpoint")}
        return (
            rows.writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", topics.servers)
            .options(**options)
            .trigger(availableNow=True)
        )

    with pytest.raises(Exception, match="the user's code"):
        run(writer())
    run(writer())
    assert committed(topics.servers, target) == {f"v{i}": 1 for i in range(60)}


def test_batch_writes(spark, topics):
    target = topics.create(partitions=2)
    rows = spark.range(50).selectExpr("string(id) as value")

    def write(**options: Any) -> None:
        writer = rows.write.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
        writer.options(**{"topic": target, **options}).mode("append").save()

    write(queryId=target, batchId=3)
    write(queryId=target, batchId=3)
    assert committed(topics.servers, target) == {str(i): 1 for i in range(50)}
    write(queryId=target, batchId=4)
    write()
    assert committed(topics.servers, target) == {str(i): 3 for i in range(50)}
    with pytest.raises(Exception, match=r"batch 3 of query .* is older than batch 4"):
        write(queryId=target, batchId=3)
    rows = spark.range(51).selectExpr("string(id) as value")
    sentence = r"QueryError: batch 4 of query .* was written before with 50 rows \(digest .*\), and now it has 51 rows"
    with pytest.raises(Exception, match=sentence) as caught:
        write(queryId=target, batchId=4)
    assert "Traceback" not in str(caught.value)
    write(queryId=target, batchId=4, failOnDifferentBatch="false")
    rows = rows.where("false")
    with pytest.raises(
        Exception, match=rf"was written before into topic {target}, and now it is to go into topic other"
    ):
        write(queryId=target, batchId=4, topic="other")
    assert committed(topics.servers, target) == {str(i): 3 for i in range(50)}


@pytest.fixture(scope="module")
def strict() -> Iterator[barnabas.Broker]:
    """A broker that creates no topics, with one."""
    with barnabas.Broker(config={"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("orders")
        yield broker


def test_a_missing_topic_is_one_sentence_before_any_task(spark, strict, tmp_path):
    """The rows are never computed: a task that read one would leave a file."""
    servers, trace = strict.bootstrap_servers, tmp_path / "a-task-ran"

    def touch(batches: Any) -> Any:
        trace.touch()
        yield from batches

    rows = spark.range(1).selectExpr("string(id) as value").mapInArrow(touch, "value string")
    options = {"kafka.bootstrap.servers": servers, "topic": "ordres"}
    sentence = (
        "QueryError: topic ordres does not exist, and brokers do not create it (auto.create.topics.enable=false): "
        f"`barnabas topic create ordres -b {servers}` does; did you mean orders?"
    )
    with pytest.raises(Exception, match=re.escape(sentence)) as caught:
        rows.write.format("barnabas").options(**options).mode("append").save()
    assert "Traceback" not in str(caught.value)
    stream = (
        spark.readStream.format("rate").load().selectExpr("string(value) as value").mapInArrow(touch, "value string")
    )
    writer = stream.writeStream.format("barnabas").options(**options, checkpointLocation=str(tmp_path / "checkpoint"))
    with pytest.raises(Exception, match=re.escape(sentence)) as caught:
        writer.trigger(once=True).start().awaitTermination(300)
    assert "Traceback" not in str(caught.value)
    assert not trace.exists()


def test_a_job_brings_its_topics_along(spark, strict):
    rows = spark.range(5).selectExpr("string(id) as value", "if(id < 3, 'low', 'high') as topic")
    options = {"kafka.bootstrap.servers": strict.bootstrap_servers, "createTopics": "low:3,high:2"}
    rows.write.format("barnabas").options(**options).mode("append").save()
    with Admin(strict.bootstrap_servers) as admin:
        found = {topic.name: len(topic.partitions) for topic in admin.list_topics()}
    assert found == {"orders": 1, "low": 3, "high": 2}
    assert committed(strict.bootstrap_servers, "low") == {"0": 1, "1": 1, "2": 1}


def test_a_missing_topic_is_created_where_brokers_create_topics(spark, topics):
    """As through Spark's own sink, whose producer asks for the topic's metadata."""
    target = f"new-{uuid.uuid4()}"
    rows = spark.range(5).selectExpr("string(id) as value")
    rows.write.format("barnabas").option("kafka.bootstrap.servers", topics.servers).options(topic=target).mode(
        "append"
    ).save()
    assert committed(topics.servers, target) == {str(i): 1 for i in range(5)}


def test_refusals_reach_the_user(spark, topics):
    rows = spark.range(1).selectExpr("string(id) as value")

    def write(frame: Any = rows, mode: str = "append", **options: Any) -> None:
        writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
        writer.options(topic="t", **options).mode(mode).save()

    with pytest.raises(Exception, match=r'mode\("overwrite"\) is not supported'):
        write(mode="overwrite")
    with pytest.raises(Exception, match="value attribute type must be string or binary, not bigint"):
        write(spark.range(1).selectExpr("id as value"))
    with pytest.raises(Exception, match="needs the options queryId and batchId"):
        write(delivery="exactly-once")
    with pytest.raises(Exception, match=r"99999999 is above the brokers' transaction\.max\.timeout\.ms 900000"):
        write(queryId="q", batchId=1, **{"kafka.transaction.timeout.ms": 99999999})
