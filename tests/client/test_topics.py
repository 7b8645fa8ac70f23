"""Topics: created, described, deleted and grown in every version of each request."""

from typing import Any

import pytest

from barnabas.client.admin import Admin, NewTopic, result
from barnabas.client.topics import replicated
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import error_code, every_version, only


@pytest.mark.parametrize("version", every_version(messages.MetadataRequest))
def test_list_and_describe_topics(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.MetadataRequest, version)
    names = [topic.name for topic in admin.list_topics(internal=True)]
    assert names == ["__hidden", "t"]
    found = admin.describe_topics(["t", "nope"])
    assert len(result(found["t"]).partitions) == 2
    assert error_code(found["nope"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (5, 3, "2")])
def test_one_broker_of_three_may_die(brokers: int, replicas: int, in_sync: str) -> None:
    """With the brokers' default of one replica, the death of its broker stopped every sink."""
    configs = {"cleanup.policy": "compact"}
    assert replicated("t", 6, brokers, configs) == NewTopic(
        "t", 6, replicas, {"cleanup.policy": "compact", "min.insync.replicas": in_sync}
    )


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
                    name=topic.name,
                    error_code=36 if topic.name == "t" else 0,
                    num_partitions=topic.num_partitions,
                    configs=[response.CreatableTopicConfigs(name="min.insync.replicas", value="2")],
                )
                for topic in request.topics
            ]
        )

    memory.handlers["CreateTopicsRequest"] = create
    created = admin.create_topics([NewTopic("new", 3, 1, {"retention.ms": "5"}), NewTopic("t", 1, 1)])
    assert result(created["new"]).partitions == (3 if version >= 5 else -1)
    assert result(created["new"]).configs == ({"min.insync.replicas": "2"} if version >= 5 else {})
    assert error_code(created["t"]) == ErrorCode.TOPIC_ALREADY_EXISTS
    (request,) = memory.asked("CreateTopicsRequest")
    assert [(config.name, config.value) for config in request.topics[0].configs] == [("retention.ms", "5")]
    defaults = admin.create_topics([NewTopic("new")])["new"]
    assert isinstance(defaults, KafkaError) == (version < 4)
    assigned = admin.create_topics([NewTopic("new", assignments={0: [1, 2]})])["new"]
    assert not isinstance(assigned, KafkaError)
    request = memory.asked("CreateTopicsRequest")[-1]
    assert (request.topics[0].num_partitions, request.topics[0].assignments[0].broker_ids) == (-1, [1, 2])


@pytest.mark.parametrize("code", [0, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_create_if_absent(memory: MemoryCluster, admin: Admin, code: int) -> None:
    response = messages.CreateTopicsResponse

    def create(broker_id: int, request: Any, version: int) -> Any:
        memory.topics["new"] = [1]
        return response(topics=[response.CreatableTopicResult(name="new", error_code=code)])

    memory.handlers["CreateTopicsRequest"] = create
    admin.create_if_absent(NewTopic("t"))
    assert not memory.asked("CreateTopicsRequest")
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            admin.create_if_absent(NewTopic("new"))
    else:
        admin.create_if_absent(NewTopic("new"))
    assert len(memory.asked("CreateTopicsRequest")) == 1


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


def test_a_topic_is_created_once_the_quorum_has_elected(memory: MemoryCluster, admin: Admin) -> None:
    memory.controller_id = -1
    answers = memory.handlers["MetadataRequest"]

    def elect_later(broker_id: int, request: Any, version: int) -> Any:
        memory.controller_id = 2 if len(memory.slept) > 3 else -1
        return answers(broker_id, request, version)

    def create(broker_id: int, request: Any, version: int) -> Any:
        memory.topics["new"] = [1]
        return response(topics=[response.CreatableTopicResult(name="new", num_partitions=1, replication_factor=1)])

    response = messages.CreateTopicsResponse
    memory.handlers.update(MetadataRequest=elect_later, CreateTopicsRequest=create)
    created = admin.create_topics([NewTopic("new")])
    assert not isinstance(created["new"], KafkaError)
    assert memory.slept[:4] == [0.1, 0.2, 0.4, 0.8]


def test_without_a_controller_until_the_deadline_each_topic_has_the_error(memory: MemoryCluster, admin: Admin) -> None:
    memory.controller_id = -1
    outcomes = admin.create_topics([NewTopic("a"), NewTopic("b")])
    assert [getattr(outcome, "code", None) for outcome in outcomes.values()] == [ErrorCode.NOT_CONTROLLER] * 2
    assert 4.0 < memory.now <= 5.0


def test_a_change_that_the_controller_may_have_made_is_not_sent_again(memory: MemoryCluster, admin: Admin) -> None:
    """The broker answers in time to say what it has waited for."""
    response = messages.CreateTopicsResponse
    silent = response.CreatableTopicResult(
        name="new", error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="the controller does not answer"
    )
    memory.handlers["CreateTopicsRequest"] = lambda broker_id, request, version: response(topics=[silent])
    outcome = admin.create_topics([NewTopic("new")])["new"]
    assert isinstance(outcome, KafkaError)
    assert outcome.message == "the controller does not answer"
    (request,) = memory.asked("CreateTopicsRequest")
    assert request.timeout_ms == 4500


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
