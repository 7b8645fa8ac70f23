"""Groups and the offsets they committed: list, describe, commit, delete. Shell plane; a part of Admin.

A group is *classic* (its members agree among themselves) or *consumer* (KIP-848, the coordinator assigns). Describing
asks ConsumerGroupDescribe first and DescribeGroups for what that does not know, so a caller need not know which it is.

Sources: OffsetCommit (8), OffsetFetch (9), DescribeGroups (15), ListGroups (16), DeleteGroups (42), OffsetDelete (47),
ConsumerGroupDescribe (69); KIP-222, KIP-229, KIP-496, KIP-709, KIP-848, KIP-1043.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.client.cluster_metadata import Node, TopicPartition
from barnabas.client.configs import ResourceType
from barnabas.client.outcome import AdminPart, outcome_of, result, results
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage, error_for
from barnabas.protocol.versioned import decode_consumer_protocol

CONSUMER_PROTOCOL = "consumer"
REBALANCES = "barnabas.rebalances"
# From version 10 on these name topics by id; names are what people type.
_HIGHEST_WITH_NAMES = 9


class GroupListing(NamedTuple):
    """A group as ListGroups tells; state and type are "" where the broker is too old to tell."""

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int


class GroupMember(NamedTuple):
    """A member and what it reads; ``assignment`` is empty during a rebalance and for members of other protocols."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]


class GroupDescription(NamedTuple):
    """A group; ``assignor`` is the protocol the members agreed on, or the coordinator's assignor."""

    group_id: str
    type: str
    protocol_type: str
    state: str
    assignor: str
    members: list[GroupMember]
    coordinator: Node


class MovedPartition(NamedTuple):
    """A partition that changed hands in a rebalance; an empty id is nobody."""

    topic: str
    partition: int
    from_member: str
    to_member: str


class GroupRebalance(NamedTuple):
    """One rebalance, as the coordinator has seen it; ``ended_ms`` is None while it goes on."""

    epoch: int
    cause: str
    member_id: str
    client_id: str
    started_ms: int
    ended_ms: int | None
    superseded: bool
    members: int | None
    moved: list[MovedPartition]


class CommittedOffset(NamedTuple):
    """A position a group committed: the next offset to read."""

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


