"""Describe groups of every type.

A caller need not know a group's type: each of the four describing APIs is asked about the groups that the APIs before it do not
know. A member of a streams group has tasks; here it has the partitions of its active tasks' source topics.

Sources: DescribeGroups (15), ConsumerGroupDescribe (69), ShareGroupDescribe (77), StreamsGroupDescribe (89); KIP-848, KIP-932,
KIP-1043, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import Node, TopicPartition
from barnabas.client.outcome import outcome_of, result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage, error_for
from barnabas.protocol.message import Message
from barnabas.protocol.versioned import decode_consumer_protocol

CONSUMER_PROTOCOL = "consumer"


class GroupMember(NamedTuple):
    """A member and its partitions; `assignment` is empty during a rebalance and for members of other protocols.

    Attributes:
        epoch: of the assignment that it has; None in a classic group, which has none.
        target: partitions that it has when it has followed the coordinator; None where no target is kept.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    epoch: int | None = None
    target: list[TopicPartition] | None = None


class Subtopology(NamedTuple):
    """A part of a Kafka Streams application whose tasks each work alone, and the topics at its ends.

    Attributes:
        sources: topics of others that it reads.
        repartition_sources: internal topics that another subtopology, or this one, writes for it.
        repartition_sinks: internal topics that it writes.
        changelogs: internal topics of its state stores.
    """

    subtopology_id: str
    sources: list[str]
    repartition_sources: list[str]
    repartition_sinks: list[str]
    changelogs: list[str]


class GroupDescription(NamedTuple):
    """A group; `assignor` is the protocol the members agreed on, or the coordinator's assignor.

    Attributes:
        epoch: grows with each change of members, subscriptions or topics; None in a classic group.
        assignment_epoch: the epoch for which partitions were last assigned; None in a classic group.
        subtopologies: of a streams group.
    """

    group_id: str
    type: str
    protocol_type: str
    state: str
    assignor: str
    members: list[GroupMember]
    coordinator: Node
    epoch: int | None = None
    assignment_epoch: int | None = None
    subtopologies: list[Subtopology] = []


def describe_groups(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
    """Return each group with its members, or GROUP_ID_NOT_FOUND."""

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, GroupDescription | KafkaError]:
        answers: dict[str, GroupDescription | KafkaError] = {}
        unknown = batch
        for api in _APIS:
            if unknown and connection.supports(api.key):
                for group in connection.request(api.request(unknown)).groups:
                    answers[group.group_id] = _error(group) or _description(cluster, api, group)
                unknown = [group_id for group_id in batch if _is_unknown(answers.get(group_id))]
        return answers

    return cluster.ask_each(group_ids, cluster.coordinators, ask)


def _error(group: Any) -> KafkaError | None:
    unknown = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    # Before version 6 DescribeGroups returns state Dead, and no error, for a group it does not know.
    if group.error_code in unknown or group.group_state == "Dead":
        return error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id} does not exist")
    return outcome_of(group.error_code, group.error_message)


def _is_unknown(answer: GroupDescription | KafkaError | None) -> bool:
    return answer is None or (isinstance(answer, KafkaError) and answer.code == ErrorCode.GROUP_ID_NOT_FOUND)


def _description(cluster: Cluster, api: _Api, group: Any) -> GroupDescription:
    node_id = result(cluster.coordinators([group.group_id])[group.group_id])
    classic = api.type == "classic"
    return GroupDescription(
        group.group_id,
        api.type,
        group.protocol_type if classic else api.type,
        group.group_state,
        group.protocol_data if classic else group.assignor_name,
        sorted(api.members(group)),
        cluster.nodes().get(node_id) or Node(node_id, "", -1),
        None if classic else group.group_epoch,
        None if classic else group.assignment_epoch,
        _subtopologies(group) if api.type == "streams" else [],
    )


def _subtopologies(group: messages.StreamsGroupDescribeResponse.DescribedGroup) -> list[Subtopology]:
    return [
        Subtopology(
            each.subtopology_id,
            each.source_topics,
            [topic.name for topic in each.repartition_source_topics],
            each.repartition_sink_topics,
            [topic.name for topic in each.state_changelog_topics],
        )
        for each in (group.topology and group.topology.subtopologies) or ()
    ]


def _consumer_members(group: messages.ConsumerGroupDescribeResponse.DescribedGroup) -> list[GroupMember]:
    return [
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            _assigned(each.assignment),
            each.member_epoch,
            _assigned(each.target_assignment),
        )
        for each in group.members
    ]


def _classic_members(group: messages.DescribeGroupsResponse.DescribedGroup) -> list[GroupMember]:
    return [
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _decoded(each.member_assignment) if group.protocol_type == CONSUMER_PROTOCOL else [],
        )
        for each in group.members
    ]


def _share_members(group: messages.ShareGroupDescribeResponse.DescribedGroup) -> list[GroupMember]:
    return [
        GroupMember(
            each.member_id, None, each.client_id, each.client_host, _assigned(each.assignment), each.member_epoch
        )
        for each in group.members
    ]


def _streams_members(group: messages.StreamsGroupDescribeResponse.DescribedGroup) -> list[GroupMember]:
    sources = {each.subtopology_id: [*each.sources, *each.repartition_sources] for each in _subtopologies(group)}

    def active(assignment: messages.StreamsGroupDescribeResponse.Assignment) -> list[TopicPartition]:
        return sorted(
            TopicPartition(topic, partition)
            for tasks in assignment.active_tasks
            for topic in sources.get(tasks.subtopology_id, ())
            for partition in tasks.partitions
        )

    return [
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            active(each.assignment),
            each.member_epoch,
            active(each.target_assignment),
        )
        for each in group.members
    ]


def _assigned(
    assignment: messages.ConsumerGroupDescribeResponse.Assignment | messages.ShareGroupDescribeResponse.Assignment,
) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _decoded(assignment: bytes) -> list[TopicPartition]:
    """Decode what the leader of a classic group assigned; [] if there is nothing, or it is malformed."""
    try:
        decoded = decode_consumer_protocol(messages.ConsumerProtocolAssignment, bytes(assignment))
    except MalformedMessage:
        return []
    return sorted(
        TopicPartition(topic.topic, partition)
        for topic in decoded.assigned_partitions
        for partition in topic.partitions
    )


class _Api(NamedTuple):
    """The API that describes groups of one type."""

    type: str
    key: ApiKey
    request: Callable[[list[str]], Message]
    members: Callable[[Any], list[GroupMember]]


_APIS = (
    _Api(
        "consumer",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        lambda ids: messages.ConsumerGroupDescribeRequest(group_ids=ids),
        _consumer_members,
    ),
    _Api("classic", ApiKey.DESCRIBE_GROUPS, lambda ids: messages.DescribeGroupsRequest(groups=ids), _classic_members),
    _Api(
        "share",
        ApiKey.SHARE_GROUP_DESCRIBE,
        lambda ids: messages.ShareGroupDescribeRequest(group_ids=ids),
        _share_members,
    ),
    _Api(
        "streams",
        ApiKey.STREAMS_GROUP_DESCRIBE,
        lambda ids: messages.StreamsGroupDescribeRequest(group_ids=ids),
        _streams_members,
    ),
)
