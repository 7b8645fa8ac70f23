"""Produce (API key 0, versions 3-13): append batches, one per partition.

- Advertised from version 0, see `barnabas.api`.
- Each partition succeeds or fails alone. A partition has exactly one batch of format v2; none or several are INVALID_RECORD.
- acks is 0, 1 or -1, else INVALID_REQUIRED_ACKS. acks=-1 waits at most timeout_ms until the in-sync replicas have the records.
- acks=0 has no response; if any partition fails the broker closes the connection, since the client notices nothing else.
- Internal topics belong to the coordinators: INVALID_TOPIC_EXCEPTION, except for Kafka's own admin client.
- An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION, an unknown topic id UNKNOWN_TOPIC_ID.
- Only rejected records have an error message, as in Kafka; other errors have only their code.
- Records that must be opened and are large are opened in the executor, see `log.append_checks`; the connection handles no later
  request meanwhile, so that the client's records stay in order.
- `transactional_produce` verifies transactional batches first; without a transactional id they are
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version 3 adds format v2 and transactions (KIP-98), 4 KAFKA_STORAGE_ERROR, 5 the log start offset (KIP-107), 7 zstd (KIP-110; before,
UNSUPPORTED_COMPRESSION_TYPE), 8 record errors (KIP-467), 9 is flexible, 10 adds the new leader on NOT_LEADER_OR_FOLLOWER (KIP-951), 12
begins transactions by producing (KIP-890), 13 adds topic ids (KIP-516).
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.api.advertised import name_leaders
from barnabas.api.context import RequestContext
from barnabas.api.held_order import hold_order
from barnabas.group.pieces import extend_topics, is_one_piece, pieces
from barnabas.log.append_checks import NOT_OPENED, AppendOrigin, RecordsToOpen
from barnabas.log.append_info import AppendInfo
from barnabas.log.errors import RecordsRejected
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ProduceRequest, ProduceResponse
from barnabas.records.compression import Compression
from barnabas.records.record_batch import (
    BATCH_OVERHEAD,
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    MAGIC,
    PREFIX_BYTES,
    is_transactional,
    length_and_magic,
    read_header,
)
from barnabas.replication.delayed_produce import AwaitedCommit
from barnabas.replication.hosted_topic import HostedTopic
from barnabas.replication.partition import OPENED_PER_TURN, Partition, opens_many
from barnabas.replication.replica_manager import EXPECTED_APPEND_ERRORS
from barnabas.steps import gather, turn

if TYPE_CHECKING:
    from barnabas.api.transactional_produce import Verified

ACKS_ALL = -1
TOPIC_ID_VERSION = 13
LEADER_HINT_VERSION = 10
ZSTD_VERSION = 7
ADMIN_CLIENT_ID = "__admin_client"
"""Kafka's own tools may write to internal topics under this client id."""

_MIN_RECORD_LENGTH = 14
"""The smallest record of the oldest format."""
_MIN_BATCH_LENGTH = BATCH_OVERHEAD - LOG_OVERHEAD

_TopicProduceResponse = ProduceResponse.TopicProduceResponse
_PartitionProduceResponse = ProduceResponse.PartitionProduceResponse
_NO_LEADER = ProduceResponse.LeaderIdAndEpoch()


class _ToOpen(NamedTuple):
    """Large records of a partition, and the place of their answer."""

    partition: Partition
    guard: VerificationGuard | None
    large: RecordsToOpen
    answers: list[Any]
    place: int


