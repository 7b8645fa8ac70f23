"""A stream's batch that failed before a task reported: the checkpoint says whose transactions are open."""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.transactions import list_transactions
from barnabas.spark.sink import writers
from barnabas.spark.sink.options import parse_stream_options
from barnabas.spark.sink.writers import StreamSink, query_of
from tests.spark.object_store import KEYS, client_of, object_store
from tests.spark.sink.sink_run import Query, committed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        running.create_topic("written")
        yield running


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_transactions_of_killed_tasks_are_aborted(broker, tmp_path, scheme):
    query = str(uuid.uuid4())
    (tmp_path / "metadata").write_text(json.dumps({"id": query}))
    ran = Query(broker.bootstrap_servers, "written", [["a", "b"]], lambda values: [values], query)
    ran.begin()
    ran.run_tasks(ran.batch(0))
    StreamSink(dataclasses.replace(ran.options, checkpoint=f"{scheme}{tmp_path}")).abort([None], 0)
    assert committed(broker.bootstrap_servers, "written") == {}


def test_a_task_that_begins_after_the_job_failed(broker, tmp_path, monkeypatch):
    """Spark gave it up, and has not killed its worker yet."""
    query = str(uuid.uuid4())
    (tmp_path / "metadata").write_text(json.dumps({"id": query}))
    ran = Query(broker.bootstrap_servers, "written", [["a", "b"]], lambda values: [values], query)
    ran.begin()
    waited = []

    def tasks_begin(seconds):
        waited.append(seconds)
        ran.run_tasks(ran.batch(0))

    monkeypatch.setattr(writers, "time", SimpleNamespace(sleep=tasks_begin))
    sink = StreamSink(dataclasses.replace(ran.options, checkpoint=str(tmp_path)))
    sink.abort([None, None], 0)
    assert waited == [3.0]
    with Cluster(broker.bootstrap_servers) as cluster:
        assert list_transactions(cluster, states=["Ongoing"]) == []
    # The task that failed is the only one: there is nothing to wait for.
    sink.abort([None], 0)
    assert len(waited) == 1


def in_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"ENDPOINT_URL": url, "REGION": "us-east-1", "ACCESS_KEY_ID": KEYS[0], "SECRET_ACCESS_KEY": KEYS[1]}
    for name, value in given.items():
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.mark.conform
def test_a_checkpoint_in_an_object_store(monkeypatch):
    with object_store() as url:
        in_the_environment(url, monkeypatch)
        client_of(url).put_object(Bucket="lake", Key="checkpoints/orders/metadata", Body=b'{"id":"that-query"}')
        assert query_of("s3a://lake/checkpoints/orders") == query_of("s3://lake/checkpoints/orders/") == "that-query"
        assert query_of("s3a://lake/checkpoints/others") is None
    assert query_of("s3a://lake/checkpoints/orders") is None, "the store is away"


def test_a_checkpoint_that_cannot_be_read_here(tmp_path):
    assert query_of(None) is None
    assert query_of(str(tmp_path)) is None
    assert query_of("abfss://bucket/checkpoint") is None
    (tmp_path / "metadata").write_text("{")
    assert query_of(str(tmp_path)) is None
    # Nothing is known, and no broker is asked.
    options = parse_stream_options({"kafka.bootstrap.servers": "localhost:1", "checkpointLocation": str(tmp_path)})
    assert Path(options.checkpoint or "") == tmp_path
    StreamSink(options).abort([], 0)
