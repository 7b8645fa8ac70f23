"""StreamsGroupHeartbeat (API key 88). Control plane.

Versions served: 0-1.

- UNSUPPORTED_VERSION unless `group.coordinator.rebalance.protocols` has streams and streams.version is finalized at 1 or above.
- A topology may not name Kafka's internal topics, nor names that no topic can have: STREAMS_INVALID_TOPOLOGY.
- Internal topics that are missing are created with the next metadata change; the member is told MISSING_INTERNAL_TOPICS until
  they are there, and why, if the controller refused.

Version 1 tells of missing client tags and asks for a topology description, which this broker never does (KIP-1071, KIP-1331).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.streams_internal_topics import create_internal_topics
from barnabas.coordinator.future_steps import mapped
from barnabas.group.streams import service as streams_service
from barnabas.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatResult
from barnabas.metadata.topic_names import fault, is_internal
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

STREAMS_VERSION = "streams.version"
STREAMS_PROTOCOL = "streams"


def check_streams_enabled(context: RequestContext) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION when streams groups are switched off."""
    services = context.services
    protocols = services.config.list_value("group.coordinator.rebalance.protocols")
    if STREAMS_PROTOCOL not in protocols or not services.image().features.level(STREAMS_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def handle(
    context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> asyncio.Future[StreamsGroupHeartbeatResponse]:
    """Answer a member of a streams group."""
    check_streams_enabled(context)
    wrong = None if request.topology is None else _wrong_topics(request.topology)
    if wrong is not None:
        refused: asyncio.Future[StreamsGroupHeartbeatResponse] = context.services.loop.create_future()
        code = ErrorCode.STREAMS_INVALID_TOPOLOGY
        refused.set_result(StreamsGroupHeartbeatResponse(error_code=code, error_message=wrong))
        return refused
    services = context.services
    beat = StreamsHeartbeat(
        request,
        context.version,
        context.client_id or "",
        f"/{context.connection.peer_host}",  # As Java prints an address without a name.
    )

    def answer(result: StreamsHeartbeatResult) -> StreamsGroupHeartbeatResponse:
        create_internal_topics(context, result)
        return result.response

    return mapped(services.loop, streams_service.heartbeat(services.group_coordinator, services.loop, beat), answer)


def _wrong_topics(topology: StreamsGroupHeartbeatRequest.Topology) -> str | None:
    """What is wrong with a topology's names; None when they may be looked up."""
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
