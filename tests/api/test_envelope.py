"""Requests that a broker forwards, as a controller answers them; a whole node is the controller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.api.envelope import FORWARDABLE, handle
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.envelope import unwrapped, wrapped
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    EnvelopeRequest,
    EnvelopeResponse,
    ListGroupsRequest,
)
from barnabas.security.principal import Principal
from tests.api.served_node import Serving

ALICE = Principal("User", "alice")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Any:
    node = Serving(tmp_path_factory.mktemp("envelope"))
    yield node
    node.close()


def sealed(request: Any, version: int, principal: Principal = ALICE) -> EnvelopeRequest:
    return wrapped(request, version, correlation_id=7, client_id="app", principal=principal, host="10.1.2.3")


def answer(serving: Serving, envelope: EnvelopeRequest) -> EnvelopeResponse:
    broker = ConnectionInfo("of the broker", "CONTROLLER", "10.0.0.2")

    async def answered() -> EnvelopeResponse:
        context = RequestContext(serving.server.services, broker, ApiKey.ENVELOPE, 0, 1, "3")
        return await handle(context, envelope)

    return serving.loop.run_until_complete(answered())


def ask(serving: Serving, request: Any, version: int) -> Any:
    response = answer(serving, sealed(request, version))
    assert response.error_code == 0
    return unwrapped(response.response_data, request.API_KEY, version, 7)


def rejected(serving: Serving, envelope: EnvelopeRequest) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        answer(serving, envelope)
    return raised.value.code


def create(name: str, partitions: int = 1) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_request_is_carried_out_and_answered_in_its_version(serving: Serving, version: int) -> None:
    response = ask(serving, create(f"t{version}"), version)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [(f"t{version}", 0)]
    assert f"t{version}" in serving.server.services.image().topics.by_name


def test_an_error_of_the_request_is_in_its_response(serving: Serving) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="missing")], timeout_ms=30_000)
    assert ask(serving, request, 6).responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_controller_that_is_not_active_rejects_the_envelope(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_once in (True, False):

        def resigned(*_: Any, at_once: bool = at_once, **__: Any) -> asyncio.Future[Any]:
            future = serving.loop.create_future()
            error = KafkaError(ErrorCode.NOT_CONTROLLER)
            if at_once:
                future.set_exception(error)
            else:
                serving.loop.call_soon(future.set_exception, error)
            return future

        monkeypatch.setattr(serving.server.services.controller, "handle", resigned)
        assert rejected(serving, sealed(create("never"), 7)) == ErrorCode.NOT_CONTROLLER


def test_a_principal_that_cannot_be_read(serving: Serving) -> None:
    envelope = sealed(create("never"), 7)
    envelope.request_principal = b"\0\7"
    assert rejected(serving, envelope) == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


def test_an_address_that_is_not_one(serving: Serving) -> None:
    envelope = sealed(create("never"), 7)
    envelope.client_host_address = b"\1\2"
    assert rejected(serving, envelope) == ErrorCode.INVALID_REQUEST


def test_an_api_that_may_not_be_forwarded_and_an_envelope_in_an_envelope(serving: Serving) -> None:
    assert rejected(serving, sealed(ListGroupsRequest(), 4)) == ErrorCode.INVALID_REQUEST
    assert rejected(serving, sealed(sealed(create("never"), 7), 0)) == ErrorCode.INVALID_REQUEST
    assert ApiKey.ENVELOPE not in FORWARDABLE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\x13",
        bytes.fromhex("0013 0063 00000001 ffff 00"),  # CreateTopics of version 99
        bytes.fromhex("0013 0007 00000001 ffff 00 ff"),
        bytes.fromhex("7fff 0000 00000001 ffff"),
    ],
    ids=["empty", "no header", "an unknown version", "no body", "an unknown API"],
)
def test_an_inner_request_that_cannot_be_read(serving: Serving, data: bytes) -> None:
    envelope = sealed(create("never"), 7)
    envelope.request_data = data
    assert rejected(serving, envelope) == ErrorCode.UNSUPPORTED_VERSION


def test_the_quota_of_the_client_counts_and_not_the_brokers(tmp_path: Any) -> None:
    """The controller mutation quota (KIP-599)."""
    node = Serving(tmp_path)
    kind = AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[kind.EntityData(entity_type="user", entity_name="alice")],
        ops=[kind.OpData(key="controller_mutation_rate", value=1.0)],
    )
    node.ask(AlterClientQuotasRequest(entries=[entry]))
    first = ask(node, create("a", 100), 7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
    second = ask(node, create("b", 100), 7)
    assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert second.throttle_time_ms > 0
    others = answer(node, sealed(create("c", 100), 7, Principal("User", "bob")))
    response = unwrapped(others.response_data, ApiKey.CREATE_TOPICS, 7, 7)
    assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)
    node.close()
