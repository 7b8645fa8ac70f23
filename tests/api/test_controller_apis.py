"""The APIs of a controller's listener: which ones there are, and what an active controller and one that is not say to each."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.api.dispatch import RefusedRequest
from barnabas.protocol.api_keys import ApiKey, api, descriptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    UnregisterBrokerRequest,
    VoteRequest,
)
from barnabas.protocol.primitives import ONE_UUID
from barnabas.records.record_batch import iter_batches
from tests.api.controlling import Controlling
from tests.metadata.memory_log import CLUSTER_ID

TOPIC = "__cluster_metadata"
# Kafka's controllers have them, and barnabas has none on any listener.
MISSING = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.UNREGISTER_CONTROLLER,
}


@pytest.fixture
def node() -> Iterator[Controlling]:
    made = Controlling()
    yield made
    made.close()


def test_the_table_has_what_kafkas_controllers_serve() -> None:
    kafkas = {key for key in descriptions() if "controller" in api(key).listeners}
    assert set(CONTROLLER_APIS) == kafkas - MISSING
    assert list(CONTROLLER_APIS) == sorted(CONTROLLER_APIS)
    for key, served in CONTROLLER_APIS.items():
        known = api(key)
        assert (served.min_version, served.max_version) == (known.advertised_min, known.latest_stable), known.name
        if key == ApiKey.ENVELOPE:
            continue
        module = importlib.import_module(f"barnabas.api.{served.module}")
        assert callable(module.handle)
        assert "ersion" in (module.__doc__ or "")


def test_a_listener_advertises_its_own_apis_and_the_features(node: Controlling) -> None:
    answer = node.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1.0"), 4)
    assert {listed.api_key: (listed.min_version, listed.max_version) for listed in answer.api_keys} == {
        key: (served.min_version, served.max_version) for key, served in CONTROLLER_APIS.items()
    }
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert finalized["metadata.version"] > 0
    assert {feature.name for feature in answer.supported_features} >= {"kraft.version", "metadata.version"}


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.JOIN_GROUP])
def test_an_api_of_brokers_closes_the_connection(node: Controlling, key: int) -> None:
    with pytest.raises(RefusedRequest, match="is served on broker listeners only"):
        node.send(key, APIS[key].max_version, b"")


def test_an_api_that_is_not_served_yet_gets_its_own_answer(node: Controlling) -> None:
    route = node.dispatcher.route(ApiKey.CREATE_DELEGATION_TOKEN)
    assert node.ask(route.request()).error_code == ErrorCode.UNSUPPORTED_VERSION


# The quorum


def fetch(offset: int = 0, *, version: int = 17, topic: bytes = ONE_UUID, max_wait_ms: int = 0, **fields: Any) -> Any:
    partition = FetchRequest.FetchPartition(
        partition=0, current_leader_epoch=1, fetch_offset=offset, last_fetched_epoch=0 if offset == 0 else 1
    )
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        max_wait_ms=max_wait_ms,
        topics=[FetchRequest.FetchTopic(topic_id=topic, partitions=[partition])],
        replica_state=FetchRequest.ReplicaState(replica_id=2),
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("version", [17, 18])
def test_an_observer_reads_the_metadata_log(node: Controlling, version: int) -> None:
    answer = node.ask(fetch(), version)
    assert answer.error_code == 0
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == 0
    assert partition.high_watermark == node.services.image().provenance.offset + 1
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
    assert next(header.base_offset for _, header in iter_batches(partition.records)) == 0


def test_only_the_metadata_log_can_be_read(node: Controlling) -> None:
    assert node.ask(fetch(topic=b"\5" * 16), 17).error_code == ErrorCode.INVALID_REQUEST
    assert node.ask(fetch(cluster_id="another"), 17).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def vote(epoch: int, **fields: Any) -> VoteRequest:
    partition = VoteRequest.PartitionData(replica_epoch=epoch, replica_id=2, last_offset_epoch=1, last_offset=1000)
    request = VoteRequest(
        cluster_id=CLUSTER_ID, voter_id=1, topics=[VoteRequest.TopicData(topic_name=TOPIC, partitions=[partition])]
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("version", [0, 1])
def test_a_vote_is_answered_with_the_leader(node: Controlling, version: int) -> None:
    answer = node.ask(vote(1), version)
    (partition,) = answer.topics[0].partitions
    assert (answer.error_code, partition.vote_granted) == (0, False)
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    addresses = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
    assert addresses == ([(1, "controller.example", 9093)] if version else [])


def test_the_leaders_address_is_that_of_the_listener_that_is_asked(node: Controlling) -> None:
    node.connection.listener_name = "OTHER"
    assert node.ask(vote(1), 1).node_endpoints == []


def test_a_vote_of_another_cluster_is_rejected_as_a_whole(node: Controlling) -> None:
    assert node.ask(vote(1, cluster_id="another"), 1).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert node.ask(vote(1, topics=[]), 1).error_code == ErrorCode.INVALID_REQUEST


def test_the_ends_and_beginnings_of_epochs_are_answered(node: Controlling) -> None:
    begun = BeginQuorumEpochRequest.PartitionData(leader_id=2, leader_epoch=0)
    begin = BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        voter_id=1,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[begun])],
    )
    answered = node.ask(begin).topics[0].partitions[0]
    assert (answered.error_code, answered.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 1)
    ended = EndQuorumEpochRequest.PartitionData(leader_id=2, leader_epoch=0)
    end = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, topics=[EndQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[ended])]
    )
    answered = node.ask(end).topics[0].partitions[0]
    assert (answered.error_code, answered.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 1)


def test_a_node_that_stops_says_so(node: Controlling) -> None:
    node.services.driver.close()
    assert node.ask(vote(1), 1).error_code == ErrorCode.BROKER_NOT_AVAILABLE


def describe_quorum(node: Controlling) -> Any:
    asked = DescribeQuorumRequest.PartitionData(partition_index=0)
    topics = [DescribeQuorumRequest.TopicData(topic_name=TOPIC, partitions=[asked])]
    return node.ask(DescribeQuorumRequest(topics=topics)).topics[0].partitions[0]


def test_the_leader_describes_the_quorum_and_nobody_else(node: Controlling) -> None:
    described = describe_quorum(node)
    assert (described.error_code, described.leader_id) == (0, 1)
    node.services.controller.close()
    described = describe_quorum(node)
    assert described.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert described.error_message == "This controller does not lead the quorum."


@pytest.mark.parametrize("key", [ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER])
def test_the_voters_cannot_be_changed(node: Controlling, key: int) -> None:
    answer = node.ask(api(key).request_class())
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    if key != ApiKey.UPDATE_RAFT_VOTER:  # It has no message.
        assert "controller.quorum.voters" in answer.error_message


# The controller


def test_a_broker_registers_beats_and_gets_producer_ids(node: Controlling) -> None:
    epoch = node.register_broker(5).broker_epoch
    assert epoch > 0
    answer = node.beat(5, epoch)
    assert (answer.error_code, answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (
        0,
        True,
        False,
        False,
    )
    block = node.ask(AllocateProducerIdsRequest(broker_id=5, broker_epoch=epoch))
    assert (block.error_code, block.producer_id_start, block.producer_id_len) == (0, 0, 1000)
    assert node.beat(5, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_clients_create_topics_at_the_active_controller(node: Controlling) -> None:
    node.add_broker(5)
    asked = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert node.ask(CreateTopicsRequest(topics=[asked])).topics[0].error_code == 0
    assert "t" in node.services.image().topics.by_name


def test_a_heartbeat_is_told_with_its_connection(node: Controlling) -> None:
    epoch = node.add_broker(5)
    node.heard_from.clear()
    node.ask(api(ApiKey.BROKER_HEARTBEAT).request_class(broker_id=5, broker_epoch=epoch))
    assert node.heard_from == [(5, epoch, "test")]


def test_a_heartbeat_is_late_after_half_an_interval(node: Controlling) -> None:
    epoch = node.add_broker(5)
    asked = []
    node.services.controller.handle = lambda *_, **options: asked.append(options) or node.loop.create_future()  # type: ignore
    node.loop.call_later(1, lambda: None)
    request = api(ApiKey.BROKER_HEARTBEAT).request_class(broker_id=5, broker_epoch=epoch)
    body = request.encode(1)
    with pytest.raises(TimeoutError):
        node.loop.run_until_complete(_within(node, 63, 1, body))
    assert asked[0]["deadline_ms"] == node.now_ms + 1000


async def _within(node: Controlling, key: int, version: int, body: bytes) -> None:
    import asyncio
    import struct

    header = struct.pack(">hhih", key, version, 42, 4) + b"test\0"
    _, result = node.dispatcher.dispatch(node.connection, memoryview(bytearray(header + body)))
    assert isinstance(result, asyncio.Future)
    await asyncio.wait_for(result, 0.1)


NOT_CONTROLLER: list[tuple[Any, str]] = [
    (AllocateProducerIdsRequest(broker_id=5), "error_code"),
    (AlterPartitionRequest(broker_id=5), "error_code"),
    (UnregisterBrokerRequest(broker_id=5), "error_code"),
    (api(ApiKey.BROKER_REGISTRATION).request_class(broker_id=5), "error_code"),
    (api(ApiKey.BROKER_HEARTBEAT).request_class(broker_id=5), "error_code"),
    (api(ApiKey.CONTROLLER_REGISTRATION).request_class(controller_id=5), "error_code"),
    (api(ApiKey.ASSIGN_REPLICAS_TO_DIRS).request_class(broker_id=5), "error_code"),
]


@pytest.mark.parametrize(("request_", "field"), NOT_CONTROLLER, ids=lambda value: type(value).__name__)
def test_a_controller_that_is_not_active_says_so(node: Controlling, request_: Any, field: str) -> None:
    node.services.controller.close()
    assert getattr(node.ask(request_), field) == ErrorCode.NOT_CONTROLLER


# The image


def describe_cluster(node: Controlling, endpoint_type: int = 2, version: int = 2) -> Any:
    request = DescribeClusterRequest()
    if version:
        request.endpoint_type = endpoint_type
    return node.ask(request, version)


def test_the_controllers_are_described_by_their_registrations(node: Controlling) -> None:
    assert (describe_cluster(node).brokers, describe_cluster(node).controller_id) == ([], -1)
    node.register_controller(2)
    assert describe_cluster(node).controller_id == -1
    node.register_controller(1)
    answer = describe_cluster(node)
    assert (answer.cluster_id, answer.endpoint_type, answer.controller_id) == (CLUSTER_ID, 2, 1)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [(1, "c1", 9093), (2, "c2", 9093)]
    node.connection.listener_name = "OTHER"
    assert describe_cluster(node).brokers == []


@pytest.mark.parametrize(
    ("endpoint_type", "version", "code"),
    [
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (7, 2, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (1, 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_controller_describes_controllers_only(
    node: Controlling, endpoint_type: int, version: int, code: ErrorCode
) -> None:
    assert describe_cluster(node, endpoint_type, version).error_code == code


def test_a_controller_describes_its_own_settings(node: Controlling) -> None:
    def described(kind: int, name: str, key: str | None) -> Any:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None if key is None else [key]
        )
        return node.ask(DescribeConfigsRequest(resources=[resource])).results[0]

    result = described(4, "1", "node.id")
    assert [(each.name, each.value) for each in result.configs] == [("node.id", "1")]
    assert described(4, "2", None).error_code == ErrorCode.INVALID_REQUEST
    # Rebalances are known to a group's coordinator, which a controller is not.
    assert described(32, "g", "barnabas.rebalances").configs == []
