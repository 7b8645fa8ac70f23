"""Share groups and streams groups, described like the others. Shell plane; a part of Admin.

DescribeGroups and ConsumerGroupDescribe do not know these groups, so ShareGroupDescribe and then StreamsGroupDescribe are asked about what
nobody knew. A member of a streams group has tasks; here it has the partitions of its active tasks' source topics, as in the other groups.

A share group commits nothing: it has a start offset for each partition, where the first record lies that is not finished, and its
coordinator counts the records that are not finished behind it.

Sources: ShareGroupDescribe (77), StreamsGroupDescribe (89), DescribeShareGroupOffsets (90); KIP-932, KIP-1071, KIP-1226.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.groups import GroupAdmin, GroupDescription, GroupMember, assigned_partitions
from barnabas.client.outcome import outcome_of, result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError


class ShareOffset(NamedTuple):
    """Where a share group is in a partition; ``lag`` is None when the broker does not count it."""

    start_offset: int
    lag: int | None


class NewerGroupAdmin(GroupAdmin):
    """GroupAdmin that also knows share and streams groups."""

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """Each group with its members; GROUP_ID_NOT_FOUND for one that does not exist."""
        answers = super().describe_groups(group_ids)
        answers |= self._described(
            answers, ApiKey.SHARE_GROUP_DESCRIBE, messages.ShareGroupDescribeRequest, self._share_group
        )
        answers |= self._described(
            answers, ApiKey.STREAMS_GROUP_DESCRIBE, messages.StreamsGroupDescribeRequest, self._streams_group
        )
        return answers

    def _described(
        self,
        answers: dict[str, GroupDescription | KafkaError],
        api_key: ApiKey,
        request_class: Any,
        described: Callable[[Any], GroupDescription],
    ) -> dict[str, GroupDescription | KafkaError]:
        """What one more API knows of the groups that nobody knew."""
        unknown = [
            group_id
            for group_id, answer in answers.items()
            if isinstance(answer, KafkaError) and answer.code == ErrorCode.GROUP_ID_NOT_FOUND
        ]

        def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, GroupDescription | KafkaError]:
            found = {group_id: answers[group_id] for group_id in batch}
            if connection.supports(api_key):
                for group in connection.request(request_class(group_ids=batch)).groups:
                    if not group.error_code:
                        found[group.group_id] = described(group)
            return found

        return self.cluster.ask_each(unknown, self.cluster.coordinators, ask) if unknown else {}

    def _share_group(self, group: Any) -> GroupDescription:
        members = [
            GroupMember(
                member.member_id,
                None,
                member.client_id,
                member.client_host,
                assigned_partitions(member.assignment),
            )
            for member in group.members
        ]
        return self._group(group, "share", group.assignor_name, members)

    def _streams_group(self, group: Any) -> GroupDescription:
        topology = group.topology
        sources = {
            each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
            for each in (topology.subtopologies or () if topology is not None else ())
        }
        members = [
            GroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                sorted(
                    TopicPartition(topic, partition)
                    for tasks in member.assignment.active_tasks
                    for topic in sources.get(tasks.subtopology_id, ())
                    for partition in tasks.partitions
                ),
            )
            for member in group.members
        ]
        return self._group(group, "streams", group.assignor_name, members)

    def _group(self, group: Any, kind: str, assignor: str, members: list[GroupMember]) -> GroupDescription:
        """The whole description; the name of such a group's type is that of its protocol too."""
        coordinator = self._coordinator_node(group.group_id)
        return GroupDescription(group.group_id, kind, kind, group.group_state, assignor, sorted(members), coordinator)

    def list_share_group_offsets(self, group_id: str) -> dict[TopicPartition, ShareOffset]:
        """Where a share group is, in every partition that it has read.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, or UNSUPPORTED_VERSION from a broker without share groups.
        """
        request_class = messages.DescribeShareGroupOffsetsRequest

        def ask(
            connection: BlockingConnection, batch: list[str]
        ) -> dict[str, dict[TopicPartition, ShareOffset] | KafkaError]:
            groups = [request_class.DescribeShareGroupOffsetsRequestGroup(group_id=each, topics=None) for each in batch]
            return {
                group.group_id: outcome_of(group.error_code, group.error_message)
                or {
                    TopicPartition(topic.topic_name, partition.partition_index): ShareOffset(
                        partition.start_offset, None if partition.lag < 0 else partition.lag
                    )
                    for topic in group.topics
                    for partition in topic.partitions
                    if not partition.error_code and partition.start_offset >= 0
                }
                for group in connection.request(request_class(groups=groups)).groups
            }

        return result(self.cluster.ask_each([group_id], self.cluster.coordinators, ask)[group_id])
