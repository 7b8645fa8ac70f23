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
from barnabas.embedded.fault_plan import EVERY_API, FaultKind, RequestFault
from barnabas.embedded.fault_tickets import OwnTickets
from barnabas.embedded.request_faults import OrderedFault, RequestFaults
from barnabas.embedded.request_log import RequestLog
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
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


def sent(node: Serving, correlation_id: int = 4) -> tuple[bytearray, memoryview]:
    """Return a Produce request of one record, and the view of it that a dispatcher gets."""
    data = ProduceRequest.PartitionProduceData(index=0, records=build_batch([(0, None, b"one", [])]))
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    body = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]).encode(9)
    buffer = bytearray(struct.pack(">hhih", 0, 9, correlation_id, 4) + b"test\0" + body)
    return buffer, memoryview(buffer)


def faulty(node: Serving, fault: RequestFault) -> RequestFaults:
    faults = RequestFaults(node.dispatcher, node.loop, RequestLog(1))
    faults.apply([OrderedFault(fault, OwnTickets(fault.times, fault.nth))])
    return faults


@pytest.mark.parametrize("kind", [FaultKind.DELAY_REQUEST, FaultKind.DELAY_RESPONSE])
def test_a_delay_keeps_the_records_and_the_order_of_a_producer(kind: FaultKind, tmp_path: Path) -> None:
    """The connection reads into the same buffer while the request waits, and must not handle what it has read."""
    node = Serving(tmp_path, loop=QuietClock())
    node.create_topic("orders")
    faults = faulty(node, RequestFault(kind, EVERY_API, seconds=2.0, times=-1))

    async def produced() -> tuple[bool, bool, float]:
        buffer, frame = sent(node)
        began = node.loop.time()
        context, answer = node.dispatcher.dispatch(node.connection, frame)
        buffer[:] = bytes(len(buffer))
        held = context.holds_order
        assert isinstance(answer, asyncio.Future)
        await answer
        return held, context.holds_order, node.loop.time() - began

    is_held = kind is FaultKind.DELAY_REQUEST  # A request that is carried out has its place in the log.
    assert node.loop.run_until_complete(produced()) == (is_held, False, pytest.approx(2.0))
    log = node.server.services.replica_manager.partition("orders", 0).log
    (record,) = iter_records(log.read(0, 1000, max_offset=1).read())
    assert record.value == b"one"
    faults.apply(())
    began = node.loop.time()
    assert node.ask(ListGroupsRequest()).error_code == 0
    assert node.loop.time() == began
    node.close()


def test_a_response_is_sent_twice(tmp_path: Path) -> None:
    node = Serving(tmp_path, loop=QuietClock())
    node.create_topic("orders")
    faulty(node, RequestFault(FaultKind.DUPLICATE_RESPONSE, 0))
    _, output = node.dispatcher.dispatch(node.connection, sent(node)[1])
    assert isinstance(output, list)
    ((whole, again),) = [
        (part[: len(part) // 2], part[len(part) // 2 :]) for part in output if isinstance(part, bytearray)
    ]
    assert whole == again
    assert struct.unpack_from(">ii", whole) == (len(whole) - 4, 4)
    _, once = node.dispatcher.dispatch(node.connection, sent(node)[1])
    assert isinstance(once, list)
    assert len(once[0]) == len(whole)
    node.close()


def test_only_what_a_fault_names_meets_it(barnabas: package.Broker) -> None:
    for topic in ("orders", "other"):
        barnabas.create_topic(topic, partitions=2)
    faults = [
        barnabas.fail("Metadata", "UNKNOWN_SERVER_ERROR", None, topic="orders"),
        barnabas.fail("ListGroups", "UNKNOWN_SERVER_ERROR", None, client_id="other"),
        barnabas.fail("DescribeGroups", "UNKNOWN_SERVER_ERROR", None, group="shop"),
        barnabas.fail("ListOffsets", "UNKNOWN_SERVER_ERROR", None, topic="orders", partition=1),
    ]
    cluster = Cluster(barnabas.bootstrap_servers, client_id="shop")
    connection = cluster.any_connection()

    def metadata(topic: str) -> int:
        wanted = [MetadataRequest.MetadataRequestTopic(name=topic)]
        return connection.request(MetadataRequest(topics=wanted), version=9).topics[0].error_code

    def offsets(topic: str, partition: int) -> int:
        at = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[at])]
        )
        return connection.request(request).topics[0].partitions[0].error_code

    assert [metadata("other"), metadata("orders")] == [0, -1]
    assert connection.request(ListGroupsRequest()).error_code == 0
    described = [
        connection.request(DescribeGroupsRequest(groups=[name])).groups[0].error_code for name in ("till", "shop")
    ]
    assert described[1] == -1 != described[0]
    assert [offsets("other", 1), offsets("orders", 0), offsets("orders", 1)] == [0, 0, -1]
    assert [fault.hits for fault in faults] == [1, 0, 1, 1]
    assert [fault.id for fault in barnabas.faults] == [fault.id for fault in faults]
    faults[0].remove()
    assert metadata("orders") == 0
    (met,) = (each for each in barnabas.requests("ListOffsets", client_id="shop") if each.faults)
    assert (met.topics, met.faults) == ({"orders": [1]}, [faults[3].id])
    cluster.close()


def test_the_nth_request(barnabas: package.Broker) -> None:
    fault = barnabas.fail("ListGroups", "COORDINATOR_NOT_AVAILABLE", times=2, nth=2)
    cluster = Cluster(barnabas.bootstrap_servers)
    connection = cluster.any_connection()
    codes = [connection.request(ListGroupsRequest()).error_code for _ in range(4)]
    assert codes == [0, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE, 0]
    assert fault.hits == 2
    assert fault.settings == {
        "kind": "fail", "api": "ListGroups", "error": "COORDINATOR_NOT_AVAILABLE", "times": 2, "nth": 2,
    }  # fmt: skip
    cluster.close()


def test_a_connection_that_drops_has_done_nothing(barnabas: package.Broker) -> None:
    fault = barnabas.drop_connection("CreateTopics")
    cluster = Cluster(barnabas.bootstrap_servers)
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    with pytest.raises(ConnectionLost):
        cluster.any_connection().request(CreateTopicsRequest(topics=[topic]))
    assert cluster.any_connection().request(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0
    assert fault.hits == 1
    cluster.close()


@pytest.mark.slow
def test_a_fetch_of_a_session_is_of_its_topics(barnabas: package.Broker, producer: Producer) -> None:
    """An incremental fetch repeats no partition, and is about all of them."""
    send(producer, "one")
    consumer = kafka.KafkaConsumer("orders", bootstrap_servers=barnabas.bootstrap_servers, auto_offset_reset="earliest")
    assert next(consumer).value == b"one"
    fault = barnabas.fail("Fetch", "UNKNOWN_SERVER_ERROR", topic="orders")
    other = barnabas.fail("Fetch", "UNKNOWN_SERVER_ERROR", topic="other")
    send(producer, "two")
    assert next(consumer).value == b"two"
    assert (fault.hits, other.hits) == (1, 0)
    asked = barnabas.requests("Fetch", topic="orders", partition=0)
    assert len(asked) > 1
    assert {each.node for each in asked} == {1}
    consumer.close()


def test_a_broker_alone_is_node_1(barnabas: package.Broker) -> None:
    barnabas.fail("ListGroups", "UNKNOWN_SERVER_ERROR", node=1)
    with pytest.raises(ValueError, match=r"^there is no node 2: this broker is node 1, or leave node out$"):
        barnabas.fail("ListGroups", "UNKNOWN_SERVER_ERROR", node=2)
