"""A node whose metrics a test scrapes over HTTP and reads with Prometheus's own parser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from barnabas.protocol.messages import (
    AddPartitionsToTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from tests.api.served_node import Serving
from tests.replication.hosting import batch

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Monitored(Serving):
    """A node with metrics; requests are counted by its own dispatcher."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, barnabas_metrics_listen="127.0.0.1:0", **settings)
        assert self.node.metrics is not None
        self.dispatcher._observer = self.node.metrics.request_times

    def text(self) -> str:
        async def get() -> bytes:
            assert self.node.metrics is not None
            reader, writer = await asyncio.open_connection("127.0.0.1", self.node.metrics.http.port)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            whole = await reader.read()
            writer.close()
            head, _, body = whole.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert b"text/plain; version=0.0.4" in head
            return body

        return self.loop.run_until_complete(get()).decode()

    def samples(self) -> Samples:
        found: Samples = {}
        for metric in text_string_to_metric_families(self.text()):
            for sample in metric.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in found, key
                found[key] = sample.value
        return found

    def produce(self, topic: str, *values: bytes, timestamp: int) -> None:
        data = ProduceRequest.PartitionProduceData(index=0, records=batch(*values, timestamp=timestamp))
        topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
        answer = self.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic: str) -> Any:
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchRequest.FetchTopic(topic=topic, partitions=[partition])]
        return self.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics), 12)

    def commit(self, group: str, topic: str, offset: int) -> None:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
        answer = self.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
        assert answer.topics[0].partitions[0].error_code == 0


def value(samples: Samples, name: str, **tags: str) -> float:
    return samples[name, tuple(sorted(tags.items()))]


def coordinate(node: Monitored, key_type: int = 0) -> None:
    """Create the topic of a coordinator: the first request creates it and returns an error, the second finds it."""
    for _ in range(2):
        node.ask(FindCoordinatorRequest(key="g", key_type=key_type), 2)


def begin_transaction(node: Monitored, transactional_id: str) -> None:
    """Open a transaction, without a record."""
    began = node.ask(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 4)
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=began.producer_id,
        v3_and_below_producer_epoch=began.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    assert node.ask(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
