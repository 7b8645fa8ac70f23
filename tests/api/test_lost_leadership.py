"""A Produce request loses the leadership of a partition while it appends to another, and has it again before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from barnabas.api import produce
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ProduceRequest
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from tests.replication.brokers import Cluster
from tests.replication.following import batches_of
from tests.replication.hosting import batch

MANY = 600
"""Records that the executor opens, because a compacted topic's records need keys."""


class Held:
    """An executor that works when the test says so."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.work: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []

    def __call__(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self.work.append((future, partial(function, *arguments)))
        return future

    def let_go(self) -> None:
        for future, work in self.work:
            future.set_result(work())
        self.work.clear()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(cleanup_policy=frozenset({"compact"}))
    made.create_topic((1, 2, 3), (1, 2, 3))
    made.advance(1000)
    yield made
    made.close()


def two_partitions(small: bytes) -> ProduceRequest:
    large = batch(*[b"v"] * MANY, compression=Compression.GZIP)
    data = [
        ProduceRequest.PartitionProduceData(index=0, records=batch(small)),
        ProduceRequest.PartitionProduceData(index=1, records=large),
    ]
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[topic])


def test_what_another_leader_cut_off_is_not_acknowledged(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(cluster.loop)
    monkeypatch.setattr(cluster.loop, "run_in_executor", held)
    cluster.isolate(1)
    response = cluster[1].handle(produce.handle, 0, 9, two_partitions(b"lost"))
    assert held.work, "the executor opens the records of the second partition"
    log = cluster[1].log()
    assert (log.log_end_offset, log.high_watermark) == (1, 0)

    cluster.fence(1)
    cluster.advance(20)
    assert cluster.now().leader == 2
    kept = cluster[2].produce(b"kept")
    cluster.heal()
    cluster.advance(1000)
    assert kept.outcome == "NONE"
    cluster.unfence(1)
    cluster.advance(1000)
    for node_id in (2, 3):
        cluster.fence(node_id)
    cluster.advance(20)
    assert (cluster.now().leader, log.high_watermark) == (1, 1), "it leads again, and has committed another record"
    assert [record.value for record in iter_records(batches_of(log)[0])] == [b"kept"]
    assert not response.done()

    held.let_go()
    cluster.advance(1000)
    lost, appended = response.result().responses[0].partition_responses
    assert (lost.error_code, lost.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert (appended.error_code, appended.base_offset) == (ErrorCode.NONE, 0)