def handle(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append everything; respond now, later (acks=-1 with followers), or never (acks=0)."""
    if context.is_long:
        return _handle_pieces(context, request)
    if not -1 <= request.acks <= 1:
        return _wrong_acks(context, request)
    if _has_transactional(request):
        if request.transactional_id is None:
            return _all_refused(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        # A broker without transactions does not import their code.
        from barnabas.api import transactional_produce

        return transactional_produce.handle(context, request, _find, _append)
    return _append(context, request, None)


async def _handle_pieces(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """Handle the pieces of a request that has many partitions, one after the other, as requests of their own."""
    context.is_long = False
    whole = ProduceResponse()
    for number, piece in enumerate(_pieces(request)):
        if number:
            await turn()
        try:
            response = handle(context, piece)
            if isinstance(response, Awaitable):
                response = await response
        except KafkaError as error:
            response = _all_refused(context, piece, error.code)
        _extend(whole, response)
    return whole if request.acks else None


def _pieces(request: ProduceRequest, size: int | None = None) -> Iterator[ProduceRequest]:
    """Cut a request into requests of fewer partitions; see `pieces`."""
    for topics in pieces(request.topic_data, "partition_data", size):
        piece = copy.copy(request)
        piece.topic_data = topics
        yield piece


def _extend(whole: ProduceResponse, response: ProduceResponse | None) -> None:
    """Add the response to the next piece; None if none of them has a response."""
    if response is not None:
        extend_topics(whole.responses, response.responses, "partition_responses")
        known = {node.node_id for node in whole.node_endpoints}
        whole.node_endpoints += [node for node in response.node_endpoints if node.node_id not in known]


def _append(
    context: RequestContext, request: ProduceRequest, verified: Verified | None
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append the batches that pass the checks.

    Args:
        verified: the outcome for transactional batches; None if the request has none, or none that need verification.
    """
    named = (_find(context, data, wanted.index) for data in request.topic_data for wanted in data.partition_data)
    if is_one_piece(request.topic_data, "partition_data", OPENED_PER_TURN) or not opens_many(named):
        return _append_now(context, request, verified)
    hold_order(context, request)
    return _append_in_turns(context, request, verified)


async def _append_in_turns(
    context: RequestContext, request: ProduceRequest, verified: Verified | None
) -> ProduceResponse | None:
    """Append a few batches in each turn of the loop, then wait for the commits of all."""

    async def append_piece(piece: ProduceRequest) -> ProduceResponse | None:
        response = _append_now(context, piece, verified)
        return await response if isinstance(response, Awaitable) else response

    appended = (append_piece(piece) for piece in _pieces(request, OPENED_PER_TURN))
    whole = ProduceResponse()
    for response in await gather(appended, context.services.loop, per_turn=1):
        _extend(whole, response)
    return whole if request.acks else None


def _append_now(
    context: RequestContext, request: ProduceRequest, verified: Verified | None
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append the batches that pass the checks in this turn of the loop, but for records that are too large for it."""
    acks = request.acks
    version = context.version
    replicas = context.services.replica_manager
    topics = replicas.topics
    failed = False
    waiting: list[tuple[AwaitedCommit, Any]] | None = None
    to_open: list[_ToOpen] | None = None
    answered = []
    for data in request.topic_data:
        topic = topics.get(data.name) if version < TOPIC_ID_VERSION else replicas.topics_by_id.get(data.topic_id)
        partitions: list[Any] = []
        for wanted in data.partition_data:
            index = wanted.index
            partition = reached = None
            try:
                guard = None
                partition = topic.partitions.get(index) if topic is not None else None
                if partition is None:
                    partition = _missing(context, data, topic, index)
                records = _checked(version, wanted.records)
                if partition.topic.is_internal and context.client_id != ADMIN_CLIENT_ID:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                if verified is not None:
                    if partition in verified.errors:
                        raise verified.errors[partition]
                    guard = verified.guards.get(partition)
                reached = partition
                info = replicas.append_to(partition, records, acks, AppendOrigin.CLIENT, guard, 0, NOT_OPENED)
                answer = _PartitionProduceResponse(
                    index=index,
                    base_offset=info.base_offset,
                    log_append_time_ms=info.log_append_time_ms,
                    log_start_offset=info.log_start_offset,
                    record_errors=[],
                    current_leader=_NO_LEADER,
                )
                if acks == ACKS_ALL and partition.log.high_watermark <= info.last_offset:
                    waiting = waiting or []
                    waiting.append((AwaitedCommit(partition, info.last_offset + 1), answer))
            except KafkaError as error:
                failed = True
                answer = _refused(index, reached, error)
            except RecordsToOpen as large:
                assert partition is not None, "records for no partition"
                large.copy()
                to_open = to_open or []
                to_open.append(_ToOpen(partition, guard, large, partitions, len(partitions)))
                answer = _PartitionProduceResponse(index=index)  # Replaced when the records are appended.
            partitions.append(answer)
        answered.append(_TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=partitions))
    if to_open is not None:
        context.holds_order = True
        return _append_opened(context, request, to_open, answered, waiting, failed=failed)
    return _respond(context, request, answered, waiting, failed=failed)


async def _append_opened(
    context: RequestContext,
    request: ProduceRequest,
    to_open: list[_ToOpen],
    answered: list[_TopicProduceResponse],
    waiting: list[tuple[AwaitedCommit, Any]] | None,
    *,
    failed: bool,
) -> ProduceResponse | None:
    """Open large records in the executor and append them; then respond."""
    for partition, guard, large, answers, place in to_open:
        index = answers[place].index
        try:
            info = await _append_large(context, partition, request.acks, guard, large)
        except KafkaError as error:
            failed = True
            answers[place] = _refused(index, partition, error)
            continue
        answer = answers[place] = _PartitionProduceResponse(
            index=index,
            base_offset=info.base_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )
        if request.acks == ACKS_ALL and partition.log.high_watermark <= info.last_offset:
            waiting = waiting or []
            waiting.append((AwaitedCommit(partition, info.last_offset + 1), answer))
    response = _respond(context, request, answered, waiting, failed=failed)
    return await response if isinstance(response, asyncio.Future) else response


async def _append_large(
    context: RequestContext, partition: Partition, acks: int, guard: VerificationGuard | None, large: RecordsToOpen
) -> AppendInfo:
    services = context.services
    while True:
        opened = await services.loop.run_in_executor(None, large.open)
        try:
            append_to = services.replica_manager.append_to
            return append_to(partition, opened.view, acks, AppendOrigin.CLIENT, guard, 0, opened)
        except RecordsToOpen as again:
            large = again  # The settings have changed meanwhile.


def _respond(
    context: RequestContext,
    request: ProduceRequest,
    answered: list[_TopicProduceResponse],
    waiting: list[tuple[AwaitedCommit, Any]] | None,
    *,
    failed: bool,
) -> ProduceResponse | asyncio.Future[ProduceResponse] | None:
    """Return the response, or a future of it if the commit of records is waited for."""
    if request.acks == 0:
        context.close_connection = context.close_connection or failed
        return None
    response = ProduceResponse(responses=answered)
    if failed:
        _point_to_leaders(context, response)
    if waiting is not None:
        answer_later: ProduceResponse | asyncio.Future[ProduceResponse]
        answer_later = _after_commit(context, request.timeout_ms, waiting, response)
        return answer_later
    return response


def _find(context: RequestContext, data: Any, index: int) -> Partition | None:
    """Return the replica of a requested partition, None if it is not here."""
    replicas = context.services.replica_manager
    by_name = context.version < TOPIC_ID_VERSION
    topic = replicas.topics.get(data.name) if by_name else replicas.topics_by_id.get(data.topic_id)
    return None if topic is None else topic.partitions.get(index)


def _checked(version: int, records: Any) -> memoryview:
    """Return the only batch of a partition's records, without a fragment of a batch behind it, as Kafka does."""
    size = 0 if records is None else len(records)
    if size < BATCH_OVERHEAD:
        raise _no_batch(records, size)
    length, magic = length_and_magic(records)
    end = length + LOG_OVERHEAD
    if magic != MAGIC or length < _MIN_BATCH_LENGTH or end > size:
        raise _no_batch(records, size)
    if end != size:
        _check_rest(records[end:])
        records = records[:end]
    if version < ZSTD_VERSION and read_header(records).attributes & COMPRESSION_MASK == Compression.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    checked: memoryview = records
    return checked


def _no_batch(records: Any, size: int) -> KafkaError:
    """Return the error of records that do not begin with a whole batch of format v2."""
    if size >= PREFIX_BYTES:
        length, magic = length_and_magic(records)
        if length < _MIN_RECORD_LENGTH:
            text = f"Record size {length} is less than the minimum record overhead ({_MIN_RECORD_LENGTH})"
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, text, for_client=True)
        if not 0 <= magic <= MAGIC:
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}", for_client=True)
        if magic == MAGIC and length < _MIN_BATCH_LENGTH and length + LOG_OVERHEAD <= size:
            return KafkaError(ErrorCode.CORRUPT_MESSAGE)
    return KafkaError(ErrorCode.INVALID_RECORD)


