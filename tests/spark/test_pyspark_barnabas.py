"""The whole way: a query in Spark, a broker, and the rows between; the same on barnabas and on Apache Kafka."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.spark import start
from tests.spark.session import SPARK, Topics

pytestmark = SPARK


def batch(spark: Any, topics: Topics, topic: str, **options: Any) -> Any:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", topics.servers).option("subscribe", topic)
    return reader.options(**options).load()


def stream(spark: Any, topics: Topics, topic: str, **options: Any) -> Any:
    reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
    defaults = {"subscribe": topic, "startingOffsets": "earliest"}
    return reader.options(**(defaults | options)).load()


def run(rows: Any, folder: Path) -> tuple[list[str], Any]:
    """Run a stream until everything that is there now has gone through; return its values, and the query."""
    query = start(
        rows.selectExpr("cast(value as string) as value")
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "table"))
        .format("parquet")
        .trigger(availableNow=True)
    )
    query.awaitTermination()
    found = rows.sparkSession.read.parquet(str(folder / "table")).collect()
    return sorted(row.value for row in found), query


def test_the_columns_of_sparks_own_source(spark, topics):
    topic = topics.create()
    plain = batch(spark, topics, topic).schema.simpleString()
    columns = "key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
    assert plain == f"struct<{columns}>"
    with_headers = batch(spark, topics, topic, includeHeaders="true").schema.simpleString()
    assert with_headers == f"struct<{columns},headers:array<struct<key:string,value:binary>>>"
    assert batch(spark, topics, topic).count() == 0


@pytest.mark.conform
def test_two_batches_meet_at_a_cut(spark, topics):
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        topics.values(topic, [f"old{partition}"] * 3, partition)
    with Admin(topics.servers) as admin:
        admin.store_cut(topic, admin.take_cut([topic], now_ms=time.time_ns() // 1_000_000))
    topics.values(topic, ["new"] * 4, 1)
    name = f"cut:{topic}"
    assert [batch(spark, topics, topic, **{side: name}).count() for side in ("endingOffsets", "startingOffsets")] == [
        6,
        4,
    ]
    with pytest.raises(Exception, match=rf"cut {topic}s does not exist; did you mean {topic}\?"):
        batch(spark, topics, topic, startingOffsets=name + "s").count()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(spark, topics, codec):
    topic = topics.create()
    records = [
        {
            "key": None if i % 3 == 0 else f"k{i}",
            "value": None if i % 7 == 0 else f"value {i} " * (i % 40),
            "timestamp": 1_700_000_000_000 + i,
            "headers": [("h", b"1"), ("n", None)] if i % 5 == 0 else None,
        }
        for i in range(500)
    ]
    topics.produce(topic, records, compression_type=codec)
    rows = batch(spark, topics, topic, includeHeaders="true").orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(500))
    text = [None if r["value"] is None else r["value"].encode() for r in records]
    assert [None if row.value is None else bytes(row.value) for row in rows] == text
    keys = [None if r["key"] is None else r["key"].encode() for r in records]
    assert [None if row.key is None else bytes(row.key) for row in rows] == keys
    assert [row.timestamp.replace(tzinfo=UTC).timestamp() for row in rows] == [r["timestamp"] / 1000 for r in records]
    assert rows[1].headers is None
    assert [(h.key, h.value and bytes(h.value)) for h in rows[5].headers] == [("h", b"1"), ("n", None)]
    assert {(row.topic, row.partition, row.timestampType) for row in rows} == {(topic, 0, 0)}


def test_log_append_time(spark, topics):
    topic = topics.create(message_timestamp_type="LogAppendTime")
    topics.produce(topic, [{"value": "x", "timestamp": 1_700_000_000_000}])
    (row,) = batch(spark, topics, topic).collect()
    assert row.timestampType == 1
    assert row.timestamp > datetime(2024, 1, 1)


def test_a_record_larger_than_a_fetch(spark, topics):
    topic = topics.create()
    topics.produce(topic, [{"value": "x" * 200_000}, {"value": "y"}])
    rows = batch(spark, topics, topic, **{"kafka.max.partition.fetch.bytes": "1000"})
    assert [r.size for r in rows.selectExpr("length(value) as size", "offset").orderBy("offset").collect()] == [
        200_000,
        1,
    ]


def test_between_offsets_and_moments(spark, topics):
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        records = [
            {"value": str(i), "partition": partition, "timestamp": 1_700_000_000_000 + 1000 * i} for i in range(10)
        ]
        topics.produce(topic, records)

    def values(**options: str) -> list[int]:
        found = batch(spark, topics, topic, **options).selectExpr("int(cast(value as string)) as v").collect()
        return sorted(row.v for row in found)

    offsets = f'{{"{topic}":{{"0":2,"1":-2}}}}'
    ends = f'{{"{topic}":{{"0":4,"1":1}}}}'
    assert values(startingOffsets=offsets, endingOffsets=ends) == [0, 2, 3]
    assert values(startingTimestamp="1700000008000") == [8, 8, 9, 9]
    assert values(startingTimestamp="2023-11-14T22:13:28Z") == [8, 8, 9, 9]
    assert values(endingTimestamp="1700000001500") == [0, 0, 1, 1]
    by_partition = f'{{"{topic}":{{"0":1700000009000,"1":1800000000000}}}}'
    late = {"startingOffsetsByTimestamp": by_partition, "startingOffsetsByTimestampStrategy": "latest"}
    assert values(**late) == [9]
    with pytest.raises(Exception, match="No offset matched from request of timestamp"):
        values(startingTimestamp="-1m")


def test_ways_to_name_topics(spark, topics):
    one, two = topics.create(name="pattern-x-1"), topics.create(name="pattern-x-2", partitions=2)
    topics.values(one, ["1"])
    topics.values(two, ["2"], partition=1)

    def values(**options: str) -> list[str]:
        reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
        found = reader.options(**options).load().selectExpr("cast(value as string) as v").collect()
        return sorted(row.v for row in found)

    assert values(subscribe=f"{one}, {two}") == ["1", "2"]
    assert values(subscribePattern="pattern-x-.*") == ["1", "2"]
    assert values(assign=f'{{"{two}":[1]}}') == ["2"]
    assert values(assign=f'{{"{two}":[0]}}') == []


def test_more_tasks_than_partitions(spark, topics):
    topic = topics.create(partitions=2)
    topics.values(topic, [str(i) for i in range(100)])
    rows = batch(spark, topics, topic, minPartitions=7)
    assert rows.rdd.getNumPartitions() == 7
    assert sorted(row.offset for row in rows.collect()) == list(range(100))
    assert batch(spark, topics, topic, maxRecordsPerPartition=30).rdd.getNumPartitions() == 4


def test_filters_are_pushed_down(spark, topics):
    topic = topics.create(partitions=3)
    for partition in range(3):
        records = [
            {"value": str(i), "partition": partition, "timestamp": 1_700_000_000_000 + 1000 * i} for i in range(10)
        ]
        topics.produce(topic, records)
    wheres: dict[str, list[tuple[int, int]]] = {
        "partition = 1 and offset >= 7": [(1, 7), (1, 8), (1, 9)],
        f"topic = '{topic}' and partition in (0, 2) and offset < 3": [(p, i) for p in (0, 2) for i in range(3)],
        "timestamp >= timestamp '2023-11-14 22:13:28' and partition = 0": [(0, 8), (0, 9)],
        "timestamp < timestamp '2023-11-14 22:13:22' and cast(value as string) <> '0'": [(0, 1), (1, 1), (2, 1)],
        "topic = 'another'": [],
    }
    assert batch(spark, topics, topic).where("partition = 1").rdd.getNumPartitions() == 3
    for where, expected in wheres.items():
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        try:
            pushed = batch(spark, topics, topic).where(where)
            assert sorted((row.partition, row.offset) for row in pushed.collect()) == expected
            # Spark makes one task of none.
            assert pushed.rdd.getNumPartitions() == max(1, len({partition for partition, _ in expected}))
        finally:
            spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_in_sql(spark, topics):
    topic = topics.create()
    topics.values(topic, ["a", "b"])
    options = f"`kafka.bootstrap.servers` '{topics.servers}', subscribe '{topic}'"
    spark.sql(f"create or replace temporary view shop using barnabas options ({options})")
    assert spark.sql("select count(*) as n from shop where cast(value as string) = 'b'").collect()[0].n == 1


def test_refusals_reach_the_user(spark, topics):
    with pytest.raises(Exception, match="starting offset can't be latest for batch queries on Kafka"):
        batch(spark, topics, "t", startingOffsets="latest").collect()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "nowhere-to-be-found"}, "topic nowhere-to-be-found does not exist"),
        (
            {"kafka.bootstrap.servers": "127.0.0.1"},
            "'127.0.0.1' has no port: write host:port, for example 127.0.0.1:9092",
        ),
        ({"startingOffset": "latest"}, "Option 'startingoffset' is unknown; did you mean startingOffsets?"),
        (
            {"startingOffsets": '{"TOPIC":{"0":9}}'},
            "The resolved start offset 9 is greater than the resolved end offset 0",
        ),
        ({"endingOffsets": '{"TOPIC":{"0":9}}'}, "Could not read records in offset [0, 9) for topic partition"),
        ({"startingTimestamp": "-1h", "endingTimestamp": "-2h"}, "The specified start timestamp"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_a_mistake_is_one_sentence_without_a_traceback(spark, topics, options, sentence):
    topic = topics.create()
    given = {name: value.replace("TOPIC", topic) for name, value in options.items()}
    with pytest.raises(Exception) as caught:
        batch(spark, topics, topic, **given).collect()
    assert sentence in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_schema_of_the_users_is_an_error_before_the_first_task(spark, topics):
    reader = spark.read.format("barnabas").schema("value string").option("subscribe", topics.create())
    rows = reader.option("kafka.bootstrap.servers", topics.servers).load()
    with pytest.raises(
        Exception, match=r"has fixed columns, which .schema\(...\) cannot change: key binary, value"
    ) as caught:
        rows.collect()
    assert "Failed to initialize Python data source reader" in str(caught.value), "and not in a worker"
    assert "Traceback" not in str(caught.value)


def test_records_that_are_gone(spark, topics):
    topic = topics.create()
    topics.values(topic, [str(i) for i in range(20)])
    topics.delete_before(topic, 0, 15)
    start = {"startingOffsets": f'{{"{topic}":{{"0":10}}}}'}
    with pytest.raises(Exception, match=r"Offsets 10 to 14 of .* are gone"):
        batch(spark, topics, topic, **start).collect()
    rows = batch(spark, topics, topic, failOnDataLoss="false", **start).collect()
    assert [row.offset for row in rows] == [15, 16, 17, 18, 19]
    assert [row.offset for row in batch(spark, topics, topic).collect()] == [15, 16, 17, 18, 19]


@pytest.mark.conform
def test_what_is_skipped_is_recorded_by_executors_and_by_the_driver(spark, topics, tmp_path):
    topic, losses = topics.create(), topics.create()
    topics.values(topic, [str(i) for i in range(20)])
    forgiving = {"failOnDataLoss": "false", "lossesTopic": losses}
    # An executor finds that records of its range are gone, and the driver that a partition's end is before the position.
    topics.delete_before(topic, 0, 15)
    found, query = run(stream(spark, topics, topic, startingOffsets=f'{{"{topic}":{{"0":10}}}}', **forgiving), tmp_path)
    assert found == sorted(str(i) for i in range(15, 20))
    topics.delete(topic)
    while topic in topics.admin.list_topics(timeout=10).topics:
        pass
    topics.create(name=topic)
    topics.values(topic, ["new"])
    found, _ = run(stream(spark, topics, topic, **forgiving), tmp_path)
    assert found == sorted([*(str(i) for i in range(15, 20)), "new"])
    rows = batch(spark, topics, losses).selectExpr("cast(key as string) key", "cast(value as string) value").collect()
    assert [row.key for row in rows] == [f"{topic}-0"] * 2
    by_executor, by_driver = (json.loads(row.value) for row in rows)
    assert (by_executor["from"], by_executor["to"], by_executor["query"]) == (10, 15, query.id)
    assert by_executor["reason"] == f"{topic}-0 now begins at offset 15"
    assert (by_driver["from"], by_driver["to"], by_driver["query"]) == (20, None, None)
    assert by_driver["reason"] == f"Topic {topic} was deleted and created again"


def test_a_stream_goes_on_where_it_left_off(spark, topics, tmp_path):
    topic = topics.create(partitions=2)
    topics.values(topic, [f"a{i}" for i in range(50)], partition=0)
    topics.values(topic, [f"b{i}" for i in range(50)], partition=1)
    options = {"maxOffsetsPerTrigger": 40, "kafka.group.id": f"{topic}-group"}
    found, query = run(stream(spark, topics, topic, **options), tmp_path)
    assert len(found) == 100
    assert [report.numInputRows for report in query.recentProgress if report.numInputRows] == [40, 40, 20]
    assert topics.committed(f"{topic}-group", topic) == {0: 50, 1: 50}
    ends = f'{{"{topic}": {{"0": 50, "1": 50}}}}'
    assert query.recentProgress[0].sources[0].latestOffset == ends
    topics.values(topic, [f"c{i}" for i in range(7)], partition=1)
    topics.grow(topic, 3)
    topics.values(topic, ["d"], partition=2)
    found, query = run(stream(spark, topics, topic, **options), tmp_path)
    assert len(found) == len(set(found)) == 108
    assert sum(report.numInputRows for report in query.recentProgress) == 8
    assert topics.committed(f"{topic}-group", topic) == {0: 50, 1: 57, 2: 1}


@pytest.mark.conform
def test_a_stream_from_the_end_sees_only_what_comes(spark, topics, tmp_path):
    topic = topics.create()
    topics.values(topic, ["before"])
    rows = stream(spark, topics, topic, startingOffsets="latest")
    assert run(rows, tmp_path)[0] == []
    topics.values(topic, ["after"])
    assert run(rows, tmp_path)[0] == ["after"]


@pytest.mark.conform
def test_a_topic_created_again_stops_the_stream(spark, topics, tmp_path):
    topic = topics.create()
    topics.values(topic, ["1", "2", "3"])
    run(stream(spark, topics, topic), tmp_path)
    topics.delete(topic)
    while topic in topics.admin.list_topics(timeout=10).topics:
        pass
    topics.create(name=topic)
    topics.values(topic, ["new"])
    with pytest.raises(Exception, match=f"Topic {topic} was deleted and created again"):
        run(stream(spark, topics, topic), tmp_path)


class Failing:
    """Collects the values of every batch that succeeds; fails the first attempts."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.values: list[str] = []

    def __call__(self, rows: Any, batch_id: int) -> None:
        found = [row.value for row in rows.collect()]
        if self.failures:
            self.failures -= 1
            raise RuntimeError("a mistake in the first deployment")
        self.values += found


