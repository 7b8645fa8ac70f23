"""What the controller learns of the client for which a broker asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.api.serving.context import Client
from barnabas.api.serving.topic_creation import create_internal_topic
from barnabas.protocol.messages import CreateTopicsRequest, MetadataRequest
from barnabas.security.principal import ANONYMOUS
from tests.api.served_node import Serving


@pytest.fixture
def serving(tmp_path: Any) -> Any:
    node = Serving(tmp_path)
    yield node
    node.close()


@pytest.fixture
def asked(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of the controller's requests, which it goes on to answer."""
    seen: list[dict[str, Any]] = []
    handle = serving.server.controller.handle

    def noted(*request: Any, **options: Any) -> asyncio.Future[Any]:
        seen.append(options)
        return handle(*request, **options)

    monkeypatch.setattr(serving.server.services.controller, "handle", noted)
    return seen


def test_the_controller_learns_who_sent_a_request(serving: Serving, asked: list[dict[str, Any]]) -> None:
    serving.ask(CreateTopicsRequest(topics=[], timeout_ms=500))
    (options,) = asked
    assert options["client"] == Client("test", "10.0.0.9", 42)
    assert options["principal"] == ANONYMOUS
    assert options["deadline_ms"] == serving.now_ms + 500


def test_a_topic_that_a_client_needs_is_created_in_its_name(serving: Serving, asked: list[dict[str, Any]]) -> None:
    serving.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]))
    assert [options["client"] for options in asked] == [Client("test", "10.0.0.9", 42)]


def test_a_topic_that_the_broker_needs_is_created_in_its_own(serving: Serving, asked: list[dict[str, Any]]) -> None:
    serving.loop.run_until_complete(create_internal_topic(serving.server.services, "__consumer_offsets"))
    assert [options["client"] for options in asked] == [None]
