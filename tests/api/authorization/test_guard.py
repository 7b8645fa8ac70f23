"""The guard of the active controller: a client is asked, wherever its request came in; the node itself is not."""

from __future__ import annotations

import pytest

from barnabas.metadata.controller_request import Client
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.envelope import unwrapped, wrapped
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest, EnvelopeResponse
from barnabas.security.principal import Principal
from tests.api.authorization.answers import Authorized

BOB = Principal("User", "bob")


def create(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def test_a_client_is_asked_and_the_node_is_not(authorized: Authorized) -> None:
    handle, run = authorized.server.controller.handle, authorized.loop.run_until_complete
    client = Client("app", "10.0.0.7", 1)
    denied = run(handle(ApiKey.CREATE_TOPICS, 7, create("theirs"), principal=BOB, client=client))
    assert [topic.error_code for topic in denied.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    own = run(handle(ApiKey.CREATE_TOPICS, 7, create("own"), client=None))
    assert [topic.error_code for topic in own.topics] == [0]


def test_a_node_without_rights_registers_no_broker(authorized: Authorized) -> None:
    from barnabas.protocol.messages import BrokerRegistrationRequest

    request = BrokerRegistrationRequest(broker_id=77)
    asked = authorized.server.controller.handle(
        ApiKey.BROKER_REGISTRATION, 4, request, principal=BOB, client=Client(None, "10.0.0.7", 1)
    )
    with pytest.raises(KafkaError) as raised:
        authorized.loop.run_until_complete(asked)
    assert raised.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert 77 not in authorized.server.image.cluster.brokers


def test_the_client_inside_an_envelope_is_asked(authorized: Authorized) -> None:
    from barnabas.api.envelope import handle
    from barnabas.api.serving.context import ConnectionInfo, RequestContext

    sealed = wrapped(create("sealed"), 7, correlation_id=7, client_id="app", principal=BOB, host="10.1.2.3")
    broker = ConnectionInfo("of the broker", "CONTROLLER", "10.0.0.2", principal=Principal("User", "admin"))

    async def answered() -> EnvelopeResponse:
        return await handle(RequestContext(authorized.server.services, broker, ApiKey.ENVELOPE, 0, 1, "3"), sealed)  # type: ignore[arg-type]

    envelope = authorized.loop.run_until_complete(answered())
    response = unwrapped(envelope.response_data, ApiKey.CREATE_TOPICS, 7, 7)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
