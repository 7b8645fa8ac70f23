"""Produce (API key 0, versions 3-13): append batches, one per partition.

- Advertised from version 0, see `barnabas.api`.
- Each partition succeeds or fails alone. A partition has exactly one batch of format v2; none or several are INVALID_RECORD.
- acks is 0, 1 or -1, else INVALID_REQUIRED_ACKS. acks=-1 waits at most timeout_ms until the in-sync replicas have the records.
  With `barnabas.flush.before.ack` they must have synced them, and acks=1 waits in the same way for the leader's sync.
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

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.api.serving.advertised import name_leaders
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.held_order import hold_order, release_order
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
    TRANSACTIONAL,
    batch_prefix,
    length_and_magic,
)
from barnabas.replication.awaited_commit import AwaitedCommit, AwaitedSync
from barnabas.replication.awaited_offset import AwaitedOffset
from barnabas.replication.hosted_topic import HostedTopic
from barnabas.replication.partition import ACKS_ALL, Partition
from barnabas.replication.replica_manager import EXPECTED_APPEND_ERRORS, ReplicaManager
from barnabas.turns import ELEMENT, LOG_OPENED, WRITE, next_turn, pace, spend

if TYPE_CHECKING:
    from barnabas.api.serving.transactional_produce import Verified

TOPIC_ID_VERSION = 13
LEADER_HINT_VERSION = 10
ZSTD_VERSION = 7
ADMIN_CLIENT_ID = "__admin_client"
"""Kafka's own tools may write to internal topics under this client id."""

Prefix = tuple[int, int, int]
"""Length, magic and attributes of a batch."""

BYTES = 8192
"""Bytes of records that are checked for the cost of one."""

_MIN_RECORD_LENGTH = 14
"""The smallest record of the oldest format."""
_MIN_BATCH_LENGTH = BATCH_OVERHEAD - LOG_OVERHEAD

_TopicProduceData = ProduceRequest.TopicProduceData
_TopicProduceResponse = ProduceResponse.TopicProduceResponse
_PartitionProduceResponse = ProduceResponse.PartitionProduceResponse
_NO_LEADER = ProduceResponse.LeaderIdAndEpoch()


