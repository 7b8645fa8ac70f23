"""Metadata, leaders and coordinators; what is asked again, for how long, and what is not."""

from typing import Any

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.errors import BrokerNotAvailable, ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.client.scripted_broker import MemoryCluster


def test_metadata_sorts_partitions_and_keeps_errors_apart() -> None:
    memory = MemoryCluster(1, 2)
    memory.topics = {"t": [2, 1, -1]}
    metadata = memory.client().metadata(["t", "nope"])
    assert metadata.cluster_id == "memory"
    assert list(metadata.brokers) == [1, 2]
    assert [(each.partition, each.leader) for each in metadata.topics["t"].partitions] == [(0, 2), (1, 1), (2, -1)]
    assert metadata.errors["nope"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert memory.asked("MetadataRequest")[0].allow_auto_topic_creation is False


def test_all_topics_and_none() -> None:
    memory = MemoryCluster()
    memory.topics = {"t": [1]}
    assert list(memory.client().metadata().topics) == ["t"]
    assert not memory.client().metadata(topics=[]).topics


def test_leaders() -> None:
    memory = MemoryCluster(1, 2)
    memory.topics = {"t": [2, -1]}
    found = memory.client().leaders([TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 9)])
    assert found[TopicPartition("t", 0)] == 2
    assert getattr(found[TopicPartition("t", 1)], "code", None) == ErrorCode.LEADER_NOT_AVAILABLE
    assert "has no partition 9" in str(found[TopicPartition("t", 9)])


def test_waits_for_a_leader_until_the_deadline() -> None:
    memory = MemoryCluster()
    memory.topics = {"t": [-1]}
    with pytest.raises(KafkaError, match="has no leader"):
        memory.client(timeout_ms=3000).leader("t", 0)
    assert memory.slept == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert memory.now <= 3.0


def test_an_election_in_between() -> None:
    memory = MemoryCluster(1, 2)
    memory.topics = {"t": [-1]}
    client = memory.client()
    answers = memory.handlers["MetadataRequest"]

    def elect_later(broker_id: int, request: Any, version: int) -> Any:
        if len(memory.requests) > 2:
            memory.topics["t"] = [2]
        return answers(broker_id, request, version)

    memory.handlers["MetadataRequest"] = elect_later
    assert client.leader("t", 0) == 2


def test_a_mistyped_topic_is_told_soon() -> None:
    memory = MemoryCluster()
    with pytest.raises(KafkaError, match="topic nope does not exist"):
        memory.client(timeout_ms=60_000).leader("nope", 0)
    assert memory.slept == [0.1, 0.2]


@pytest.mark.parametrize("highest", [6, 3, 0])
def test_coordinators_in_every_generation_of_find_coordinator(highest: int) -> None:
    memory = MemoryCluster(1, 2)
    memory.coordinators = {"g2": 2}
    memory.versions = {**memory.versions, messages.FindCoordinatorRequest.API_KEY: (0, highest)}
    client = memory.client()
    assert client.coordinators(["g1", "g2"]) == {"g1": 1, "g2": 2}
    assert client.coordinator("g2") == 2
    assert len(memory.asked("FindCoordinatorRequest")) == (1 if highest >= 4 else 2)


def test_every_address_is_tried_and_named() -> None:
    memory = MemoryCluster(1)
    memory.down = {1, 7, 8}
    client = Cluster("127.0.0.1:7,127.0.0.1:8", connect=memory.client()._connect)
    with pytest.raises(BrokerNotAvailable, match=r"127\.0\.0\.1:7.*127\.0\.0\.1:8"):
        client.metadata()


def test_nobody_there_is_told_at_once() -> None:
    memory = MemoryCluster(1)
    memory.down = {1}
    with pytest.raises(BrokerNotAvailable):
        memory.client().retry(memory.client().metadata)
    assert memory.slept == []


def ask_topic(answers: list[Any]) -> Any:
    def ask(connection: Any, batch: list[TopicPartition]) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict.fromkeys(batch, answer)

    return ask


