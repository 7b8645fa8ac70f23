"""A session's queries on a page for Prometheus."""

from __future__ import annotations

import json
from queue import Queue
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.listener import StreamingQueryListener

import barnabas
from barnabas.spark import serve_metrics, start
from barnabas.spark.queries.query_listener import QueryListener
from barnabas.spark.queries.query_metrics import QueryMetrics
from tests.cluster.waiting import wait_for
from tests.spark.session import SPARK, Topics

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


def test_what_was_skipped_is_on_the_page(tmp_path):
    """The losses topic has what sources recorded, of the tasks of a query and of the driver."""
    with barnabas.Broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        given = {"bootstrap_servers": broker.bootstrap_servers, "losses_topic": "losses"}
        session: Any = SimpleNamespace(streams=Streams())
        with pytest.raises(RuntimeError, match="topic losses does not exist: create it first"):
            serve_metrics(session, 0, **given)
        with pytest.raises(ValueError, match="go together"):
            serve_metrics(session, 0, losses_topic="losses")
        topics.create(name="losses")
        loss = {
            "topic": "orders",
            "partition": 0,
            "from": 10,
            "to": 15,
            "reason": "cut",
            "query": "1-2-3",
            "batch": "7",
        }
        topics.values("losses", [json.dumps(each) for each in (loss, loss | {"query": None, "to": None})])
        page = serve_metrics(session, 0, **given)
        session.streams.listeners[0].onQueryStarted(event(name="counts"))
        found = wait_for("the losses", lambda: skipped(page.url))
        assert found == {
            'ranges_total{query="",topic="orders"}': 1,
            'ranges_total{query="counts",topic="orders"}': 1,
            'offsets_total{query="",topic="orders"}': 0,
            'offsets_total{query="counts",topic="orders"}': 5,
        }
        assert skipped(page.url) == found, "each record counts once"
        page.close()
        page.close()


def skipped(url: str) -> dict[str, float]:
    found = {name.partition("skipped_"): value for name, value in scrape(url).items()}
    return {name: value for (_, word, name), value in found.items() if word}


class Heard(StreamingQueryListener):
    """Hears of each event after the listener that was added before it."""

    def __init__(self) -> None:
        self._events: Queue[str] = Queue()

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        self._events.put(f"batch {event.progress.batchId}")

    def onQueryTerminated(self, event: Any) -> None:
        self._events.put("the end")

    def wait_for(self, event: str) -> None:
        while self._events.get(timeout=1200) != event:
            pass


class TestWithSpark:
    pytestmark = [*SPARK, pytest.mark.conform]

    def test_the_page_follows_a_query(self, spark, topics):
        topic = topics.create()
        minute_ms = 60_000
        for number in (20, 21, 1):
            topics.produce(topic, [{"value": str(number), "timestamp": 1_700_000_000_000 + number * minute_ms}])
        reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
        rows = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=1).load()
        seen: dict[str, float] = {}

        def look(batch: Any, batch_id: int) -> None:
            batch.collect()
            if batch_id == 1:
                heard.wait_for("batch 0")
                seen.update(scrape(page.url))

        counts = rows.withWatermark("timestamp", "1 minute").groupBy("timestamp").count()
        page, heard = serve_metrics(spark, 0), Heard()
        spark.streams.addListener(heard)
        try:
            writer = counts.writeStream.queryName("counts").outputMode("update").trigger(availableNow=True)
            query = start(writer.foreachBatch(look))
            query.awaitTermination()
            assert query.exception() is None
            heard.wait_for("the end")
            ended = scrape(page.url)
        finally:
            page.close()
            spark.streams.removeListener(heard)
        lag = f'{{query="counts",topic="{topic}"}}'
        assert seen['active{query="counts"}'] == 1
        assert seen['input_rows_total{query="counts"}'] == 1
        assert seen["lag_records" + lag] == 2
        assert seen["lag_seconds" + lag] > 0
        assert ended['active{query="counts"}'] == 0
        assert ended['input_rows_total{query="counts"}'] == 3
        assert ended['late_rows_dropped_total{query="counts"}'] == 1
        assert ended['failures_total{query="counts"}'] == 0
        assert ended['batch_duration_seconds_sum{query="counts"}'] > 0
        assert not [name for name in ended if name.startswith("lag")]