async def handle(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """Append everything, and wait for the commits or syncs that acks asks for; None (no response) with acks=0."""
    if not -1 <= request.acks <= 1:
        return await _wrong_acks(context, request)
    verified = None
    # A long request's records are copies, which another thread may read.
    run = context.services.loop.run_in_executor
    prefixes, is_transactional = await run(None, _prefixes, request) if context.is_long else _prefixes(request)
    if is_transactional:
        if request.transactional_id is None:
            return await _all_refused(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        # A broker without transactions does not import their code.
        from barnabas.api.serving import transactional_produce

        verified = await transactional_produce.verify(context, request, _find)
    response, failed, commits = await _append(context, request, iter(prefixes), verified)
    release_order(context)
    if request.acks == 0:
        context.close_connection = context.close_connection or failed
        return None
    if failed:
        await _point_to_leaders(context, response)
    if commits:
        await _wait_for_commits(context, request.timeout_ms, commits, response)
    return response


async def _append(
    context: RequestContext, request: ProduceRequest, prefixes: Iterator[Prefix | None], verified: Verified | None
) -> tuple[ProduceResponse, bool, list[tuple[AwaitedOffset, _PartitionProduceResponse]]]:
    """Append the batches that pass the checks.

    Args:
        prefixes: of the partitions' records, in order.
        verified: the outcome for transactional batches; None if the request has none, or none that need verification.

    Returns:
        The response; whether a partition has failed; the commits to wait for, each with its part of the response.
    """
    acks = request.acks
    version = context.version
    replicas = context.services.replica_manager
    failed = is_turn_over = False
    commits: list[tuple[AwaitedOffset, _PartitionProduceResponse]] = []
    answered = []
    for data in request.topic_data:
        if context.is_long:
            await pace(ELEMENT)  # The order is held.
        topic = _topic(replicas, version, data)
        partitions: list[_PartitionProduceResponse] = []
        for wanted in data.partition_data:
            if is_turn_over:
                hold_order(context, request)
                await next_turn()
                topic = _topic(replicas, version, data)
            index, prefix, cost = wanted.index, next(prefixes), ELEMENT
            partition = reached = None
            try:
                partition = topic.partitions.get(index) if topic is not None else None
                if partition is None:
                    partition = _missing(context, data, topic, index)
                records = _checked(version, wanted.records, prefix)
                if partition.topic.is_internal and context.client_id != ADMIN_CLIENT_ID:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                guard = None
                if verified is not None:
                    if partition in verified.errors:
                        raise verified.errors[partition]
                    guard = verified.guards.get(partition)
                reached = partition
                cost = (LOG_OPENED if partition.open_log is None else WRITE) + len(records) // BYTES
                try:
                    info = replicas.append_to(partition, records, acks, AppendOrigin.CLIENT, guard, 0, NOT_OPENED)
                except RecordsToOpen as large:
                    large.copy()
                    hold_order(context, request)
                    info = await _append_large(context, partition, acks, guard, large)
                answer = _PartitionProduceResponse(
                    index=index,
                    base_offset=info.base_offset,
                    log_append_time_ms=info.log_append_time_ms,
                    log_start_offset=info.log_start_offset,
                    record_errors=[],
                    current_leader=_NO_LEADER,
                )
                if acks == ACKS_ALL and partition.log.high_watermark <= info.last_offset:
                    commits.append((AwaitedCommit(partition, info.last_offset + 1), answer))
                elif acks == 1 and partition.awaits_sync and partition.log.recovery_point <= info.last_offset:
                    commits.append((AwaitedSync(partition, info.last_offset + 1), answer))
            except KafkaError as error:
                failed = True
                answer = _refused(index, reached, error)
            is_turn_over = spend(cost)
            partitions.append(answer)
        answered.append(_TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=partitions))
    return ProduceResponse(responses=answered), failed, commits


def _topic(replicas: ReplicaManager, version: int, data: _TopicProduceData) -> HostedTopic | None:
    if version < TOPIC_ID_VERSION:
        return replicas.topics.get(data.name)
    return replicas.topics_by_id.get(data.topic_id)


async def _append_large(
    context: RequestContext, partition: Partition, acks: int, guard: VerificationGuard | None, large: RecordsToOpen
) -> AppendInfo:
    """Open records in the executor, and append them."""
    services = context.services
    while True:
        opened = await services.loop.run_in_executor(None, large.open)
        try:
            append_to = services.replica_manager.append_to
            return append_to(partition, opened.view, acks, AppendOrigin.CLIENT, guard, 0, opened)
        except RecordsToOpen as again:
            large = again  # The settings have changed meanwhile.


async def _wait_for_commits(
    context: RequestContext,
    timeout_ms: int,
    commits: list[tuple[AwaitedOffset, _PartitionProduceResponse]],
    response: ProduceResponse,
) -> None:
    """Wait until the records are committed, and put what went wrong into the response."""
    replicas = context.services.replica_manager
    await replicas.await_commits([commit for commit, _ in commits], max(timeout_ms, 0))
    has_lost_leadership = False
    for commit, answer in commits:
        if commit.error_code:
            has_lost_leadership = has_lost_leadership or commit.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            answer.error_code = int(commit.error_code)
            answer.base_offset = -1
            answer.log_append_time_ms = -1
    if has_lost_leadership:
        await _point_to_leaders(context, response)


def _find(context: RequestContext, data: _TopicProduceData, index: int) -> Partition | None:
    """Return the replica of a requested partition, None if it is not here."""
    topic = _topic(context.services.replica_manager, context.version, data)
    return None if topic is None else topic.partitions.get(index)


def _checked(version: int, records: Any, prefix: Prefix | None) -> memoryview:
    """Return the only batch of a partition's records, without a fragment of a batch behind it, as Kafka does."""
    size = 0 if records is None else len(records)
    if prefix is None:
        raise _no_batch(records, size)
    length, magic, attributes = prefix
    end = length + LOG_OVERHEAD
    if magic != MAGIC or length < _MIN_BATCH_LENGTH or end > size:
        raise _no_batch(records, size)
    if end != size:
        _check_rest(records[end:])
        records = records[:end]
    if version < ZSTD_VERSION and attributes & COMPRESSION_MASK == Compression.ZSTD:
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


def _prefixes(request: ProduceRequest) -> tuple[list[Prefix | None], bool]:
    """Return how each partition's records begin, and whether any are of a transaction."""
    prefixes: list[Prefix | None] = []
    is_transactional = False
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records: Any = partition.records
            prefix = batch_prefix(records)
            prefixes.append(prefix)
            # Formats before v2 have no transactions.
            if prefix is not None and prefix[2] & TRANSACTIONAL and prefix[1] == MAGIC:
                is_transactional = True
    return prefixes, is_transactional


async def _wrong_acks(context: RequestContext, request: ProduceRequest) -> ProduceResponse:
    """Reject every partition; one that does not exist keeps its own error."""
    response = ProduceResponse()
    for data in request.topic_data:
        answers = []
        await pace(ELEMENT)
        for wanted in data.partition_data:
            await pace(ELEMENT)
            try:
                partition = _find(context, data, wanted.index) or _missing(context, data, None, wanted.index)
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, partition.topic.name)
            except KafkaError as error:
                answers.append(_refused(wanted.index, None, error))
        answer = _TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)
        response.responses.append(answer)
    return response


def _missing(context: RequestContext, data: _TopicProduceData, topic: HostedTopic | None, index: int) -> Partition:
    """Raise the reason why the replica is not here."""
    name = data.name
    if context.version >= TOPIC_ID_VERSION:
        found = context.services.image().topics.name_of(data.topic_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = found
    return context.services.replica_manager.partition(name, index)


def _refused(index: int, partition: Partition | None, error: KafkaError) -> _PartitionProduceResponse:
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


async def _point_to_leaders(context: RequestContext, response: ProduceResponse) -> None:
    """Name the leaders of the partitions that this broker does not lead; it need not have replicas of them (KIP-951)."""
    if context.version < LEADER_HINT_VERSION:
        return
    topics = context.services.image().topics
    leaders = set()
    for topic in response.responses:
        await pace(ELEMENT)
        by_name = context.version < TOPIC_ID_VERSION
        found = topics.by_name.get(topic.name) if by_name else topics.by_id.get(topic.topic_id)
        for answer in topic.partition_responses:
            await pace(ELEMENT)
            partition = None if found is None else found.partitions.get(answer.index)
            if partition is not None and answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
                leaders.add(partition.leader)
    response.node_endpoints.clear()
    name_leaders(context, response, leaders)


async def _all_refused(context: RequestContext, request: ProduceRequest, code: ErrorCode) -> ProduceResponse | None:
    if request.acks == 0:
        context.close_connection = True
        return None
    response = ProduceResponse()
    for data in request.topic_data:
        answers = []
        await pace(ELEMENT)
        for wanted in data.partition_data:
            await pace(ELEMENT)
            answers.append(_PartitionProduceResponse(index=wanted.index, error_code=int(code), base_offset=-1))
        answer = _TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)
        response.responses.append(answer)
    return response