def _check_rest(rest: memoryview) -> None:
    """Reject the records if a second batch or garbage follows the batch."""
    if len(rest) < PREFIX_BYTES:
        return
    length, magic = length_and_magic(rest)
    if length < _MIN_RECORD_LENGTH or not 0 <= magic <= MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE)
    if length + LOG_OVERHEAD <= len(rest):
        raise KafkaError(ErrorCode.INVALID_RECORD)


def _has_transactional(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records: Any = partition.records
            if records is not None and is_transactional(records):
                return True
    return False


def _wrong_acks(context: RequestContext, request: ProduceRequest) -> ProduceResponse:
    """Reject every partition; one that does not exist keeps its own error."""
    response = ProduceResponse()
    for data in request.topic_data:
        answers = []
        for wanted in data.partition_data:
            try:
                partition = _find(context, data, wanted.index) or _missing(context, data, None, wanted.index)
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, partition.topic.name)
            except KafkaError as error:
                answers.append(_refused(wanted.index, None, error))
        answer = _TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)
        response.responses.append(answer)
    return response


def _missing(context: RequestContext, data: Any, topic: HostedTopic | None, index: int) -> Partition:
    """Raise the reason why the replica is not here."""
    name = data.name
    if context.version >= TOPIC_ID_VERSION:
        found = context.services.image().topics.name_of(data.topic_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = found
    return context.services.replica_manager.partition(name, index)


def _refused(index: int, partition: Partition | None, error: KafkaError) -> Any:
    """Return a failed partition's part of the response.

    Args:
        partition: None if the append was not tried.
    """
    record_errors = error.record_errors if isinstance(error, RecordsRejected) else ()
    log = None
    if partition is not None and error.code not in EXPECTED_APPEND_ERRORS:
        log = partition.open_log
    return _PartitionProduceResponse(
        index=index,
        error_code=int(error.code),
        base_offset=-1,
        log_start_offset=-1 if log is None else log.log_start_offset,
        record_errors=[
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in record_errors
        ],
        error_message=error.client_message,
    )


def _point_to_leaders(context: RequestContext, response: ProduceResponse) -> None:
    """Name the leaders of the partitions that this broker does not lead; it need not have replicas of them (KIP-951)."""
    if context.version < LEADER_HINT_VERSION:
        return
    topics = context.services.image().topics
    leaders = set()
    for topic in response.responses:
        by_name = context.version < TOPIC_ID_VERSION
        found = topics.by_name.get(topic.name) if by_name else topics.by_id.get(topic.topic_id)
        for answer in topic.partition_responses:
            partition = None if found is None else found.partitions.get(answer.index)
            if partition is not None and answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
                leaders.add(partition.leader)
    response.node_endpoints.clear()
    name_leaders(context, response, leaders)


def _all_refused(context: RequestContext, request: ProduceRequest, code: ErrorCode) -> ProduceResponse | None:
    if request.acks == 0:
        context.close_connection = True
        return None
    return ProduceResponse(
        responses=[
            _TopicProduceResponse(
                name=data.name,
                topic_id=data.topic_id,
                partition_responses=[
                    _PartitionProduceResponse(index=wanted.index, error_code=int(code), base_offset=-1)
                    for wanted in data.partition_data
                ],
            )
            for data in request.topic_data
        ]
    )


def _after_commit(
    context: RequestContext, timeout_ms: int, waiting: list[tuple[AwaitedCommit, Any]], response: ProduceResponse
) -> Any:
    def respond(commits: Sequence[AwaitedCommit]) -> ProduceResponse:
        for commit, answer in waiting:
            if commit.error_code:
                answer.error_code = int(commit.error_code)
                answer.base_offset = -1
                answer.log_append_time_ms = -1
        if any(commit.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER for commit in commits):
            _point_to_leaders(context, response)
        return response

    own = [commit for commit, _ in waiting]
    return context.services.replica_manager.await_commits(own, max(timeout_ms, 0), respond)