def test_asks_each_leader_once_and_keeps_the_order() -> None:
    memory = MemoryCluster(1, 2)
    memory.topics = {"t": [2, 1, 2]}
    client = memory.client()
    items = [TopicPartition("t", index) for index in (2, 1, 0)]
    asked: list[tuple[int, list[int]]] = []

    def ask(connection: Any, batch: list[TopicPartition]) -> Any:
        asked.append((connection.port, [each.partition for each in batch]))
        return {each: each.partition * 10 for each in batch}

    assert list(client.ask_each(items, client.leaders, ask).items()) == [(items[0], 20), (items[1], 10), (items[2], 0)]
    assert asked == [(2, [2, 0]), (1, [1])]


def test_retriable_errors_are_asked_again_others_are_not() -> None:
    memory = MemoryCluster()
    memory.topics = {"t": [1]}
    client = memory.client()
    item = TopicPartition("t", 0)
    moved = error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert client.ask_each([item], client.leaders, ask_topic([moved, moved, 5])) == {item: 5}
    assert memory.slept == [0.1, 0.2]
    # Metadata was fetched again for each attempt.
    assert len(memory.asked("MetadataRequest")) == 3
    refused = error_for(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert client.ask_each([item], client.leaders, ask_topic([refused])) == {item: refused}


def test_what_may_have_been_carried_out_is_not_sent_twice() -> None:
    memory = MemoryCluster()
    memory.topics = {"t": [1]}
    client = memory.client()
    item = TopicPartition("t", 0)
    lost = ConnectionLost("lost")
    assert client.ask_each([item], client.leaders, ask_topic([lost, 1])) == {item: 1}
    assert client.ask_each([item], client.leaders, ask_topic([lost, 1]), repeatable=False) == {item: lost}


def test_a_broker_that_leaves_something_out() -> None:
    memory = MemoryCluster()
    memory.topics = {"t": [1]}
    client = memory.client()
    found = client.ask_each([TopicPartition("t", 0)], client.leaders, lambda connection, batch: {})
    (error,) = found.values()
    assert isinstance(error, KafkaError)
    assert "left this out" in error.message


def test_a_broker_that_moved_is_dialled_anew() -> None:
    memory = MemoryCluster(1, 2)
    client = memory.client()
    before = client.connection(2)
    assert client.connection(2) is before
    before.close()
    assert client.connection(2) is not before
    with pytest.raises(BrokerNotAvailable, match="broker 5 is not part of the cluster"):
        client.connection(5)
    client.close()
    assert before.closed


def test_a_cluster_without_a_broker_in_service_is_asked_again() -> None:
    memory = MemoryCluster()
    client = memory.client()
    metadata = memory.handlers["MetadataRequest"]
    fenced = 2

    def answer(broker: int, request: Any, version: int) -> Any:
        nonlocal fenced
        response = metadata(broker, request, version)
        fenced -= 1
        if fenced >= 0:
            response.brokers = []
        return response

    memory.handlers["MetadataRequest"] = answer
    assert client.ask_each(["a"], client.to_any, lambda connection, batch: dict.fromkeys(batch, 1)) == {"a": 1}
    fenced = 10**6
    silent = memory.client()
    (error,) = silent.ask_each(["a"], silent.to_any, lambda connection, batch: dict.fromkeys(batch, 1)).values()
    assert isinstance(error, KafkaError)
    assert "no broker of the cluster is in service" in error.message


def test_a_broker_that_is_gone_is_not_asked_any_more() -> None:
    """A long-lived client knew it once, and waited for it until each deadline."""
    memory = MemoryCluster(1, 2)
    client = memory.client()
    assert client.ask_nodes(lambda connection, node_id: node_id) == {1: 1, 2: 2}
    memory.broker_ids = [1]
    memory.down = {2}
    assert client.ask_nodes(lambda connection, node_id: node_id) == {1: 1}
    assert memory.slept == []
