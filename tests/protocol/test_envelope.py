"""Envelopes in the bytes of Apache Kafka 4.4's `EnvelopeRequest`, and what is in their responses."""

from __future__ import annotations

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.envelope import read_address, unwrapped, wrapped
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse, EnvelopeResponse
from barnabas.security.principal import ANONYMOUS, Principal

DELETE = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="orders")], timeout_ms=5000)
INNER = (
    "0014 0006 00000007 0003617070 00"  # DeleteTopics, version 6, correlation id 7, "app", no tags
    "02 076f7264657273 00000000000000000000000000000000 00 00001388 00"
)
RESPONSE = "00000007 00 00000000 02 076f7264657273 00000000000000000000000000000000 0000 00 00 00"


def test_a_request_in_its_envelope() -> None:
    envelope = wrapped(DELETE, 6, correlation_id=7, client_id="app", principal=ANONYMOUS, host="10.1.2.3")
    expected = (
        f"2d {INNER}"  # 44 bytes
        "14 0000 0555736572 0a414e4f4e594d4f5553 00 00"  # 19 bytes, the principal
        "05 0a010203"
        "00"
    )
    assert envelope.encode(0) == bytes.fromhex(expected)


def test_a_version_without_tags_and_a_client_without_an_id() -> None:
    envelope = wrapped(
        DeleteTopicsRequest(topic_names=["t"]),
        3,
        correlation_id=1,
        client_id=None,
        principal=Principal("User", "a"),
        host="::1",
    )
    assert envelope.request_data == bytes.fromhex("0014 0003 00000001 ffff 00000001 000174 00000000")
    assert envelope.client_host_address == bytes(15) + b"\1"


@pytest.mark.parametrize(
    ("host", "data", "read"),
    [
        ("10.1.2.3", "0a010203", "10.1.2.3"),
        ("fe80::1%eth0", "fe80000000000000 0000000000000001", "fe80::1"),
        ("", "00000000", "0.0.0.0"),
    ],
)
def test_addresses(host: str, data: str, read: str) -> None:
    envelope = wrapped(DELETE, 6, correlation_id=7, client_id="", principal=Principal("User", "a"), host=host)
    assert envelope.client_host_address == bytes.fromhex(data)
    assert read_address(envelope.client_host_address) == read


@pytest.mark.parametrize("data", [b"", b"\1\2\3", bytes(17)])
def test_other_addresses_are_rejected(data: bytes) -> None:
    with pytest.raises(KafkaError) as raised:
        read_address(data)
    assert raised.value.code == ErrorCode.INVALID_REQUEST


def test_a_response_out_of_its_envelope() -> None:
    # The response in 38 bytes, no error, no tags.
    envelope = EnvelopeResponse.decode(bytes.fromhex(f"27 {RESPONSE} 0000 00"), 0)
    result = DeleteTopicsResponse.DeletableTopicResult(name="orders")
    assert unwrapped(envelope.response_data, ApiKey.DELETE_TOPICS, 6, 7) == DeleteTopicsResponse(responses=[result])


@pytest.mark.parametrize(
    "data",
    [None, b"", b"\0\0\0", bytes.fromhex(RESPONSE)[:-1], b"\0\0\0\6" + bytes.fromhex(RESPONSE)[4:]],
    ids=["null", "empty", "too short", "cut", "another correlation id"],
)
def test_other_responses_are_rejected(data: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        unwrapped(data, ApiKey.DELETE_TOPICS, 6, 7)
