"""ApiVersions: ranges, features, software names, cluster id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.api import APIS, TELEMETRY
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ApiVersionsRequest
from barnabas.protocol.messages import IncrementalAlterConfigsRequest as Alter
from tests.api.served_node import Serving


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Any:
    node = Serving(tmp_path_factory.mktemp("api-versions"))
    yield node
    node.close()


def ask(serving: Serving, version: int, **fields: Any) -> Any:
    fields = {"client_software_name": "test", "client_software_version": "1.0", **fields}
    return serving.ask(ApiVersionsRequest(**fields), version)


@pytest.mark.parametrize("version", range(6))
def test_exactly_what_is_served_is_advertised(serving: Serving, version: int) -> None:
    answer = ask(serving, version)
    assert answer.error_code == 0
    assert {r.api_key: (r.min_version, r.max_version) for r in answer.api_keys} == {
        key: (served.min_version, served.max_version) for key, served in APIS.items() if key not in TELEMETRY
    }


@pytest.mark.parametrize("receiver", [{}, {"barnabas_metrics_listen": "127.0.0.1:0"}], ids=["none", "metrics"])
def test_telemetry_is_listed_with_a_receiver_and_while_there_is_a_subscription(
    tmp_path: Path, receiver: dict[str, str]
) -> None:
    node = Serving(tmp_path, **receiver)

    def listed() -> set[int]:
        return {listed.api_key for listed in ask(node, 4).api_keys} & TELEMETRY

    def subscribe(value: str | None) -> None:
        settings = [Alter.AlterableConfig(name="metrics", config_operation=0 if value else 1, value=value)]
        resource = Alter.AlterConfigsResource(resource_type=16, resource_name="all", configs=settings)
        assert node.ask(Alter(resources=[resource])).responses[0].error_code == 0

    assert listed() == set()
    subscribe("*")
    assert listed() == (TELEMETRY if receiver else set())
    subscribe(None)
    assert listed() == set()
    node.close()


def test_a_feature_from_level_0_is_listed_from_version_4_on(serving: Serving) -> None:
    old = {feature.name: feature.min_version for feature in ask(serving, 3).supported_features}
    new = {feature.name: feature.min_version for feature in ask(serving, 4).supported_features}
    assert all(level > 0 for level in old.values())
    assert "metadata.version" in old
    assert 0 in new.values()
    assert set(old) < set(new)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_only_served_features_are_finalized(serving: Serving, version: int) -> None:
    answer = ask(serving, version)
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert finalized["metadata.version"] > 0
    assert answer.finalized_features_epoch >= 0
    # The log finalizes these as Kafka would; what is not served is not told.
    levels = serving.server.services.image().features.all_finalized()
    for feature, key in (("transaction.version", 28), ("group.version", 68), ("share.version", 76)):
        assert levels[feature] > 0
        assert (feature in finalized) == (key in APIS)


def test_all_apis_that_librdkafka_checks_are_listed(serving: Serving) -> None:
    ranges = {r.api_key: (r.min_version, r.max_version) for r in ask(serving, 0).api_keys}
    for key, low, high in ((0, 3, 7), (1, 4, 10), (10, 0, 0), (8, 2, 2), (9, 1, 1), (11, 0, 0), (22, 0, 0)):
        assert ranges[key][0] <= low
        assert high <= ranges[key][1]
    assert {12, 13, 14} <= set(ranges)


def test_transactions_are_advertised_whole(serving: Serving) -> None:
    transactional = {
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    }
    assert transactional <= {listed.api_key for listed in ask(serving, 4).api_keys}


def test_version_0_of_the_share_apis_is_not_advertised(serving: Serving) -> None:
    lowest = {listed.api_key: listed.min_version for listed in ask(serving, 4).api_keys}
    share = (ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
    assert [lowest[key] for key in share] == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["", "-", "a b", "-a", "a-", "ä"])
def test_software_names_must_match_kafkas_pattern(serving: Serving, name: str) -> None:
    refused = ask(serving, 3, client_software_name=name)
    assert (refused.error_code, refused.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert ask(serving, 3, client_software_version=name).error_code == ErrorCode.INVALID_REQUEST


def test_the_connection_has_the_software_name_and_version(serving: Serving) -> None:
    ask(serving, 3, client_software_name="apache-kafka-java", client_software_version="4.0.0")
    assert serving.connection.client_software_name == "apache-kafka-java"
    assert serving.connection.client_software_version == "4.0.0"


def test_another_cluster_id_sends_the_client_to_its_bootstrap_servers(serving: Serving) -> None:
    own = serving.node.cluster_id
    assert ask(serving, 5, cluster_id=own, node_id=1).error_code == 0
    assert ask(serving, 5, cluster_id=None).error_code == 0
    assert ask(serving, 5, cluster_id="of-another-cluster").error_code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert ask(serving, 5, cluster_id=own, node_id=2).error_code == ErrorCode.REBOOTSTRAP_REQUIRED


@pytest.mark.parametrize("setting", ["unstable_api_versions_enable", "transaction_two_phase_commit_enable"])
def test_version_6_of_init_producer_id_is_listed_if_a_setting_allows_it(tmp_path: Path, setting: str) -> None:
    node = Serving(tmp_path, **{setting: "true"})
    try:
        ranges = {r.api_key: r.max_version for r in ask(node, 4).api_keys}
        assert ranges[22] == 6
        assert node.dispatcher.route(22).max_version == 6
    finally:
        node.close()
