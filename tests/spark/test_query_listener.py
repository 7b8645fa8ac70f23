"""A session's queries on a page for Prometheus."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from barnabas.spark import serve_metrics, start
from barnabas.spark.query_listener import QueryListener
from barnabas.spark.query_metrics import QueryMetrics
from tests.spark.session import SPARK

PREFIX = "barnabas_spark_query_"


class Streams:
    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.addListener = self.listeners.append
        self.removeListener = self.listeners.remove


def scrape(url: str) -> dict[str, float]:
    with urlopen(url, timeout=60) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line.startswith(PREFIX)]
    return {name.removeprefix(PREFIX): float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def event(**more: Any) -> Any:
    return SimpleNamespace(**{"id": "1-2-3", "name": None, "exception": None, **more})


def progress(**more: Any) -> Any:
    given = {"timestamp": "2026-11-22T10:49:54Z", "batchDuration": 1, "numInputRows": 7, "sources": []}
    return event(progress=event(json=json.dumps(given), **more))


def test_a_query_without_a_name_has_its_id():
    registry = CollectorRegistry()
    listener = QueryListener(QueryMetrics(registry))
    listener.onQueryStarted(event(id="a", name="orders"))
    listener.onQueryStarted(event(id="b"))
    for query_id, name in (("a", "orders"), ("b", None)):
        listener.onQueryProgress(progress(id=query_id, name=name))
    listener.onQueryIdle(event(id="a"))
    listener.onQueryTerminated(event(id="a"))
    listener.onQueryTerminated(event(id="b", exception="java.lang.Exception"))

    def value(name: str, query: str) -> float | None:
        return registry.get_sample_value(PREFIX + name, {"query": query})

    assert [value("input_rows_total", query) for query in ("orders", "b")] == [7, 7]
    assert [value("active", query) for query in ("orders", "b")] == [0, 0]
    assert [value("failures_total", query) for query in ("orders", "b")] == [0, 1]


def test_a_query_that_ran_before_the_listener_has_its_name():
    registry = CollectorRegistry()
    listener = QueryListener(QueryMetrics(registry))
    listener.onQueryProgress(progress(id="a", name="orders"))
    listener.onQueryTerminated(event(id="a"))
    assert registry.get_sample_value(PREFIX + "active", {"query": "orders"}) == 0


def test_a_port_in_use_is_one_line():
    streams = Streams()
    page = serve_metrics(SimpleNamespace(streams=streams), 0)  # type: ignore[arg-type]
    port = int(page.url.rpartition(":")[2].partition("/")[0])
    with pytest.raises(RuntimeError) as refused:
        serve_metrics(SimpleNamespace(streams=streams), port)  # type: ignore[arg-type]
    assert str(refused.value) == (
        f"cannot serve metrics on 127.0.0.1:{port}: address already in use; choose another port"
    )
    assert len(streams.listeners) == 1
    page.close()
    assert streams.listeners == []
    serve_metrics(SimpleNamespace(streams=streams), port).close()  # type: ignore[arg-type]


class TestWithSpark:
    pytestmark = SPARK

    def test_the_page_follows_a_query(self, spark, topics):
        topic = topics.create()
        minute_ms = 60_000
        for number in (20, 21, 1):
            topics.produce(topic, [{"value": str(number), "timestamp": 1_700_000_000_000 + number * minute_ms}])
        reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
        rows = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=1).load()
        seen: list[dict[str, float]] = []

        def look(batch: Any, batch_id: int) -> None:
            batch.collect()
            # Spark's listeners hear of a batch while the next one runs.
            while batch_id == 1 and not seen:
                found = scrape(page.url)
                if found.get('input_rows_total{query="counts"}') == 1:
                    seen.append(found)

        counts = rows.withWatermark("timestamp", "1 minute").groupBy("timestamp").count()
        page = serve_metrics(spark, 0)
        try:
            writer = counts.writeStream.queryName("counts").outputMode("update").trigger(availableNow=True)
            query = start(writer.foreachBatch(look))
            query.awaitTermination()
            assert query.exception() is None
            (found,) = seen
            lag = f'{{query="counts",topic="{topic}"}}'
            assert found["active" + '{query="counts"}'] == 1
            assert found["lag_records" + lag] == 2
            assert found["lag_seconds" + lag] > 0
            while (ended := scrape(page.url))['active{query="counts"}'] == 1:
                pass
            assert ended['input_rows_total{query="counts"}'] == 3
            assert ended['late_rows_dropped_total{query="counts"}'] == 1
            assert ended['failures_total{query="counts"}'] == 0
            assert ended['batch_duration_seconds_sum{query="counts"}'] > 0
            assert not [name for name in ended if name.startswith("lag")]
        finally:
            page.close()
