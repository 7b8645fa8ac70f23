"""Failures of a function become rows for the sink; retry topics are read again until a record is a dead letter."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.cluster import Cluster
from barnabas.embedded.broker import Broker
from barnabas.retries.headers import FailureHeaders, read_failure, write_failure
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.record import Output, Record
from barnabas.retries.routing import Router
from barnabas.retries.topics import MissingTopic
from barnabas.spark.queries.start import start
from barnabas.spark.retries import attempt, attempted, ensure_topics, read
from tests.spark.session import SPARK, Topics

POLICY = RetryPolicy("orders.dlq", delays=("10s",))
NOW_MS = 1_700_000_000_000
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def charge(record: Record) -> list[Output]:
    if record.value == b"broken":
        raise ValueError("no card")
    return [Output("bills", record.value, record.key, record.headers)]


def rows(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    row = {
        "topic": "orders",
        "partition": 1,
        "offset": 5,
        "timestamp": CREATED,
        "key": b"k",
        "value": b"v",
        "headers": None,
    }
    return [row | each for each in changed]


def batch(*changed: dict[str, Any]) -> pa.RecordBatch:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kinds = {"timestamp": pa.timestamp("us", "UTC"), "partition": pa.int32(), "offset": pa.int64(), "headers": headers}
    arrays = {
        name: pa.array(
            [each[name] for each in rows(*changed)], kinds.get(name, pa.binary() if name in ("key", "value") else None)
        )
        for name in rows({})[0]
    }
    return pa.RecordBatch.from_pydict(arrays)


def written(*batches: pa.RecordBatch) -> list[dict[str, Any]]:
    found = attempted(batches, charge, Router(POLICY, "billing"), lambda: NOW_MS)
    return [row for each in found for row in each.to_pylist()]


def as_headers(failure: FailureHeaders) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in write_failure(failure)]


def failure_of(row: dict[str, Any]) -> FailureHeaders | None:
    return read_failure((each["key"], each["value"]) for each in row["headers"])


def test_what_succeeds_and_what_fails_become_rows() -> None:
    trace = [{"key": "trace", "value": b"1"}]
    good, bad = written(batch({"headers": trace}, {"value": b"broken", "offset": 6, "headers": trace}))
    assert good == {"topic": "bills", "partition": None, "key": b"k", "value": b"v", "headers": trace}
    assert (bad["topic"], bad["partition"], bad["key"], bad["value"]) == ("orders.retry.1", None, b"k", b"broken")
    assert bad["headers"][0] == trace[0]
    created_ms = round(CREATED.timestamp() * 1000)
    assert failure_of(bad) == FailureHeaders(
        "orders", 1, 6, created_ms, "billing", 1, "ValueError", "no card", NOW_MS, NOW_MS, NOW_MS + 10_000
    )


def test_the_last_failure_is_a_dead_letter() -> None:
    waiting = as_headers(FailureHeaders("orders", 1, 6, 7, "billing", 1, "X", "y", 8, 8, 9))
    (dead,) = written(batch({"topic": "orders.retry.1", "value": b"broken", "offset": 0, "headers": waiting}))
    assert dead["topic"] == "orders.dlq"
    assert failure_of(dead) == FailureHeaders("orders", 1, 6, 7, "billing", 2, "ValueError", "no card", 8, NOW_MS)


def test_rows_of_another_group_are_left_out() -> None:
    other = as_headers(FailureHeaders("orders", 1, 6, group="shipping"))
    assert written(batch({"topic": "orders.retry.1", "headers": other})) == []


def run(stream: Any, servers: str, folder: Path) -> None:
    """Run a query over everything that is there now; what it writes counts once."""
    sink = stream.writeStream.format("barnabas").option("kafka.bootstrap.servers", servers)
    start(sink.option("checkpointLocation", str(folder)).trigger(availableNow=True)).awaitTermination()


@pytest.mark.spark
def test_the_topics_of_a_policy_are_created_as_large_as_the_source(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=3)
    barnabas.create_topic("orders.dlq", partitions=1)
    with Cluster(barnabas.bootstrap_servers) as cluster:
        for _ in range(2):
            ensure_topics(cluster, ["orders"], POLICY)
        found = cluster.metadata(["orders.retry.1", "orders.dlq"]).topics
        assert {name: len(topic.partitions) for name, topic in found.items()} == {"orders.retry.1": 3, "orders.dlq": 1}
        with pytest.raises(MissingTopic, match="topic ordrs does not exist: create it first"):
            ensure_topics(cluster, ["ordrs"], POLICY)


class TestInSpark:
    pytestmark = SPARK

    def test_what_succeeds_and_what_fails_in_a_batch(self, spark: Any, topics: Topics) -> None:
        source = topics.create()
        topics.values(source, ["good", "broken"])

        def function(record: Record) -> list[Output]:
            if record.value == b"broken":
                raise ValueError("no card")
            return [Output("bills", record.value)]

        options = {"kafka.bootstrap.servers": topics.servers, "subscribe": source, "includeHeaders": "true"}
        frame = attempt(spark.read.format("barnabas").options(**options).load(), function, POLICY, "billing")
        found = {(row.topic, bytes(row.value)) for row in frame.collect()}
        assert found == {("bills", b"good"), ("orders.retry.1", b"broken")}

    @pytest.mark.long
    def test_a_record_goes_through_its_retries(self, spark: Any, topics: Topics, tmp_path: Path) -> None:
        source, bills = topics.create(), topics.create()
        policy = RetryPolicy(f"{source}.dlq", delays=("0s",))
        topics.values(source, ["good", "broken"])

        def function(record: Record) -> list[Output]:
            if record.value == b"broken":
                raise ValueError("no card")
            return [Output(bills, record.value)]

        options = {"kafka.bootstrap.servers": topics.servers, "subscribe": source, "startingOffsets": "earliest"}
        for _ in range(2):
            stream = attempt(read(spark, options, policy), function, policy, "billing")
            run(stream, topics.servers, tmp_path / "checkpoint")

        def values(topic: str) -> list[str]:
            found = spark.read.format("barnabas").options(**{**options, "subscribe": topic}).load()
            return [bytes(row.value).decode() for row in found.collect()]

        assert values(bills) == ["good"]
        assert values(f"{source}.retry.1") == ["broken"]
        assert values(f"{source}.dlq") == ["broken"]

    def test_columns_that_are_missing(self, spark: Any) -> None:
        frame = spark.range(1).selectExpr(
            "'t' as topic", "0 as partition", "id as offset", "now() as timestamp", "x'' as key", "x'' as value"
        )
        with pytest.raises(ValueError, match="column headers is missing: set includeHeaders to true"):
            attempt(frame, charge, POLICY, "billing")
        with pytest.raises(ValueError, match="option subscribe is missing"):
            read(spark, {"kafka.bootstrap.servers": "h:1"}, POLICY)