@pytest.mark.conform
@pytest.mark.parametrize("beginning", ["moment", "latest", "earliest", "relative", "by partition"])
def test_a_first_batch_that_fails_three_times_has_the_same_records(spark, topics, tmp_path, beginning):
    """The restarts are an hour later, as it were: a moment before now is a later one, after every record."""
    topic = topics.create(partitions=2)
    now_ms = time.time_ns() // 1_000_000
    wanted = [f"{p}-{i}" for p in (0, 1) for i in range(5)]
    options = {
        "latest": {"startingOffsets": "latest"},
        "earliest": {"startingOffsets": "earliest"},
        "moment": {"startingTimestamp": str(now_ms)},
        "relative": {"startingTimestamp": "-1h"},
        "by partition": {"startingOffsetsByTimestamp": f'{{"{topic}":{{"0":{now_ms},"1":"-1h"}}}}'},
    }[beginning]

    def produce() -> None:
        for partition in (0, 1):
            records = [{"value": f"{partition}-{i}", "partition": partition, "timestamp": now_ms + i} for i in range(5)]
            topics.produce(topic, records)

    if beginning != "latest":
        produce()
    batches = Failing(3)

    def attempt() -> None:
        rows = stream(spark, topics, topic, **options).selectExpr("cast(value as string) as value")
        writer = rows.writeStream.foreachBatch(batches).option("checkpointLocation", str(tmp_path / "checkpoint"))
        start(writer.trigger(availableNow=True)).awaitTermination()

    for number in range(3):
        with pytest.raises(Exception, match="a mistake in the first deployment"):
            attempt()
        if number == 0 and beginning == "latest":
            produce()
        options = {name: value.replace("-1h", "-1ms") for name, value in options.items()}
    attempt()
    assert sorted(batches.values) == wanted


def test_a_first_batch_whose_records_are_gone_when_it_is_repeated(spark, topics, tmp_path):
    topic = topics.create()
    topics.values(topic, [str(i) for i in range(10)])
    batches = Failing(1)

    def attempt(**options: str) -> None:
        rows = stream(spark, topics, topic, **options).selectExpr("cast(value as string) as value")
        writer = rows.writeStream.foreachBatch(batches).option("checkpointLocation", str(tmp_path / "checkpoint"))
        start(writer.trigger(availableNow=True)).awaitTermination()

    with pytest.raises(Exception, match="a mistake in the first deployment"):
        attempt()
    topics.delete_before(topic, 0, 6)
    with pytest.raises(Exception, match=rf"Offsets 0 to 5 of {topic}-0 are gone"):
        attempt()
    attempt(failOnDataLoss="false")
    assert sorted(batches.values) == ["6", "7", "8", "9"]


def test_a_stream_has_no_end(spark, topics, tmp_path):
    with pytest.raises(Exception, match="ending offset not valid in streaming queries"):
        run(stream(spark, topics, topics.create(), endingOffsets="latest"), tmp_path)
