"""Metadata responses become topics and errors by name."""

from barnabas.client.cluster_metadata import TopicPartition, by_topic, read_metadata
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode


def test_partitions_are_grouped_by_topic_in_their_order() -> None:
    partitions = [TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)]
    assert by_topic(partitions) == {"b": [1, 0], "a": [0]}
    assert str(partitions[0]) == "b-1"


def test_topics_and_errors_are_told_apart() -> None:
    response = messages.MetadataResponse
    partition = response.MetadataResponsePartition
    read = read_metadata(
        response(
            controller_id=1,
            topics=[
                response.MetadataResponseTopic(
                    name="t",
                    partitions=[
                        partition(partition_index=1, leader_id=-1, error_code=ErrorCode.LEADER_NOT_AVAILABLE),
                        partition(partition_index=0, leader_id=1, error_code=ErrorCode.REPLICA_NOT_AVAILABLE),
                    ],
                ),
                response.MetadataResponseTopic(name="gone", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                response.MetadataResponseTopic(name=None, error_code=ErrorCode.UNKNOWN_TOPIC_ID),
            ],
        )
    )
    zero, one = read.topics["t"].partitions
    assert (zero.partition, zero.leader, zero.error) == (0, 1, None)
    assert one.error is not None
    assert one.error.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert list(read.errors) == ["gone"]


def test_the_topics_of_our_own_clients_are_internal_too() -> None:
    response = messages.MetadataResponse
    topics = [
        response.MetadataResponseTopic(name="__consumer_offsets", is_internal=True),
        response.MetadataResponseTopic(name="__barnabas_cuts"),
        response.MetadataResponseTopic(name="__barnabas"),
    ]
    read = read_metadata(response(controller_id=1, topics=topics))
    assert [name for name, topic in read.topics.items() if topic.is_internal] == [
        "__consumer_offsets",
        "__barnabas_cuts",
    ]
