"""`barnabas spark status`: which groups are queries, and how far each is behind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import spark as module
from barnabas.cli.spark import spark
from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition, result
from barnabas.protocol.messages import ProduceRequest
from barnabas.records.builder import build_batch
from barnabas.spark.source.commit_mark import CommitMark
from tests.conform.brokers import await_leaders, broker

NOW_MS = 1_795_000_000_000
TOPICS = (("t", 2), ("u", 1))
MARK = "spark at=2026-11-18T11:06:39.000Z"


@pytest.fixture(scope="module", params=["barnabas", pytest.param("apache-kafka", marks=pytest.mark.conform)])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with topic t: five records in each of two partitions, one in each of the last five minutes."""
    folder = tmp_path_factory.mktemp("broker")
    with broker(request.param, folder, {"offsets.topic.num.partitions": "1"}) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, count, 1, configs={"retention.ms": "-1"}) for name, count in TOPICS])
            await_leaders(running.bootstrap_servers, dict(TOPICS))
            for partition in (0, 1):
                for minutes in (5, 4, 3, 2, 1):
                    produce(admin, TopicPartition("t", partition), NOW_MS - minutes * 60_000)
        yield running.bootstrap_servers


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", type("Still", (), {"time": staticmethod(lambda: NOW_MS / 1000)}))


def produce(admin: Admin, where: TopicPartition, timestamp: int) -> None:
    request = ProduceRequest
    data = request.PartitionProduceData(index=where.partition, records=build_batch([(timestamp, None, b"v", [])]))
    topic = request.TopicProduceData(name=where.topic, partition_data=[data])
    leader = result(admin.cluster.leaders([where])[where])
    admin.cluster.connection(leader).request(request(acks=-1, timeout_ms=10_000, topic_data=[topic]), highest=12)


def commit(address: str, group: str, offsets: dict[TopicPartition, int], metadata: str) -> None:
    with Admin(address) as admin:
        deadline = time.monotonic() + 60
        while any(
            admin.alter_group_offsets(
                group, {each: CommittedOffset(offset, metadata) for each, offset in offsets.items()}
            ).values()
        ):
            assert time.monotonic() < deadline


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(spark, ["status", *arguments, "-b", address], prog_name="barnabas spark")


def data(address: str, *arguments: str) -> Any:
    found = run(address, *arguments, "--output", "json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_queries(address: str) -> None:
    assert data(address) == []
    assert run(address).stderr.startswith("no query commits its progress: set the source's option kafka.group.id")
    commit(address, "behind", {TopicPartition("t", 0): 3, TopicPartition("t", 1): 1, TopicPartition("u", 0): 0}, MARK)
    commit(address, "done", {TopicPartition("t", 0): 5}, str(CommitMark(NOW_MS)))
    commit(address, "another-client", {TopicPartition("t", 0): 2}, "")
    assert data(address) == [
        {"group": "behind", "topic": "t", "partitions": 2, "lag": 6, "lag_seconds": 240}
        | {"last_commit": "2026-11-18T11:06:39.000Z"},
        {"group": "behind", "topic": "u", "partitions": 1, "lag": 0, "lag_seconds": 0}
        | {"last_commit": "2026-11-18T11:06:39.000Z"},
        {"group": "done", "topic": "t", "partitions": 1, "lag": 0, "lag_seconds": 0}
        | {"last_commit": "2026-11-18T11:06:40.000Z"},
    ]
    (named,) = data(address, "another-client")
    assert (named["lag"], named["lag_seconds"], named["last_commit"]) == (3, 180, None)


def test_a_group_that_does_not_exist(address: str) -> None:
    commit(address, "behind", {TopicPartition("t", 0): 3}, MARK)
    found = run(address, "behnd", "behind")
    assert found.exit_code == 1
    assert "behind  t" in found.stdout
    assert found.stderr.startswith("error: group behnd does not exist")


def test_records_that_are_gone_are_not_the_oldest(address: str) -> None:
    where = TopicPartition("t", 1)
    with Admin(address) as admin:
        assert admin.delete_records({where: 4}) == {where: 4}
    commit(address, "late", {where: 1}, MARK)
    (found,) = data(address, "late")
    assert (found["lag"], found["lag_seconds"]) == (4, 60)


def test_a_deleted_topic_has_no_lag(address: str) -> None:
    with Admin(address) as admin:
        admin.create_topics([NewTopic("gone", 1, 1)])
        commit(address, "of-gone", {TopicPartition("t", 0): 5}, MARK)
        rows = module._rows(admin, "of-gone", {TopicPartition("never", 0): CommittedOffset(5, MARK)}, NOW_MS)
    assert rows == [("of-gone", "never", 1, None, None, "2026-11-18T11:06:39.000Z")]
