"""Spark's own Kafka connector reads and writes barnabas, and what it reads is what our source reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.connector import ConnectorUnavailable, connector_jars
from tests.spark.session import SPARK, Topics

pytestmark = [*SPARK, pytest.mark.conform]


@pytest.fixture(scope="module")
def connected(spark: Any) -> Any:
    """The session with the connector's jars."""
    try:
        jars = connector_jars()
    except ConnectorUnavailable as error:
        pytest.skip(str(error))
    for jar in jars:
        spark.sql(f"add jar '{jar}'")
    return spark


def read(spark: Any, source: str, topics: Topics, topic: str, **options: Any) -> Any:
    reader = spark.read.format(source).option("kafka.bootstrap.servers", topics.servers).option("subscribe", topic)
    return reader.options(**options).load()


def filled(topics: Topics, partitions: int = 3, **config: Any) -> str:
    topic = topics.create(partitions=partitions)
    records = [
        {
            "key": f"k{i}" if i % 3 else None,
            "value": f"value {i}" if i % 7 else None,
            "partition": i % partitions,
            "timestamp": 1_700_000_000_000 + 1000 * i,
            "headers": [("h", b"x"), ("n", None)] if i % 4 == 0 else None,
        }
        for i in range(300)
    ]
    topics.produce(topic, records, **config)
    return topic


def test_both_have_the_same_schema(connected, topics):
    topic = topics.create()
    for headers in ("false", "true"):
        ours = read(connected, "barnabas", topics, topic, includeHeaders=headers).schema
        theirs = read(connected, "kafka", topics, topic, includeHeaders=headers).schema
        assert ours.simpleString() == theirs.simpleString()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_read_the_same_rows(connected, topics, codec):
    topic = filled(topics, compression_type=codec)
    ours, theirs = (read(connected, source, topics, topic, includeHeaders="true") for source in ("barnabas", "kafka"))
    order = ["partition", "offset"]
    assert ours.orderBy(order).collect() == theirs.orderBy(order).collect()
    assert ours.count() == 300


@pytest.mark.parametrize(
    "options",
    [
        {"startingTimestamp": "1700000100000", "endingTimestamp": "1700000200000"},
        {"startingOffsets": '{"TOPIC":{"0":10,"1":-2,"2":99}}', "endingOffsets": '{"TOPIC":{"0":20,"1":-1,"2":100}}'},
        {"startingOffsetsByTimestamp": '{"TOPIC":{"0":1700000000000,"1":1700000298000,"2":1700000297000}}'},
        {"minPartitions": "10"},
        {"maxRecordsPerPartition": "30"},
        {"kafka.isolation.level": "read_committed"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_both_understand_the_same_options(connected, topics, options):
    topic = filled(topics)
    given = {name: value.replace("TOPIC", topic) for name, value in options.items()}
    ours, theirs = (read(connected, source, topics, topic, **given) for source in ("barnabas", "kafka"))
    assert sorted(ours.select("partition", "offset").collect()) == sorted(
        theirs.select("partition", "offset").collect()
    )
    # The connector's batches do not heed maxRecordsPerPartition; only its streams do.
    if "minPartitions" in options:
        assert ours.rdd.getNumPartitions() == theirs.rdd.getNumPartitions()


REFUSED = [
    {"startingOffsets": "latest"},
    {"endingOffsets": "earliest"},
    {"minPartitions": "0"},
    {"maxRecordsPerPartition": "0"},
    {"assign": '{"t":[0]}'},
    {"kafka.enable.auto.commit": "true"},
    {"kafka.interceptor.classes": "x"},
    {"startingOffsets": '{"t":{"0":-1}}'},
]


@pytest.mark.parametrize("options", REFUSED, ids=lambda options: next(iter(options)))
def test_both_refuse_in_the_same_words(connected, topics, options):
    said = []
    for source in ("barnabas", "kafka"):
        with pytest.raises(Exception) as caught:
            read(connected, source, topics, "t", **options).collect()
        said.append(str(caught.value))
    ours, theirs = said
    # The connector writes option names in lower case in some of its sentences.
    sentence = theirs.splitlines()[0].split("Exception: ")[-1].split("] ")[-1].strip().lower()
    assert sentence in ours.lower()


def test_it_writes_and_ours_reads(connected, topics):
    topic = topics.create(partitions=2)
    rows = connected.range(500).selectExpr("cast(id as string) as key", "cast(id * 2 as string) as value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", topics.servers).option("topic", topic).save()
    back = read(connected, "barnabas", topics, topic).selectExpr(
        "int(cast(key as string)) k", "int(cast(value as string)) v"
    )
    assert sorted((row.k, row.v) for row in back.collect()) == [(i, 2 * i) for i in range(500)]


def test_it_streams_from_one_topic_into_another(connected, topics, tmp_path: Path):
    source, target = filled(topics), topics.create()
    server = {"kafka.bootstrap.servers": topics.servers}
    for _ in range(2):
        query = (
            connected.readStream.format("kafka")
            .options(**server, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=120)
            .load()
            .selectExpr("key", "value")
            .writeStream.format("kafka")
            .options(**server, topic=target, checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert read(connected, "barnabas", topics, target).count() == 300