class GroupAdmin(AdminPart):
    """Groups."""

    def list_groups(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[GroupListing]:
        """Every broker's groups, by id.

        Args:
            states: only groups in one of these states (``Stable``, ``Empty``, …); needs ListGroups v4.
            types: only ``classic``, ``consumer``, …; needs ListGroups v5.

        Raises:
            KafkaError: a broker did not answer; a partial list would look complete.
        """

        def ask(connection: BlockingConnection, batch: list[int]) -> dict[int, list[GroupListing] | KafkaError]:
            request = messages.ListGroupsRequest(states_filter=list(states), types_filter=list(types))
            response = connection.request(request)
            (node_id,) = batch
            return {
                node_id: outcome_of(response.error_code)
                or [
                    GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type, node_id)
                    for each in response.groups
                ]
            }

        node_ids = list(self.cluster.retry(self.cluster.nodes))
        found = results(self.cluster.ask_each(node_ids, lambda nodes: {node: node for node in nodes}, ask))
        return sorted(listing for listings in found.values() for listing in listings)

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """Each group with its members; GROUP_ID_NOT_FOUND for one that does not exist."""

        def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, GroupDescription | KafkaError]:
            answers: dict[str, GroupDescription | KafkaError] = {}
            if connection.supports(ApiKey.CONSUMER_GROUP_DESCRIBE):
                request = messages.ConsumerGroupDescribeRequest(group_ids=batch)
                for group in connection.request(request).groups:
                    error = outcome_of(group.error_code, group.error_message)
                    answers[group.group_id] = error or self._consumer_group(group)
            unknown = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
            classic = [
                group_id
                for group_id in batch
                if not isinstance(answers.get(group_id), GroupDescription)
                and getattr(answers.get(group_id), "code", ErrorCode.GROUP_ID_NOT_FOUND) in unknown
            ]
            if classic:
                for group in connection.request(messages.DescribeGroupsRequest(groups=classic)).groups:
                    error = outcome_of(group.error_code, group.error_message)
                    if not error and group.group_state == "Dead":  # how brokers before v6 say so
                        error = error_for(ErrorCode.GROUP_ID_NOT_FOUND)
                    if error and error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                        error = error_for(error.code, f"group {group.group_id} does not exist")
                    answers[group.group_id] = error or self._classic_group(group)
            return answers

        return self.cluster.ask_each(group_ids, self.cluster.coordinators, ask)

    def group_rebalances(self, group_ids: Iterable[str]) -> dict[str, list[GroupRebalance] | KafkaError]:
        """Each group's last rebalances, oldest first; UNSUPPORTED_VERSION from brokers that do not remember them.

        The group's coordinator is asked for a setting of the group that only barnabas has: see decision 7.
        """
        request_class = messages.DescribeConfigsRequest

        def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, list[GroupRebalance] | KafkaError]:
            request = request_class(
                resources=[
                    request_class.DescribeConfigsResource(
                        resource_type=ResourceType.GROUP, resource_name=group_id, configuration_keys=[REBALANCES]
                    )
                    for group_id in batch
                ]
            )
            return {
                each.resource_name: outcome_of(each.error_code, each.error_message) or _rebalances(each)
                for each in connection.request(request).results
            }

        return self.cluster.ask_each(group_ids, self.cluster.coordinators, ask)

    def _coordinator_node(self, group_id: str) -> Node:
        node_id = result(self.cluster.coordinators([group_id])[group_id])
        return self.cluster.nodes().get(node_id) or Node(node_id, "", -1)

    def _consumer_group(self, group: Any) -> GroupDescription:
        members = [
            GroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                assigned_partitions(member.assignment),
            )
            for member in group.members
        ]
        return GroupDescription(
            group.group_id,
            "consumer",
            CONSUMER_PROTOCOL,
            group.group_state,
            group.assignor_name,
            sorted(members),
            self._coordinator_node(group.group_id),
        )

    def _classic_group(self, group: Any) -> GroupDescription:
        members = [
            GroupMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                _assignment(group.protocol_type, bytes(member.member_assignment)),
            )
            for member in group.members
        ]
        return GroupDescription(
            group.group_id,
            "classic",
            group.protocol_type,
            group.group_state,
            group.protocol_data,
            sorted(members),
            self._coordinator_node(group.group_id),
        )

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group committed.

        Args:
            partitions: only these; None for all that have a committed offset.
            require_stable: wait for pending transactions instead of telling the offset before them.

        Returns:
            The committed offsets; partitions without one are left out.
        """
        request_class = messages.OffsetFetchRequest
        wanted = None if partitions is None else _by_topic(partitions)

        def ask(
            connection: BlockingConnection, batch: list[str]
        ) -> dict[str, dict[TopicPartition, CommittedOffset] | KafkaError]:
            request = request_class(require_stable=require_stable)
            version = connection.version_for(request, _HIGHEST_WITH_NAMES)
            if version < 7:
                request.require_stable = False
            if version >= 8:
                topics = (
                    None
                    if wanted is None
                    else [
                        request_class.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                        for name, indexes in wanted.items()
                    ]
                )
                request.groups = [request_class.OffsetFetchRequestGroup(group_id=group_id, topics=topics)]
                (answer,) = connection.request(request, version=version).groups
            else:
                request.group_id = group_id
                request.topics = (
                    None
                    if wanted is None
                    else [
                        request_class.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                        for name, indexes in wanted.items()
                    ]
                )
                answer = connection.request(request, version=version)
            return {group_id: outcome_of(answer.error_code) or _committed(answer)}

        if wanted == {}:
            return {}
        return result(self.cluster.ask_each([group_id], self.cluster.coordinators, ask)[group_id])

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commits offsets in a group's name; the group must have no members.

        Returns:
            None for each partition that was committed.
        """
        request_class = messages.OffsetCommitRequest

        def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, bool | KafkaError]:
            topics: dict[str, list[Any]] = {}
            for each in batch:
                committed = offsets[each]
                topics.setdefault(each.topic, []).append(
                    request_class.OffsetCommitRequestPartition(
                        partition_index=each.partition,
                        committed_offset=committed.offset,
                        committed_leader_epoch=committed.leader_epoch,
                        committed_metadata=committed.metadata,
                    )
                )
            request = request_class(
                group_id=group_id,
                topics=[
                    request_class.OffsetCommitRequestTopic(name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            )
            return _per_partition(connection.request(request, highest=_HIGHEST_WITH_NAMES))

        return self._changed(group_id, offsets, ask)

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Forgets committed offsets of topics the group does not read now; None for each that is gone."""
        request_class = messages.OffsetDeleteRequest

        def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, bool | KafkaError]:
            request = request_class(
                group_id=group_id,
                topics=[
                    request_class.OffsetDeleteRequestTopic(
                        name=name,
                        partitions=[
                            request_class.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                        ],
                    )
                    for name, indexes in _by_topic(batch).items()
                ],
            )
            response = connection.request(request)
            error = outcome_of(response.error_code)
            return dict.fromkeys(batch, error) if error else _per_partition(response)

        return self._changed(group_id, partitions, ask)

    def _changed(
        self, group_id: str, partitions: Iterable[TopicPartition], ask: Any
    ) -> dict[TopicPartition, KafkaError | None]:
        def route(batch: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
            return dict.fromkeys(batch, self.cluster.coordinators([group_id])[group_id])

        outcomes = self.cluster.ask_each(partitions, route, ask)
        return {each: outcome if isinstance(outcome, KafkaError) else None for each, outcome in outcomes.items()}

    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """Deletes groups without members, with their offsets; None for each that is gone."""

        def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, bool | KafkaError]:
            request = messages.DeleteGroupsRequest(groups_names=batch)
            answers: dict[str, bool | KafkaError] = {}
            for group in connection.request(request).results:
                message = getattr(group, "error_message", None)
                if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                    message = f"group {group.group_id} does not exist"
                elif group.error_code == ErrorCode.NON_EMPTY_GROUP:
                    message = f"group {group.group_id} still has members"
                answers[group.group_id] = outcome_of(group.error_code, message) or True
            return answers

        outcomes = self.cluster.ask_each(group_ids, self.cluster.coordinators, ask)
        return {each: outcome if isinstance(outcome, KafkaError) else None for each, outcome in outcomes.items()}


def assigned_partitions(assignment: Any) -> list[TopicPartition]:
    """The partitions of a described member, in order: of ConsumerGroupDescribe and its like, which name topics."""
    return sorted(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _assignment(protocol_type: str, assignment: bytes) -> list[TopicPartition]:
    if protocol_type != CONSUMER_PROTOCOL or not assignment:
        return []
    try:
        decoded = decode_consumer_protocol(messages.ConsumerProtocolAssignment, assignment)
    except MalformedMessage:
        return []  # written by a member, not by the broker: of no consequence for the rest of the description
    return sorted(
        TopicPartition(topic.topic, partition)
        for topic in decoded.assigned_partitions
        for partition in topic.partitions
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each.partition)
    return topics


def _committed(answer: Any) -> dict[TopicPartition, CommittedOffset]:
    committed: dict[TopicPartition, CommittedOffset] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code:
                raise error_for(each.error_code)
            if each.committed_offset >= 0:
                committed[TopicPartition(topic.name, each.partition_index)] = CommittedOffset(
                    each.committed_offset, each.metadata, each.committed_leader_epoch
                )
    return dict(sorted(committed.items()))


def _per_partition(response: Any) -> dict[TopicPartition, bool | KafkaError]:
    return {
        TopicPartition(topic.name, each.partition_index): outcome_of(each.error_code) or True
        for topic in response.topics
        for each in topic.partitions
    }


def _rebalances(described: Any) -> list[GroupRebalance] | KafkaError:
    for entry in described.configs:
        if entry.name == REBALANCES:
            found = json.loads(entry.value)["rebalances"]
            return [
                GroupRebalance(
                    **{
                        **each,
                        "moved": [
                            MovedPartition(one["topic"], one["partition"], one["from"], one["to"])
                            for one in each["moved"]
                        ],
                    }
                )
                for each in found
            ]
    return error_for(
        ErrorCode.UNSUPPORTED_VERSION, "its coordinator does not remember rebalances: not a barnabas broker?"
    )
