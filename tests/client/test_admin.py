"""Admin against brokers of every generation: each request must fit whatever version is negotiated."""

from typing import Any

import pytest

from barnabas.client.admin import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Admin,
    CommittedOffset,
    ConfigChange,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    TopicPartition,
    result,
)
from barnabas.client.configs import ConfigOperation
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.versioned import encode_versioned
from tests.client.scripted_broker import MemoryCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def memory() -> MemoryCluster:
    cluster = MemoryCluster(1, 2, controller=2)
    cluster.topics = {"t": [1, 2], "__hidden": [1]}
    cluster.coordinators = {"g": 2}
    return cluster


@pytest.fixture
def admin(memory: MemoryCluster) -> Admin:
    return Admin(memory.client())


def every_version(request_class: Any, lowest: int | None = None, highest: int | None = None) -> list[int]:
    low = request_class.MIN_VERSION if lowest is None else lowest
    return list(range(low, (request_class.MAX_VERSION if highest is None else highest) + 1))


def only(memory: MemoryCluster, request_class: Any, version: int) -> None:
    memory.versions = {**memory.versions, request_class.API_KEY: (0, version)}


def error_code(outcome: object) -> ErrorCode:
    assert isinstance(outcome, KafkaError)
    return outcome.code


@pytest.mark.parametrize("version", every_version(messages.MetadataRequest))
def test_list_and_describe_topics(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.MetadataRequest, version)
    names = [topic.name for topic in admin.list_topics(internal=True)]
    assert names == ["__hidden", "t"]
    found = admin.describe_topics(["t", "nope"])
    assert len(result(found["t"]).partitions) == 2
    assert error_code(found["nope"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", every_version(messages.CreateTopicsRequest))
def test_create_topics(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.CreateTopicsRequest, version)
    response = messages.CreateTopicsResponse

    def create(broker_id: int, request: Any, version: int) -> Any:
        assert broker_id == 2
        memory.topics["new"] = [1]
        return response(
            topics=[
                response.CreatableTopicResult(
                    name=topic.name, error_code=36 if topic.name == "t" else 0, num_partitions=topic.num_partitions
                )
                for topic in request.topics
            ]
        )

    memory.handlers["CreateTopicsRequest"] = create
    created = admin.create_topics([NewTopic("new", 3, 1, {"retention.ms": "5"}), NewTopic("t", 1, 1)])
    assert result(created["new"]).partitions == (3 if version >= 5 else -1)
    assert error_code(created["t"]) == ErrorCode.TOPIC_ALREADY_EXISTS
    (request,) = memory.asked("CreateTopicsRequest")
    assert [(config.name, config.value) for config in request.topics[0].configs] == [("retention.ms", "5")]
    defaults = admin.create_topics([NewTopic("new")])["new"]
    assert isinstance(defaults, KafkaError) == (version < 4)
    assigned = admin.create_topics([NewTopic("new", assignments={0: [1, 2]})])["new"]
    assert not isinstance(assigned, KafkaError)
    request = memory.asked("CreateTopicsRequest")[-1]
    assert (request.topics[0].num_partitions, request.topics[0].assignments[0].broker_ids) == (-1, [1, 2])


@pytest.mark.parametrize("version", every_version(messages.DeleteTopicsRequest))
def test_delete_topics(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DeleteTopicsRequest, version)
    response = messages.DeleteTopicsResponse

    def delete(broker_id: int, request: Any, version: int) -> Any:
        names = [topic.name for topic in request.topics] if version >= 6 else request.topic_names
        memory.topics.pop("t", None)
        return response(
            responses=[response.DeletableTopicResult(name=name, error_code=0 if name == "t" else 3) for name in names]
        )

    memory.handlers["DeleteTopicsRequest"] = delete
    deleted = admin.delete_topics(["t", "nope"])
    assert not isinstance(deleted["t"], KafkaError)
    assert "topic nope does not exist" in str(deleted["nope"])


def test_the_controller_moves(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.CreatePartitionsResponse

    def create(broker_id: int, request: Any, version: int) -> Any:
        code = ErrorCode.NOT_CONTROLLER if broker_id == 2 else 0
        memory.controller_id = 1
        if not code:
            memory.topics["t"] = [1, 2, 1, 2]
        return response(results=[response.CreatePartitionsTopicResult(name="t", error_code=code)])

    memory.handlers["CreatePartitionsRequest"] = create
    assert admin.create_partitions({"t": 4}, assignments={"t": [[1], [2]]}) == {"t": 4}
    assert [port for port, request, _ in memory.requests if isinstance(request, messages.CreatePartitionsRequest)] == [
        2,
        1,
    ]


@pytest.mark.parametrize("version", every_version(messages.DescribeConfigsRequest))
def test_describe_configs(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeConfigsRequest, version)
    response = messages.DescribeConfigsResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        return response(
            results=[
                response.DescribeConfigsResult(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[
                        response.DescribeConfigsResourceResult(name="b", value=str(broker_id), config_source=5),
                        response.DescribeConfigsResourceResult(
                            name="a", value=None, config_source=77, is_sensitive=True, config_type=3
                        ),
                    ],
                )
                for each in request.resources
            ]
        )

    memory.handlers["DescribeConfigsRequest"] = describe
    topic, broker = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.BROKER, "2")
    found = admin.describe_configs([topic, broker], synonyms=True)
    first, second = result(found[broker])
    assert (first.name, first.value, first.source, first.sensitive) == ("a", None, ConfigSource.UNKNOWN, True)
    assert (second.name, second.value, second.is_default) == ("b", "2", True)
    assert first.type == ("int" if version >= 3 else "unknown")
    assert result(found[topic])[1].value == "1"


def test_alter_configs(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.IncrementalAlterConfigsResponse

    def alter(broker_id: int, request: Any, version: int) -> Any:
        return response(
            responses=[
                response.AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=0 if each.resource_name == "t" else 40,
                    error_message="no such setting",
                )
                for each in request.resources
            ]
        )

    memory.handlers["IncrementalAlterConfigsRequest"] = alter
    good, bad = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.TOPIC, "u")
    outcome = admin.alter_configs(
        {
            good: [ConfigChange("a", "1"), ConfigChange("b", operation=ConfigOperation.DELETE)],
            bad: [ConfigChange("x", "")],
        },
        validate_only=True,
    )
    assert outcome[good] is None
    assert str(outcome[bad]) == "INVALID_CONFIG: no such setting"
    (request,) = memory.asked("IncrementalAlterConfigsRequest")
    assert request.validate_only
    assert [(config.name, config.config_operation, config.value) for config in request.resources[0].configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
    ]


@pytest.mark.parametrize("version", every_version(messages.ListOffsetsRequest))
def test_list_offsets(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ListOffsetsRequest, version)
    response = messages.ListOffsetsResponse

    def list_offsets(broker_id: int, request: Any, version: int) -> Any:
        return response(
            topics=[
                response.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        response.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=each.timestamp * 10 + broker_id, timestamp=5
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    memory.handlers["ListOffsetsRequest"] = list_offsets
    found = admin.list_offsets({T0: LATEST, T1: 123})
    assert [result(found[each]).offset for each in (T0, T1)] == [-9, 1232]
    assert result(admin.list_offsets({T1: EARLIEST})[T1]).offset == -18
    newest = admin.list_offsets({T0: MAX_TIMESTAMP})[T0]
    assert isinstance(newest, KafkaError) == (version < 7)


def test_delete_records(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DeleteRecordsResponse

    def delete(broker_id: int, request: Any, version: int) -> Any:
        (topic,) = request.topics
        return response(
            topics=[
                response.DeleteRecordsTopicResult(
                    name="t",
                    partitions=[
                        response.DeleteRecordsPartitionResult(
                            partition_index=each.partition_index, low_watermark=each.offset
                        )
                        for each in topic.partitions
                    ],
                )
            ]
        )

    memory.handlers["DeleteRecordsRequest"] = delete
    assert admin.delete_records({T0: 7, T1: 9}) == {T0: 7, T1: 9}


@pytest.mark.parametrize("version", every_version(messages.ListGroupsRequest))
def test_list_groups_asks_every_broker(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ListGroupsRequest, version)
    response = messages.ListGroupsResponse

    def list_groups(broker_id: int, request: Any, version: int) -> Any:
        listed = response.ListedGroup(group_id=f"g{broker_id}", protocol_type="consumer")
        if version >= 4:
            listed.group_state = "Stable"
        return response(groups=[listed])

    memory.handlers["ListGroupsRequest"] = list_groups
    listed = admin.list_groups()
    assert [(each.group_id, each.coordinator) for each in listed] == [("g1", 1), ("g2", 2)]
    assert {each.state for each in listed} == ({"Stable"} if version >= 4 else {""})


def test_a_partial_list_of_groups_is_an_error(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.ListGroupsResponse
    memory.handlers["ListGroupsRequest"] = lambda broker_id, request, version: response(
        error_code=0 if broker_id == 1 else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    with pytest.raises(KafkaError) as raised:
        admin.list_groups()
    assert raised.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def classic_groups(broker_id: int, request: Any, version: int) -> Any:
    response = messages.DescribeGroupsResponse
    assigned = messages.ConsumerProtocolAssignment(
        assigned_partitions=[messages.ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[1, 0])]
    )
    groups = []
    for group_id in request.groups:
        if group_id == "g":
            member = response.DescribedGroupMember(
                member_id="m", client_id="c", client_host="/127.0.0.1", member_assignment=encode_versioned(assigned, 0)
            )
            odd = response.DescribedGroupMember(member_id="n", member_assignment=b"\x00")
            groups.append(
                response.DescribedGroup(
                    group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range",
                    members=[odd, member],
                )
            )  # fmt: skip
        elif version >= 6:
            groups.append(response.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        else:
            groups.append(response.DescribedGroup(group_id=group_id, group_state="Dead"))
    return response(groups=groups)


@pytest.mark.parametrize("version", every_version(messages.DescribeGroupsRequest))
def test_describe_classic_groups(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeGroupsRequest, version)
    del memory.versions[messages.ConsumerGroupDescribeRequest.API_KEY]
    memory.handlers["DescribeGroupsRequest"] = classic_groups
    found = admin.describe_groups(["g", "nope"])
    group = result(found["g"])
    assert (group.type, group.state, group.assignor, group.coordinator.id) == ("classic", "Stable", "range", 2)
    assert [(member.member_id, member.assignment) for member in group.members] == [("m", [T0, T1]), ("n", [])]
    assert "group nope does not exist" in str(found["nope"])


@pytest.mark.parametrize("version", every_version(messages.ConsumerGroupDescribeRequest))
def test_describe_groups_of_both_types(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ConsumerGroupDescribeRequest, version)
    response = messages.ConsumerGroupDescribeResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        groups = []
        for group_id in request.group_ids:
            if group_id == "new":
                topic = response.TopicPartitions(topic_name="t", partitions=[0])
                member = response.Member(
                    member_id="m", client_id="c", assignment=response.Assignment(topic_partitions=[topic])
                )
                groups.append(
                    response.DescribedGroup(
                        group_id="new", group_state="Stable", assignor_name="uniform", members=[member]
                    )
                )
            else:
                groups.append(response.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        return response(groups=groups)

    memory.handlers["ConsumerGroupDescribeRequest"] = describe
    memory.handlers["DescribeGroupsRequest"] = classic_groups
    found = admin.describe_groups(["new", "g", "nope"])
    assert result(found["new"]).type == "consumer"
    assert result(found["new"]).members[0].assignment == [T0]
    assert result(found["g"]).type == "classic"
    assert error_code(found["nope"]) == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", every_version(messages.OffsetFetchRequest, 2))
@pytest.mark.parametrize("partitions", [None, [T0, T1]])
def test_list_group_offsets(memory: MemoryCluster, admin: Admin, version: int, partitions: Any) -> None:
    only(memory, messages.OffsetFetchRequest, version)
    response = messages.OffsetFetchResponse

    def fetch(broker_id: int, request: Any, version: int) -> Any:
        assert broker_id == 2
        topics = request.groups[0].topics if version >= 8 else request.topics
        assert (topics is None) == (partitions is None)
        if version >= 8:
            committed = [
                response.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m"),
                response.OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
            ]
            topic = response.OffsetFetchResponseTopics(name="t", partitions=committed)
            return response(groups=[response.OffsetFetchResponseGroup(group_id="g", topics=[topic])])
        old = [
            response.OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="m"),
            response.OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
        ]
        return response(topics=[response.OffsetFetchResponseTopic(name="t", partitions=old)])

    memory.handlers["OffsetFetchRequest"] = fetch
    found = admin.list_group_offsets("g", partitions, require_stable=True)
    assert found == {T0: CommittedOffset(5, "m", -1)}
    assert admin.list_group_offsets("g", []) == {}


@pytest.mark.parametrize("version", every_version(messages.OffsetCommitRequest))
def test_alter_group_offsets(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.OffsetCommitRequest, version)
    response = messages.OffsetCommitResponse

    def commit(broker_id: int, request: Any, version: int) -> Any:
        assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == ("g", "", -1)
        return response(
            topics=[
                response.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        response.OffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=0 if each.committed_offset == 4 else 25
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    memory.handlers["OffsetCommitRequest"] = commit
    outcome = admin.alter_group_offsets("g", {T0: CommittedOffset(4), T1: CommittedOffset(9, "why")})
    assert outcome[T0] is None
    assert error_code(outcome[T1]) == ErrorCode.UNKNOWN_MEMBER_ID


def test_delete_group_offsets_and_groups(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.OffsetDeleteResponse
    memory.handlers["OffsetDeleteRequest"] = lambda broker_id, request, version: response(
        topics=[
            response.OffsetDeleteResponseTopic(
                name="t",
                partitions=[
                    response.OffsetDeleteResponsePartition(partition_index=0),
                    response.OffsetDeleteResponsePartition(partition_index=1, error_code=86),
                ],
            )
        ]
    )
    outcome = admin.delete_group_offsets("g", [T0, T1])
    assert outcome[T0] is None
    assert error_code(outcome[T1]) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    groups = messages.DeleteGroupsResponse
    codes = {"g": 0, "busy": ErrorCode.NON_EMPTY_GROUP, "nope": ErrorCode.GROUP_ID_NOT_FOUND}
    memory.handlers["DeleteGroupsRequest"] = lambda broker_id, request, version: groups(
        results=[
            groups.DeletableGroupResult(group_id=group_id, error_code=codes[group_id])
            for group_id in request.groups_names
        ]
    )
    deleted = admin.delete_groups(list(codes))
    assert deleted["g"] is None
    assert "group busy still has members" in str(deleted["busy"])
    assert "group nope does not exist" in str(deleted["nope"])


@pytest.mark.parametrize("served", [True, False])
def test_describe_cluster_with_and_without_the_api(memory: MemoryCluster, admin: Admin, served: bool) -> None:
    response = messages.DescribeClusterResponse
    memory.handlers["DescribeClusterRequest"] = lambda broker_id, request, version: response(
        cluster_id="memory",
        controller_id=2,
        brokers=[response.DescribeClusterBroker(broker_id=each, host="127.0.0.1", port=each) for each in (2, 1)],
    )
    if not served:
        del memory.versions[messages.DescribeClusterRequest.API_KEY]
    found = admin.describe_cluster()
    assert (found.cluster_id, found.controller_id, [node.id for node in found.brokers]) == ("memory", 2, [1, 2])


@pytest.mark.parametrize("version", every_version(messages.DescribeLogDirsRequest))
def test_describe_log_dirs(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeLogDirsRequest, version)
    response = messages.DescribeLogDirsResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        replica = response.DescribeLogDirsPartition(partition_index=0, partition_size=10 * broker_id)
        topic = response.DescribeLogDirsTopic(name="t", partitions=[replica])
        return response(results=[response.DescribeLogDirsResult(log_dir="/data", topics=[topic])])

    memory.handlers["DescribeLogDirsRequest"] = describe
    found = admin.describe_log_dirs(partitions=[T0])
    assert {broker: result(dirs)[0].replicas[0].size_in_bytes for broker, dirs in found.items()} == {1: 10, 2: 20}


def test_describe_producers(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DescribeProducersResponse
    producer = response.ProducerState(producer_id=7, producer_epoch=1, last_sequence=3)
    memory.handlers["DescribeProducersRequest"] = lambda broker_id, request, version: response(
        topics=[
            response.TopicResponse(
                name="t", partitions=[response.PartitionResponse(partition_index=0, active_producers=[producer])]
            )
        ]
    )
    (state,) = result(admin.describe_producers([T0])[T0])
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 1, 3)


def test_repr_and_close(admin: Admin) -> None:
    with admin:
        admin.list_topics()
    assert repr(admin) == "<Admin <Cluster 127.0.0.1:1 2 brokers>>"


def test_a_new_topic_is_awaited_for_a_while(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.CreateTopicsResponse
    memory.handlers["CreateTopicsRequest"] = lambda broker_id, request, version: response(
        topics=[response.CreatableTopicResult(name="late")]
    )
    answers = memory.handlers["MetadataRequest"]

    def later(broker_id: int, request: Any, version: int) -> Any:
        if len(memory.slept) == 3:
            memory.topics["late"] = [1]
        return answers(broker_id, request, version)

    memory.handlers["MetadataRequest"] = later
    assert result(admin.create_topics([NewTopic("late")])["late"]).name == "late"
    assert memory.slept == [0.0125, 0.025, 0.05]
    memory.handlers["MetadataRequest"] = answers
    del memory.topics["late"]
    # What never shows does not turn a success into an error.
    assert result(admin.create_topics([NewTopic("late")])["late"]).name == "late"
    assert memory.now < 6
