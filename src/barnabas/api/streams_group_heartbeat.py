"""StreamsGroupHeartbeat (API key 88, versions 0-1).

- UNSUPPORTED_VERSION unless `group.coordinator.rebalance.protocols` has streams and streams.version is finalized at 1 or above.
- A topology that names Kafka's internal topics, or names that no topic can have: STREAMS_INVALID_TOPOLOGY.
- Missing internal topics are created with the next metadata change; until they exist the member gets MISSING_INTERNAL_TOPICS,
  with the reason if the controller rejected them.

Version 1 reports missing client tags and can ask for a topology description, which this broker never does (KIP-1071, KIP-1331).
"""

from __future__ import annotations

from barnabas.api.authorization.members import check_member, topics_of_topology
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.excess import check_elements
from barnabas.api.serving.streams_internal_topics import create_internal_topics
from barnabas.group.streams import requests
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from barnabas.protocol.topic_names import fault, is_internal
from barnabas.security.acls import AclOperation, ResourceType

STREAMS_VERSION = "streams.version"
STREAMS_PROTOCOL = "streams"


def check_streams_enabled(context: RequestContext) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION if streams groups are disabled."""
    services = context.services
    protocols = services.config.list_value("group.coordinator.rebalance.protocols")
    if STREAMS_PROTOCOL not in protocols or not services.image().features.level(STREAMS_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


async def handle(context: RequestContext, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Answer a member of a streams group."""
    check_streams_enabled(context)
    check_elements(context, request)
    asker = context.asker
    if asker is not None:
        asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    wrong = None if request.topology is None else _wrong_topics(request.topology)
    if wrong is not None:
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY, error_message=wrong)
    await check_member(asker, request.group_id, topics_of_topology(request.topology))
    result = await requests.heartbeat(context.services.group_coordinator, request, context.sender)
    await create_internal_topics(context, result)
    return result.response


def _wrong_topics(topology: StreamsGroupHeartbeatRequest.Topology) -> str | None:
    """Return the fault of a topology's names; None if they are valid."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names.update(dict.fromkeys(subtopology.source_topics))
        names.update(dict.fromkeys(subtopology.repartition_sink_topics))
        names.update(dict.fromkeys(topic.name for topic in subtopology.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in subtopology.state_changelog_topics))
    internal = [name for name in names if is_internal(name)]
    if internal:
        return f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    invalid = [name for name in names if fault(name) is not None]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None
