"""ElectLeaders: give partitions back to their preferred leaders, or take any replica that is left.

- PREFERRED (0): the first replica leads again if it may; ELECTION_NOT_NEEDED where it already does.
- UNCLEAN (1): a partition without leader gets any active replica; records that only the others hold are lost.
- `PartitionChangeBuilder` has the rules of both. If it finds no leader, or none but the present one, the error is
  PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE.
- A null list means every partition. The response then lists every topic, but only partitions that needed an election.
- The changes are appended in batches; if the controller fails half-way, only the first elections have happened.
- An empty list gets an empty response, even with an unknown election type.

Sources: KIP-183, KIP-460; Kafka's `ReplicationControlManager.electLeaders`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from barnabas.metadata.batches import in_batches
from barnabas.metadata.controller_view import NO_ERROR, ApiError, ControllerResult, ControllerView
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.partition_leaders import Elections, Hosted
from barnabas.metadata.partition_registration import NO_LEADER
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError

NOT_NEEDED = "Leader election not needed for topic partition."


class ElectionType(enum.IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    view: ControllerView, request: messages.ElectLeadersRequest
) -> ControllerResult[messages.ElectLeadersResponse]:
    """Answer one ElectLeaders request."""
    if request.topic_partitions == []:
        return ControllerResult(messages.ElectLeadersResponse(), [])
    try:
        election = ElectionType(request.election_type) if view.version >= 1 else ElectionType.PREFERRED
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    topics = view.image.topics.by_name
    is_all = request.topic_partitions is None
    if request.topic_partitions is None:
        asked = ((name, list(topics[name].partitions)) for name in sorted(topics))
    else:
        asked = ((entry.topic, entry.partitions) for entry in request.topic_partitions)
    response = messages.ElectLeadersResponse()
    changes = _results(view, asked, election, response, is_all=is_all)
    return ControllerResult(response, batches=in_batches(changes))


def _results(
    view: ControllerView,
    asked: Iterable[tuple[str, list[int]]],
    election: ElectionType,
    response: messages.ElectLeadersResponse,
    *,
    is_all: bool,
) -> Iterator[MetadataRecord | None]:
    elections = Elections(view)
    for name, indexes in asked:
        answer = messages.ElectLeadersResponse.ReplicaElectionResult(topic=name)
        response.replica_election_results.append(answer)
        yield None  # A topic is work too, even one without partitions.
        for index in indexes:
            error, change = _elect(view, elections, name, index, election)
            if not (is_all and error.code is ErrorCode.ELECTION_NOT_NEEDED):
                result = messages.ElectLeadersResponse.PartitionResult(
                    partition_id=index, error_code=error.code, error_message=error.message
                )
                answer.partition_result.append(result)
            yield change


def _elect(
    view: ControllerView, elections: Elections, name: str, index: int, election: ElectionType
) -> tuple[ApiError, MetadataRecord | None]:
    topic = view.image.topics.by_name.get(name)
    if topic is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"), None
    partition = topic.partitions.get(index)
    if partition is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"), None
    is_preferred = election is ElectionType.PREFERRED
    if partition.leader == partition.replicas[0] if is_preferred else partition.leader != NO_LEADER:
        return ApiError(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED), None
    kind = Election.PREFERRED if is_preferred else Election.UNCLEAN
    change = elections.builder(Hosted(topic, index, partition), kind).build(topic.topic_id, index)
    if change is not None:
        return NO_ERROR, change
    nobody = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ApiError(nobody), None
