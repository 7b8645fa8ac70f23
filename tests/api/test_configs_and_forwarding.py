"""Configurations described, resources listed, and requests that the controller answers, on a whole node."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from barnabas.protocol.primitives import ZERO_UUID
from tests.api.served_node import Serving

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
Resource = DescribeConfigsRequest.DescribeConfigsResource


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Any:
    node = Serving(tmp_path_factory.mktemp("configs"))
    node.create_topic("t", 2, retention_ms="1000")
    yield node
    node.close()


def describe(serving: Serving, kind: int, name: str, version: int = 4, **options: Any) -> Any:
    keys = options.pop("keys", None)
    resource = Resource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = serving.ask(DescribeConfigsRequest(resources=[resource], **options), version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def set_config(serving: Serving, kind: int, name: str, key: str, value: str) -> int:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[config]
    )
    code: int = serving.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code
    return code


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_default_of_a_topic_is_listed(serving: Serving, version: int) -> None:
    rows = {row.name: row for row in describe(serving, TOPIC, "t", version).configs}
    assert len(rows) == 37  # Kafka's 38 without internal.segment.bytes, which it does not list either
    assert (rows["retention.ms"].value, rows["retention.ms"].config_source) == ("1000", 1)
    assert (rows["segment.bytes"].value, rows["segment.bytes"].config_source) == ("1073741824", 5)
    assert all(row.synonyms == [] and not row.documentation for row in rows.values())


def test_synonyms_documentation_and_chosen_keys(serving: Serving) -> None:
    result = describe(serving, TOPIC, "t", keys=["retention.ms"], include_synonyms=True, include_documentation=True)
    (row,) = result.configs
    assert next((s.name, s.value, s.source) for s in row.synonyms) == ("retention.ms", "1000", 1)
    assert row.documentation
    assert row.config_type == 5


def test_brokers_loggers_groups_and_metrics(serving: Serving) -> None:
    assert len(describe(serving, BROKER, "1").configs) > 200
    assert set_config(serving, BROKER, "", "log.retention.ms", "5000") == 0
    assert "log.retention.ms" in {row.name for row in describe(serving, BROKER, "").configs}
    loggers = {row.name: row.value for row in describe(serving, LOGGER, "1").configs}
    assert loggers["root"] in ("INFO", "WARN", "DEBUG", "ERROR", "FATAL", "TRACE")
    assert describe(serving, GROUP, "g").configs
    assert describe(serving, METRICS, "m").configs


@pytest.mark.parametrize(
    ("kind", "name", "code", "words"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "b d", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (BROKER, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (77, "x", ErrorCode.INVALID_REQUEST, "Unsupported resource type: 77"),
    ],
)
def test_a_resource_that_cannot_be_described_has_an_error(
    serving: Serving, kind: int, name: str, code: ErrorCode, words: str
) -> None:
    result = describe(serving, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert words in result.error_message


def test_resources_with_settings_are_listed(serving: Serving) -> None:
    set_config(serving, GROUP, "g", "consumer.session.timeout.ms", "46000")
    set_config(serving, METRICS, "m", "interval.ms", "1000")
    listed = serving.ask(ListConfigResourcesRequest(resource_types=[])).config_resources
    assert {(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g"), (METRICS, "m")} <= {
        (resource.resource_type, resource.resource_name) for resource in listed
    }
    only = serving.ask(ListConfigResourcesRequest(resource_types=[BROKER])).config_resources
    assert [(resource.resource_type, resource.resource_name) for resource in only] == [(BROKER, "1")]
    old = serving.ask(ListConfigResourcesRequest(), 0).config_resources
    assert [resource.resource_name for resource in old] == ["m"]
    assert serving.ask(ListConfigResourcesRequest(resource_types=[99])).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_topics_are_created_extended_and_deleted(serving: Serving) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="grows", num_partitions=-1, replication_factor=-1)
    (created,) = serving.ask(CreateTopicsRequest(topics=[topic])).topics
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 1, 1)
    assert created.configs
    for version in range(2, 8):
        again = serving.ask(CreateTopicsRequest(topics=[topic]), version).topics[0]
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    more = CreatePartitionsRequest.CreatePartitionsTopic(name="grows", count=4, assignments=None)
    assert serving.ask(CreatePartitionsRequest(topics=[more], timeout_ms=30_000)).results[0].error_code == 0
    assert len(serving.server.services.image().topics.by_name["grows"].partitions) == 4
    assert (
        serving.ask(DeleteTopicsRequest(topic_names=["grows", "no"], timeout_ms=30_000), 5).responses[1].error_code == 3
    )
    assert "grows" not in serving.server.services.image().topics.by_name


def test_the_controller_answers_other_forwarded_requests(serving: Serving) -> None:
    set_ = AlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[])
    assert serving.ask(AlterConfigsRequest(resources=[set_], validate_only=True)).responses[0].error_code == 0
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    asked = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    (quorum,) = serving.ask(DescribeQuorumRequest(topics=[asked])).topics[0].partitions
    assert (quorum.leader_id, [voter.replica_id for voter in quorum.current_voters]) == (1, [1])
    assert serving.ask(ListPartitionReassignmentsRequest(topics=None)).topics == []
    assert serving.ask(ElectLeadersRequest(election_type=0, topic_partitions=None)).error_code == 0
    assert serving.ask(UnregisterBrokerRequest(broker_id=9)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    move = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=None)
    moved = AlterPartitionReassignmentsRequest.ReassignableTopic(name="t", partitions=[move])
    answer = serving.ask(AlterPartitionReassignmentsRequest(topics=[moved]))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="no.such", max_version_level=1)
    assert serving.ask(UpdateFeaturesRequest(feature_updates=[update], validate_only=True)).error_code != 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_one_rejected_feature_rejects_the_request_and_success_has_results_below_version_2(
    serving: Serving, version: int
) -> None:
    group_version = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=1)
    made_up = UpdateFeaturesRequest.FeatureUpdateKey(feature="no.such", max_version_level=1)
    refused = serving.ask(UpdateFeaturesRequest(feature_updates=[group_version, made_up]), version)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "no.such" in refused.error_message
    assert refused.results == []
    taken = serving.ask(UpdateFeaturesRequest(feature_updates=[group_version]), version)
    assert taken.error_code == ErrorCode.NONE
    assert [result.feature for result in taken.results] == (["group.version"] if version < 2 else [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_in_every_version(serving: Serving, version: int) -> None:
    def topic(name: str) -> DescribeQuorumRequest:
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        return DescribeQuorumRequest(topics=[DescribeQuorumRequest.TopicData(topic_name=name, partitions=[partition])])

    answer = serving.ask(topic("__cluster_metadata"), version)
    (voter,) = answer.topics[0].partitions[0].current_voters
    assert (answer.topics[0].partitions[0].leader_id, voter.replica_id) == (1, 1)
    assert (voter.replica_directory_id != ZERO_UUID, len(answer.nodes)) == (version >= 2, int(version >= 2))
    other = serving.ask(topic("no.such"), version)
    assert other.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert other.nodes == []


def test_the_metadata_topic_and_remote_storage_are_rejected(serving: Serving) -> None:
    topic = CreateTopicsRequest.CreatableTopic
    remote = CreateTopicsRequest.CreatableTopicConfig(name="remote.storage.enable", value="true")
    request = CreateTopicsRequest(
        topics=[
            topic(name="__cluster_metadata", num_partitions=1, replication_factor=1),
            topic(name="remote", num_partitions=1, replication_factor=1, configs=[remote]),
        ]
    )
    codes = [result.error_code for result in serving.ask(request).topics]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG]


def test_a_repeated_key_is_an_invalid_request(serving: Serving) -> None:
    alter = IncrementalAlterConfigsRequest
    retention = alter.AlterableConfig(name="retention.ms", config_operation=0, value="1")
    twice = alter.AlterConfigsResource(resource_type=2, resource_name="t", configs=[retention, retention])
    answer = serving.ask(alter(resources=[twice]))
    assert [response.error_code for response in answer.responses] == [ErrorCode.INVALID_REQUEST]


def test_a_group_setting_without_a_broker_setting_has_its_default(serving: Serving) -> None:
    entries = {entry.name: entry for entry in describe(serving, GROUP, "g", include_synonyms=True).configs}
    synonyms = entries["share.auto.offset.reset"].synonyms
    assert [(synonym.name, synonym.value) for synonym in synonyms] == [("share.auto.offset.reset", "latest")]
