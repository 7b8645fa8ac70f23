"""One connection: negotiation, pipelining, zero copy, and every way the other side can misbehave."""

import struct

import pytest

from barnabas.client.errors import BrokerNotAvailable, ConnectionLost, RequestTimedOut
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, MalformedMessage
from barnabas.records.builder import build_batch
from barnabas.records.record import check_records
from tests.client.scripted_broker import CLOSE, SILENCE, ScriptedBroker, answer, versions_response

RANGES = {ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 12), ApiKey.FETCH: (4, 12), ApiKey.PRODUCE: (0, 9)}


def connect(broker: ScriptedBroker, **options: object) -> BlockingConnection:
    return BlockingConnection("127.0.0.1", broker.port, **options)  # type: ignore[arg-type]


def metadata(cluster_id: str) -> messages.MetadataResponse:
    return messages.MetadataResponse(cluster_id=cluster_id)


def test_negotiates_and_asks_in_the_highest_common_version() -> None:
    with ScriptedBroker(answer(versions_response(RANGES)), answer(metadata("c"))) as broker:
        with connect(broker, client_id="me") as connection:
            assert connection.request(messages.MetadataRequest(topics=None)).cluster_id == "c"
        first, second = broker.seen
        assert (first.api_key, first.version, first.client_id) == (ApiKey.API_VERSIONS, 4, "me")
        assert first.message.client_software_name == "barnabas"
        assert (second.api_key, second.version) == (ApiKey.METADATA, 12)
        assert second.correlation_id == first.correlation_id + 1


def test_kip_511_an_older_broker_answers_in_version_0_with_its_range() -> None:
    unsupported = versions_response({ApiKey.API_VERSIONS: (0, 2)}, ErrorCode.UNSUPPORTED_VERSION)
    with ScriptedBroker(answer(unsupported, body_version=0), answer(versions_response(RANGES))) as broker:
        with connect(broker) as connection:
            assert connection.versions == RANGES
        assert [seen.version for seen in broker.seen] == [4, 2]


def test_a_service_that_closes_on_unknown_versions_is_asked_with_version_0() -> None:
    with ScriptedBroker(CLOSE, answer(versions_response(RANGES))) as broker:
        with connect(broker) as connection:
            assert connection.versions == RANGES
        assert [seen.version for seen in broker.seen] == [4, 0]


def test_pipelined_requests_are_answered_in_order() -> None:
    script = [answer(versions_response(RANGES)), *(answer(metadata(name)) for name in "abc")]
    with ScriptedBroker(*script) as broker, connect(broker) as connection:
        for _ in range(3):
            assert connection.send(messages.MetadataRequest(topics=[])) == 12
        assert connection.unanswered == 3
        assert [connection.receive().cluster_id for _ in range(3)] == ["a", "b", "c"]
        assert connection.unanswered == 0


def test_fetched_records_are_views_of_one_buffer() -> None:
    batches = [bytes(build_batch([(1, None, bytes([index]) * 1000, [])])) for index in range(3)]
    response = messages.FetchResponse(
        responses=[
            messages.FetchResponse.FetchableTopicResponse(
                topic="t",
                partitions=[
                    messages.FetchResponse.PartitionData(partition_index=index, records=batch)
                    for index, batch in enumerate(batches)
                ],
            )
        ]
    )
    with ScriptedBroker(answer(versions_response(RANGES)), answer(response)) as broker:
        with connect(broker) as connection:
            fetched = connection.request(messages.FetchRequest())
        views = [partition.records for partition in fetched.responses[0].partitions]
    assert all(isinstance(view, memoryview) for view in views)
    assert len({id(view.obj) for view in views}) == 1
    # The connection is closed, the records are still there.
    assert [check_records(view)[0].value for view in views] == [bytes([index]) * 1000 for index in range(3)]


def test_nobody_listens() -> None:
    with pytest.raises(BrokerNotAvailable) as raised:
        BlockingConnection("127.0.0.1", 1)
    assert str(raised.value).startswith("BrokerNotAvailable: cannot reach 127.0.0.1:1: connection refused")
    assert raised.value.code == ErrorCode.BROKER_NOT_AVAILABLE


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(BrokerNotAvailable, match="does not resolve"):
        BlockingConnection("no-such-host.invalid", 9092)


def test_a_broker_that_closes_in_the_middle() -> None:
    with ScriptedBroker(answer(versions_response(RANGES)), CLOSE) as broker:
        connection = connect(broker)
        with pytest.raises(ConnectionLost, match=f"lost the connection to 127.0.0.1:{broker.port}"):
            connection.request(messages.MetadataRequest(topics=[]))
        assert connection.closed
        assert connection.fileno() == -1
        with pytest.raises(ConnectionLost, match="is closed"):
            connection.request(messages.MetadataRequest(topics=[]))


def test_a_broker_that_closes_inside_a_response() -> None:
    with ScriptedBroker(answer(versions_response(RANGES)), struct.pack(">ii", 100, 2), CLOSE) as broker:
        connection = connect(broker, timeout_ms=10_000)
        connection.send(messages.MetadataRequest(topics=[]))
        connection.send(messages.MetadataRequest(topics=[]))
        with pytest.raises(ConnectionLost):
            connection.receive()


def test_a_broker_that_does_not_answer_in_time() -> None:
    times = iter([0.0] * 10)
    with ScriptedBroker(answer(versions_response(RANGES)), SILENCE) as broker:
        connection = connect(broker, clock=lambda: next(times, 99.0), negotiate=False)
        connection.request(messages.ApiVersionsRequest(), version=0)
        times = iter([0.0])
        with pytest.raises(RequestTimedOut, match="did not answer in time") as raised:
            connection.request(messages.ApiVersionsRequest(), version=0)
        assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
        assert connection.closed


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2) + b"ab",
        struct.pack(">ii", 4, 12345),
        struct.pack(">iib", 5, 2, 0),
        struct.pack(">iib", 30, 2, 0) + b"\xff" * 25,
    ],
    ids=["http", "negative", "no_header", "other_correlation_id", "empty_body", "garbage"],
)
def test_answers_that_are_none(reply: bytes) -> None:
    with ScriptedBroker(answer(versions_response(RANGES)), reply) as broker:
        connection = connect(broker)
        with pytest.raises(MalformedMessage, match=f"127.0.0.1:{broker.port}"):
            connection.request(messages.MetadataRequest(topics=[]))
        assert connection.closed


def test_ipv6_addresses_are_shown_in_brackets() -> None:
    with pytest.raises(BrokerNotAvailable, match=r"cannot reach \[::1\]:1"):
        BlockingConnection("::1", 1)


def test_repr() -> None:
    with ScriptedBroker(answer(versions_response(RANGES))) as broker:
        connection = connect(broker)
        assert repr(connection) == f"<BlockingConnection 127.0.0.1:{broker.port} 0 unanswered>"
        connection.close()
        assert repr(connection) == f"<BlockingConnection 127.0.0.1:{broker.port} closed>"
