"""The answers of `peer_messages` as Kafka's messages, and back.

- The error of an answer is in its partition. If a request could not be read, the error is at the top level (`rejection`), and the node
  that sent the request takes that as a failure: it says nothing about epoch or leader.
- An answer names the leader's address, if the node knows one: Vote, BeginQuorumEpoch and EndQuorumEpoch from v1, Fetch from v17.
- Records are whole batches; a batch that is cut off at the end is left out.

Source: Kafka's `RaftUtil` and `KafkaRaftClient`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError, known_code
from barnabas.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    VoteRequest,
    VoteResponse,
)
from barnabas.raft.peer_messages import Answer, BeginEpoch, EndEpoch, EpochAnswer, Fetched, LogEnd, Request, VoteAnswer
from barnabas.raft.request_messages import (
    FIRST_TOPIC_ID_VERSION,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    PeerRequest,
    check_partition,
    not_the_partition,
)
from barnabas.raft.seams import Batch, SnapshotId
from barnabas.records.record_batch import check_batch, iter_batches

__all__ = ["NodeAddress", "PeerResponse", "answer_message", "node_addresses", "read_answer", "rejection"]

PeerResponse = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchResponse

FIRST_ADDRESS_VERSION = 1
FIRST_FETCH_ADDRESS_VERSION = 17

E = TypeVar("E", BeginQuorumEpochResponse, EndQuorumEpochResponse)
N = TypeVar("N")


class NodeAddress(NamedTuple):
    """Where a node serves the quorum, on the listener by which the request came."""

    id: int
    host: str
    port: int


def answer_message(request: Request, answer: Answer, version: int, leader: NodeAddress | None = None) -> PeerResponse:
    """Return Kafka's message of the answer to a request.

    Args:
        leader: the address of the leader that the answer names, if this node knows it.
    """
    is_known = leader is not None and leader.id == answer.leader_id
    addresses = [leader] if leader is not None and is_known else []
    match answer:
        case VoteAnswer():
            return _vote(answer, addresses if version >= FIRST_ADDRESS_VERSION else [])
        case EpochAnswer():
            addresses = addresses if version >= FIRST_ADDRESS_VERSION else []
            assert isinstance(request, BeginEpoch | EndEpoch), f"{answer} does not answer {request}"
            if isinstance(request, BeginEpoch):
                return _epoch_answer(BeginQuorumEpochResponse, answer, addresses)
            return _epoch_answer(EndQuorumEpochResponse, answer, addresses)
        case Fetched():
            return _fetched(answer, addresses if version >= FIRST_FETCH_ADDRESS_VERSION else [])


def _vote(answer: VoteAnswer, addresses: list[NodeAddress]) -> VoteResponse:
    partition = VoteResponse.PartitionData(
        partition_index=PARTITION,
        error_code=answer.error,
        leader_id=answer.leader_id,
        leader_epoch=answer.epoch,
        vote_granted=answer.is_granted,
    )
    return VoteResponse(
        topics=[VoteResponse.TopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=_endpoints(VoteResponse.NodeEndpoint, addresses),
    )


def _epoch_answer(kind: type[E], answer: EpochAnswer, addresses: list[NodeAddress]) -> E:
    """Return the answer to BeginQuorumEpoch or EndQuorumEpoch: two messages of one shape."""
    partition = kind.PartitionData(
        partition_index=PARTITION, error_code=answer.error, leader_id=answer.leader_id, leader_epoch=answer.epoch
    )
    return kind(
        topics=[kind.TopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=_endpoints(kind.NodeEndpoint, addresses),
    )


def _fetched(answer: Fetched, addresses: list[NodeAddress]) -> FetchResponse:
    partition = FetchResponse.PartitionData(
        partition_index=PARTITION,
        error_code=answer.error,
        high_watermark=answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
        records=answer.batches[0] if len(answer.batches) == 1 else b"".join(answer.batches),
    )
    if answer.diverging is not None:
        epoch, end_offset = answer.diverging
        partition.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if answer.snapshot is not None:
        end_offset, epoch = answer.snapshot
        partition.snapshot_id = FetchResponse.SnapshotId(end_offset=end_offset, epoch=epoch)
    return FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        node_endpoints=_endpoints(FetchResponse.NodeEndpoint, addresses),
    )


def _endpoints(kind: type[N], addresses: list[NodeAddress]) -> list[N]:
    return [kind(node_id=each.id, host=each.host, port=each.port) for each in addresses]  # type: ignore[call-arg]


def rejection(message: PeerRequest, error: ErrorCode) -> PeerResponse:
    """Return the answer to a request that the node rejects; the error is at the top level."""
    match message:
        case VoteRequest():
            return VoteResponse(error_code=error)
        case BeginQuorumEpochRequest():
            return BeginQuorumEpochResponse(error_code=error)
        case EndQuorumEpochRequest():
            return EndQuorumEpochResponse(error_code=error)
        case FetchRequest():
            return FetchResponse(error_code=error)


def read_answer(message: PeerResponse, version: int) -> Answer:
    """Return what a peer answers.

    Raises:
        KafkaError: the peer rejected the request, or its answer is not about the one partition.
        CorruptRecord, InvalidRecord, UnsupportedRecordFormat: the records are damaged.
    """
    if message.error_code != ErrorCode.NONE:
        raise KafkaError(known_code(message.error_code))
    if isinstance(message, FetchResponse):
        return _read_fetched(message, version)
    if [topic.topic_name for topic in message.topics] != [TOPIC]:
        raise not_the_partition()
    check_partition([each.partition_index for each in message.topics[0].partitions])
    answered = message.topics[0].partitions[0]
    error = known_code(answered.error_code)
    if isinstance(answered, VoteResponse.PartitionData):
        return VoteAnswer(answered.leader_epoch, answered.leader_id, answered.vote_granted, error)
    return EpochAnswer(answered.leader_epoch, answered.leader_id, error)


def _read_fetched(message: FetchResponse, version: int) -> Fetched:
    named = [each.topic_id if version >= FIRST_TOPIC_ID_VERSION else each.topic for each in message.responses]
    if named not in ([TOPIC], [TOPIC_ID]):
        raise not_the_partition()
    check_partition([each.partition_index for each in message.responses[0].partitions])
    fetched = message.responses[0].partitions[0]
    records = fetched.records or b""
    assert isinstance(records, bytes | bytearray | memoryview), "records that were received are in memory"
    epoch = fetched.current_leader.leader_epoch
    if max(fetched.diverging_epoch.epoch, fetched.snapshot_id.epoch) > epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the leader of epoch {epoch} names a later one")
    return Fetched(
        epoch,
        fetched.current_leader.leader_id,
        fetched.high_watermark,
        fetched.log_start_offset,
        _diverging(fetched.diverging_epoch),
        _snapshot(fetched.snapshot_id),
        _batches(records),
        known_code(fetched.error_code),
    )


def _diverging(end: FetchResponse.EpochEndOffset) -> LogEnd | None:
    return LogEnd(end.epoch, end.end_offset) if end.epoch >= 0 else None


def _snapshot(snapshot: FetchResponse.SnapshotId) -> SnapshotId | None:
    if snapshot.epoch < 0 and snapshot.end_offset < 0:
        return None
    if snapshot.epoch < 0 or snapshot.end_offset < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the leader names a snapshot by half of its id")
    return SnapshotId(snapshot.end_offset, snapshot.epoch)


def _batches(records: Batch) -> tuple[Batch, ...]:
    # Copied: a received record lives no longer than the buffer it came in, and a log writes into what it appends.
    view = memoryview(records)
    batches = tuple(bytearray(view[at : at + header.size]) for at, header in iter_batches(view))
    for batch in batches:
        check_batch(batch)
    return batches


def node_addresses(message: PeerResponse) -> tuple[NodeAddress, ...]:
    """Return the addresses that an answer names: that of the leader, or none."""
    named: Sequence[
        VoteResponse.NodeEndpoint
        | BeginQuorumEpochResponse.NodeEndpoint
        | EndQuorumEpochResponse.NodeEndpoint
        | FetchResponse.NodeEndpoint
    ] = message.node_endpoints
    return tuple(NodeAddress(each.node_id, each.host, each.port) for each in named)
