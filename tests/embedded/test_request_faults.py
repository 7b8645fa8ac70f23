"""Answers that are errors, and answers that are lost, as clients of other projects see them."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import kafka
import kafka.errors
import pytest
from confluent_kafka import Consumer, KafkaError, Producer

import barnabas as package
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ConnectionLost
from barnabas.embedded.request_faults import RequestFaults
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, ListGroupsRequest, MetadataRequest, ProduceRequest
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from tests.api.quiet_clock import QuietClock
from tests.api.served_node import Serving
from tests.embedded.orders_topic import PATIENCE_SECONDS, send, values


@pytest.fixture
def producer(barnabas: package.Broker) -> Producer:
    barnabas.create_topic("orders")
    return Producer(
        {
            "bootstrap.servers": barnabas.bootstrap_servers,
            "enable.idempotence": True,
            "retry.backoff.ms": 1,
            "linger.ms": 0,
            "log_level": 0,
        }
    )


@pytest.mark.slow
def test_a_request_that_fails_is_not_carried_out(barnabas: package.Broker, producer: Producer) -> None:
    fault = barnabas.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    assert send(producer, "one") == 0
    assert fault.hits == 2
    denied = barnabas.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
    error = send(producer, "two")
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert denied.hits == 1
    assert values(barnabas.bootstrap_servers) == [b"one"]


@pytest.mark.slow
def test_a_response_is_lost_and_the_record_is_written_once(barnabas: package.Broker, producer: Producer) -> None:
    assert send(producer, "one") == 0
    fault = barnabas.drop_response_after_write(times=2)
    assert send(producer, "two") == 1
    assert fault.hits == 2
    assert send(producer, "three") == 2
    assert values(barnabas.bootstrap_servers) == [b"one", b"two", b"three"]


@pytest.mark.slow
def test_without_idempotence_it_is_written_twice(barnabas: package.Broker) -> None:
    barnabas.create_topic("orders")
    producer = kafka.KafkaProducer(
        bootstrap_servers=barnabas.bootstrap_servers, enable_idempotence=False, retries=5, retry_backoff_ms=1
    )
    barnabas.drop_response_after_write()
    producer.send("orders", b"one").get(PATIENCE_SECONDS)
    producer.close()
    assert values(barnabas.bootstrap_servers) == [b"one", b"one"]


@pytest.mark.slow
def test_a_commit_that_fails(barnabas: package.Broker, producer: Producer) -> None:
    send(producer, "one")
    consumer = kafka.KafkaConsumer(
        "orders", bootstrap_servers=barnabas.bootstrap_servers, group_id="shop", auto_offset_reset="earliest"
    )
    next(consumer)
    fault = barnabas.fail("OffsetCommit", "UNKNOWN_MEMBER_ID")
    with pytest.raises(kafka.errors.CommitFailedError):
        consumer.commit()
    assert fault.hits == 1
    consumer.close(autocommit=False)


@pytest.mark.slow
def test_a_commit_whose_answer_is_lost_is_made(barnabas: package.Broker, producer: Producer) -> None:
    send(producer, "one")
    consumer = Consumer(
        {
            "bootstrap.servers": barnabas.bootstrap_servers,
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    assert consumer.poll(PATIENCE_SECONDS) is not None
    fault = barnabas.drop_response_after_write("OffsetCommit")
    (committed,) = consumer.commit(asynchronous=False)
    assert committed.error is None
    assert committed.offset == 1
    assert fault.hits == 1
    consumer.close()


def test_any_api_and_any_time(barnabas: package.Broker) -> None:
    fault = barnabas.fail("ListGroups", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
    cluster = Cluster(barnabas.bootstrap_servers)
    connection = cluster.any_connection()
    for hits in range(1, 4):
        assert connection.request(ListGroupsRequest()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert fault.hits == hits
    barnabas.heal()
    assert connection.request(ListGroupsRequest()).error_code == 0
    assert fault.hits == 3
    cluster.close()


def test_a_lost_answer_of_any_api_closes_the_connection(barnabas: package.Broker) -> None:
    barnabas.drop_response_after_write("Metadata")
    cluster = Cluster(barnabas.bootstrap_servers)
    connection = cluster.any_connection()
    with pytest.raises(ConnectionLost):
        connection.request(MetadataRequest())
    assert connection.closed
    assert cluster.any_connection().request(MetadataRequest()).brokers
    cluster.close()


def test_a_request_that_fails_by_itself_is_answered(barnabas: package.Broker) -> None:
    fault = barnabas.drop_response_after_write("Metadata")
    cluster = Cluster(barnabas.bootstrap_servers)
    wanted = [MetadataRequest.MetadataRequestTopic(name="no topic!")]
    response = cluster.any_connection().request(MetadataRequest(topics=wanted))
    assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert fault.hits == 0
    cluster.close()


def test_what_another_broker_asks_is_not_met(barnabas: package.Broker) -> None:
    fault = barnabas.fail("ListGroups", "UNKNOWN_SERVER_ERROR")
    cluster = Cluster(barnabas.bootstrap_servers, client_id="broker-2-markers")
    assert cluster.any_connection().request(ListGroupsRequest()).error_code == 0
    cluster.close()
    follower = barnabas.fail("Fetch", "UNKNOWN_SERVER_ERROR")
    cluster = Cluster(barnabas.bootstrap_servers)
    request = FetchRequest(replica_id=2)
    cluster.any_connection().request(request, version=4)
    assert (fault.hits, follower.hits) == (0, 0)
    cluster.close()


def test_a_reset_ends_the_faults(barnabas: package.Broker) -> None:
    barnabas.fail("ListGroups", "UNKNOWN_SERVER_ERROR", times=None)
    barnabas.reset()
    cluster = Cluster(barnabas.bootstrap_servers)
    assert cluster.any_connection().request(ListGroupsRequest()).error_code == 0
    cluster.close()


def test_faults_happen_in_the_order_in_which_they_were_ordered(barnabas: package.Broker) -> None:
    barnabas.fail("ListGroups", "COORDINATOR_NOT_AVAILABLE")
    barnabas.fail("ListGroups", "NOT_COORDINATOR")
    cluster = Cluster(barnabas.bootstrap_servers)
    connection = cluster.any_connection()
    codes = [connection.request(ListGroupsRequest()).error_code for _ in range(3)]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, 0]
    cluster.close()


def test_a_slow_node_keeps_the_records_and_the_order_of_a_producer(tmp_path: Path) -> None:
    """The connection reads into the same buffer while the request waits, and must not handle what it has read."""
    node = Serving(tmp_path, loop=QuietClock())
    node.create_topic("orders")
    faults = RequestFaults(node.dispatcher, node.loop)
    faults.apply((), slow_s=2.0)

    async def produced() -> tuple[bool, bool, float]:
        data = ProduceRequest.PartitionProduceData(index=0, records=build_batch([(0, None, b"one", [])]))
        topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
        body = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]).encode(9)
        buffer = bytearray(struct.pack(">hhih", 0, 9, 1, 4) + b"test\0" + body)
        began = node.loop.time()
        context, answer = node.dispatcher.dispatch(node.connection, memoryview(buffer))
        buffer[:] = bytes(len(buffer))
        held = context.holds_order
        assert isinstance(answer, asyncio.Future)
        await answer
        return held, context.holds_order, node.loop.time() - began

    assert node.loop.run_until_complete(produced()) == (True, False, pytest.approx(2.0))
    log = node.server.services.replica_manager.partition("orders", 0).log
    (record,) = iter_records(log.read(0, 1000, max_offset=1).read())
    assert record.value == b"one"
    faults.apply(())
    began = node.loop.time()
    assert node.ask(ListGroupsRequest()).error_code == 0
    assert node.loop.time() == began
    node.close()
