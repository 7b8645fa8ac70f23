"""The APIs of a controller's listener: which ones there are, and what an active controller and one that is not say to each."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.protocol.api_keys import ApiKey, api, descriptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
)
from tests.api.controlling import Controlling


def test_the_table_has_what_kafkas_controllers_serve() -> None:
    kafkas = {key for key in descriptions() if "controller" in api(key).listeners}
    assert set(CONTROLLER_APIS) == kafkas
    assert list(CONTROLLER_APIS) == sorted(CONTROLLER_APIS)
    for key, served in CONTROLLER_APIS.items():
        known = api(key)
        assert (served.min_version, served.max_version) == (known.advertised_min, known.latest_stable), known.name
        module = importlib.import_module(f"barnabas.api.{served.module}")
        assert callable(module.handle)
        assert "ersion" in (module.__doc__ or "")


def test_a_listener_advertises_its_own_apis_and_the_features(controlling: Controlling) -> None:
    answer = controlling.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1.0"), 4)
    assert {listed.api_key: (listed.min_version, listed.max_version) for listed in answer.api_keys} == {
        key: (served.min_version, served.max_version) for key, served in CONTROLLER_APIS.items()
    }
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert finalized["metadata.version"] > 0
    assert {feature.name for feature in answer.supported_features} >= {"kraft.version", "metadata.version"}


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.JOIN_GROUP])
def test_an_api_of_brokers_closes_the_connection(controlling: Controlling, key: int) -> None:
    with pytest.raises(RefusedRequest, match="is served on broker listeners only"):
        controlling.send(key, APIS[key].max_version, b"")


def test_an_api_that_is_not_served_yet_gets_its_own_answer(
    controlling: Controlling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(CONTROLLER_APIS, ApiKey.UNREGISTER_CONTROLLER)
    route = controlling.dispatcher.route(ApiKey.UNREGISTER_CONTROLLER)
    assert controlling.ask(route.request()).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_clients_create_topics_at_the_active_controller(controlling: Controlling) -> None:
    controlling.add_broker(5)
    asked = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert controlling.ask(CreateTopicsRequest(topics=[asked])).topics[0].error_code == 0
    assert "t" in controlling.services.image().topics.by_name


def test_a_controller_describes_its_own_settings(controlling: Controlling) -> None:
    def described(kind: int, name: str, key: str | None) -> Any:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None if key is None else [key]
        )
        return controlling.ask(DescribeConfigsRequest(resources=[resource])).results[0]

    result = described(4, "1", "node.id")
    assert [(each.name, each.value) for each in result.configs] == [("node.id", "1")]
    assert described(4, "2", None).error_code == ErrorCode.INVALID_REQUEST
    # Rebalances are known to a group's coordinator, which a controller is not.
    assert described(32, "g", "barnabas.rebalances").configs == []
