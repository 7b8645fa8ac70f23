"""Which partitions are where, for interactive queries.

A member may report the host and port where it answers queries (`application.server`). Every member receives all such endpoints and the
source partitions whose state each has, active and in copies, after each change: the epoch of the endpoints grows then, and a heartbeat
with another epoch gets the whole list.

The partitions of a member are computed once and kept until its tasks or the topology change.

Source: KIP-1071; Kafka class `EndpointToPartitionsManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.group.streams.member import StreamsGroupMember
from barnabas.group.streams.tasks import Tasks, merged, without_epochs
from barnabas.group.streams.topic_configuration import ConfiguredSubtopology, PartitionCount
from barnabas.protocol.messages import StreamsGroupHeartbeatResponse

EndpointToPartitions = StreamsGroupHeartbeatResponse.EndpointToPartitions


class EndpointPartitions:
    """The partitions of each member with an endpoint, as far as they have been asked for."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, EndpointToPartitions] = {}

    def __repr__(self) -> str:
        return f"<EndpointPartitions {sorted(self._known)}>"

    def forget(self, member_id: str) -> None:
        """A member's tasks or endpoint have changed."""
        self._known.pop(member_id, None)

    def clear(self) -> None:
        """The topology or its topics have changed."""
        self._known.clear()

    def of(
        self,
        members: Iterable[StreamsGroupMember],
        subtopologies: Mapping[str, ConfiguredSubtopology],
        partition_count: PartitionCount,
    ) -> list[EndpointToPartitions]:
        """The endpoints of these members."""
        found = []
        for member in members:
            if member.user_endpoint is None:
                continue
            known = self._known.get(member.member_id)
            if known is None:
                known = _endpoint_of(member, subtopologies, partition_count)
                self._known[member.member_id] = known
            found.append(known)
        return found


def _endpoint_of(
    member: StreamsGroupMember, subtopologies: Mapping[str, ConfiguredSubtopology], partition_count: PartitionCount
) -> EndpointToPartitions:
    assert member.user_endpoint is not None, f"{member!r} has no endpoint"
    host, port = member.user_endpoint
    assigned = member.assigned
    return EndpointToPartitions(
        user_endpoint=StreamsGroupHeartbeatResponse.Endpoint(host=host, port=port),
        active_partitions=_partitions(without_epochs(assigned.active), subtopologies, partition_count),
        standby_partitions=_partitions(merged(assigned.standby, assigned.warmup), subtopologies, partition_count),
    )


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], partition_count: PartitionCount
) -> list[StreamsGroupHeartbeatResponse.TopicPartition]:
    found = []
    for name in sorted(tasks):
        subtopology = subtopologies.get(name)
        if subtopology is None:
            continue  # A task from before the topology that is configured now; it is about to be revoked.
        for topic in sorted({*subtopology.source_topics, *subtopology.repartition_source_topics}):
            count = partition_count(topic) or 0
            indexes = sorted(index for index in tasks[name] if index < count)
            if indexes:
                found.append(StreamsGroupHeartbeatResponse.TopicPartition(topic=topic, partitions=indexes))
    return found
