"""The bytes of a connection: versions, sizes, and which response belongs to which request."""

from __future__ import annotations

import struct

import pytest

from barnabas.client.exchange import MAX_RESPONSE_BYTES, Exchange
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.framing import parse_request_header
from tests.client.scripted_broker import frame_response, versions_response


def exchange(ranges: dict[int, tuple[int, int]] | None = None) -> Exchange:
    made = Exchange("h:1", "me")
    made.learn(versions_response(ranges or {ApiKey.METADATA: (0, 12), ApiKey.FETCH: (4, 12)}))
    return made


def test_responses_belong_to_requests_in_their_order() -> None:
    under_test = exchange()
    for correlation_id in (1, 2):
        frame = under_test.encode(messages.MetadataRequest(topics=None), 12)
        header, body = parse_request_header(memoryview(frame)[4:])
        assert (len(frame) - 4, header.correlation_id, header.client_id) == (
            under_test.size_of(frame[:4]),
            correlation_id,
            "me",
        )
        assert messages.MetadataRequest.decode(memoryview(frame)[4 + body :], 12).topics is None
    assert under_test.unanswered == 2
    for correlation_id in (1, 2):
        response = messages.MetadataResponse(cluster_id=f"c{correlation_id}")
        frame_of_response = frame_response(ApiKey.METADATA, 12, correlation_id, response)
        assert under_test.decode(memoryview(frame_of_response)[4:]) == response
    assert repr(under_test) == "<Exchange h:1 unanswered=0>"


def test_a_response_to_no_request() -> None:
    with pytest.raises(MalformedMessage, match="answered a request that was not sent"):
        exchange().decode(memoryview(bytes(8)))


def test_requests_of_a_connection_that_is_gone_wait_for_nothing() -> None:
    under_test = exchange()
    under_test.encode(messages.MetadataRequest(), 12)
    under_test.reset()
    under_test.encode(messages.MetadataRequest(), 12)
    response = messages.MetadataResponse(cluster_id="c")
    assert under_test.decode(memoryview(frame_response(ApiKey.METADATA, 12, 2, response))[4:]) == response


@pytest.mark.parametrize("size", [-1, MAX_RESPONSE_BYTES + 1])
def test_a_size_that_no_broker_sends(size: int) -> None:
    with pytest.raises(MalformedMessage, match=f"h:1 announces a response of {size} bytes"):
        exchange().size_of(struct.pack(">i", size))


def test_versions() -> None:
    under_test = exchange({ApiKey.METADATA: (0, 12), ApiKey.FETCH: (4, 12), ApiKey.LIST_OFFSETS: (90, 99)})
    assert under_test.supports(ApiKey.FETCH, 12)
    assert not under_test.supports(ApiKey.FETCH, 13)
    assert not under_test.supports(ApiKey.LIST_GROUPS)
    assert under_test.version_for(messages.FetchRequest, 7) == 7
    with pytest.raises(KafkaError, match=r"h:1 does not serve LIST_GROUPS$") as raised:
        under_test.version_for(messages.ListGroupsRequest)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError, match="serves 90-99, we speak 1-11"):
        under_test.version_for(messages.ListOffsetsRequest)
    with pytest.raises(KafkaError, match="serves 4-12, we speak 4-3"):
        under_test.version_for(messages.FetchRequest, 3)
    with pytest.raises(KafkaError, match="it is not a broker's listener, perhaps a controller's"):
        exchange({ApiKey.VOTE: (0, 1)}).version_for(messages.MetadataRequest)


def test_an_older_broker_is_asked_again_in_the_version_it_knows() -> None:
    under_test = exchange()
    older = versions_response({ApiKey.API_VERSIONS: (0, 2)}, ErrorCode.UNSUPPORTED_VERSION)
    assert under_test.learn(older) == 2
    assert under_test.learn(versions_response({}, ErrorCode.UNSUPPORTED_VERSION)) == 0
    with pytest.raises(KafkaError, match="the broker h:1 refused ApiVersions"):
        under_test.learn(versions_response({}, ErrorCode.INVALID_REQUEST))
