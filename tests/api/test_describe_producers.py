from __future__ import annotations

import asyncio

from barnabas.api import describe_producers
from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from barnabas.steps import step
from tests.replication.hosting import Hosting, batch


def ask(hosting: Hosting, topic: str, index: int = 0) -> DescribeProducersResponse.PartitionResponse:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[index])
    request = DescribeProducersRequest.decode(DescribeProducersRequest(topics=[asked]).encode(0), 0)
    response = step(describe_producers.handle(hosting.context(61, 0), request), hosting.loop)
    assert not isinstance(response, asyncio.Future)
    (answered,) = DescribeProducersResponse.decode(response.encode(0), 0).topics[0].partitions
    return answered


def test_idempotent_and_transactional_producers(hosting: Hosting) -> None:
    hosting.create_topic("t")
    now = hosting.now_ms()
    hosting.replicas.append(
        "t", 0, batch(b"a", b"b", timestamp=now, producer_id=5, producer_epoch=2, base_sequence=0), 1
    )
    open_one = batch(b"c", timestamp=now, producer_id=6, producer_epoch=0, base_sequence=9, transactional=True)
    hosting.replicas.append("t", 0, open_one, 1, AppendOrigin.COORDINATOR)
    assert [
        (
            p.producer_id,
            p.producer_epoch,
            p.last_sequence,
            p.last_timestamp,
            p.coordinator_epoch,
            p.current_txn_start_offset,
        )
        for p in ask(hosting, "t").active_producers
    ] == [(5, 2, 1, now, -1, -1), (6, 0, 9, now, -1, 2)]


def test_a_follower_answers_too(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(1, 2))
    hosting.replicas.append(
        "t", 0, batch(b"a", timestamp=hosting.now_ms(), producer_id=5, producer_epoch=2, base_sequence=0), 1
    )
    hosting.change(id_, leader=2)
    answered = ask(hosting, "t")
    assert answered.error_code == ErrorCode.NONE
    assert [producer.producer_id for producer in answered.active_producers] == [5]


def test_unknown(hosting: Hosting) -> None:
    hosting.create_topic("t")
    assert ask(hosting, "t").active_producers == []
    answered = ask(hosting, "t", 9)
    assert (answered.error_code, answered.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert ask(hosting, "no where").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    answered = ask(hosting, "nowhere")
    assert answered.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answered.error_message == "This server does not host this topic-partition."
