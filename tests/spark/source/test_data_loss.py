"""Records that are gone fail the query, or are logged and recorded."""

from __future__ import annotations

import json
import logging

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.source.data_loss import DataLoss, Loss, LossReports
from barnabas.spark.source.options import parse_batch_options
from tests.spark.fake_cluster import FakeCluster

AT_NS = 1_763_808_594_063_000_000


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster()
    fake.create("losses")
    return fake


def reports(cluster: FakeCluster, **more: str) -> LossReports:
    given = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t", "failOnDataLoss": "false", **more}
    return LossReports(parse_batch_options(given, 0), connect=cluster.connect, clock_ns=lambda: AT_NS)


def recorded(cluster: FakeCluster) -> list[dict]:
    assert {(topic, partition) for topic, partition, _ in cluster.produced} <= {("losses", 0)}
    return [json.loads(value) for _, _, values in cluster.produced for value in values]


def test_the_error_says_which_option_goes_on(cluster):
    with pytest.raises(DataLoss, match=r'^Offsets 0 to 5 are gone\. Some data .*"failOnDataLoss" to "false"'):
        reports(cluster, failOnDataLoss="true", lossesTopic="losses").report("Offsets 0 to 5 are gone", [])
    assert not cluster.requests


def test_or_a_warning_is_logged(cluster, caplog):
    reports(cluster).report("t-0 begins later", [Loss("t", 0, 0, 6)], "Offsets 0 to 5 are gone")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("barnabas.spark", logging.WARNING)
    assert record.getMessage().startswith("Offsets 0 to 5 are gone")
    assert not cluster.requests


def test_and_a_record_is_written_for_each_range(cluster):
    losses = [Loss("t", 0, 0, 6), Loss("t", 1, 4, None)]
    reports(cluster, lossesTopic="losses").report("gone", losses, "Offsets are gone")
    common = {"reason": "gone", "at": "2025-11-22T10:49:54.063Z", "query": None, "batch": None}
    assert recorded(cluster) == [
        {"topic": "t", "partition": 0, "from": 0, "to": 6, **common},
        {"topic": "t", "partition": 1, "from": 4, "to": None, **common},
    ]
    assert all(connection.closed for connection in cluster.opened)


def test_a_task_says_which_query_and_batch_it_belongs_to(cluster, monkeypatch):
    class Context:
        @staticmethod
        def get() -> Context:
            return Context()

        def getLocalProperty(self, name: str) -> str:
            return {"sql.streaming.queryId": "6b4f", "streaming.sql.batchId": "7"}[name]

    monkeypatch.setattr("pyspark.TaskContext", Context)
    reports(cluster, lossesTopic="losses").report("gone", [Loss("t", 0, 0, 6)])
    assert [(each["query"], each["batch"]) for each in recorded(cluster)] == [("6b4f", "7")]


def test_a_range_is_recorded_once_though_each_trigger_finds_it(cluster, caplog):
    made = reports(cluster, lossesTopic="losses")
    for _ in range(3):
        made.report("gone", [Loss("t", 0, 0, 6)])
    made.report("gone", [Loss("t", 0, 0, 6), Loss("t", 1, 0, 6)])
    assert [each["partition"] for each in recorded(cluster)] == [0, 1]
    assert len(caplog.records) == 2


def test_the_query_does_not_go_on_without_its_record(cluster):
    cluster.produce_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError, match="cannot record what was skipped in topic losses: "):
        reports(cluster, lossesTopic="losses").report("gone", [Loss("t", 0, 0, 6)])


def test_a_losses_topic_must_exist_before_anything_is_lost(cluster):
    reports(cluster, lossesTopic="losses").check()
    reports(cluster).check()
    reports(cluster, failOnDataLoss="true", lossesTopic="nowhere").check()
    with pytest.raises(ValueError, match="lossesTopic: topic nowhere does not exist; create it"):
        reports(cluster, lossesTopic="nowhere").check()
    with pytest.raises(ValueError, match=r"then start the query; did you mean losses\?$"):
        reports(cluster, lossesTopic="looses").check()
